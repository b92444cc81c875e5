//! A backend that others wrote: nginx with `dav_methods`.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

#[derive(Debug)]
pub(crate) struct Nginx {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) folder: TempDir,
}

impl Nginx {
    pub(crate) fn start() -> Self {
        for _ in 0..5 {
            let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let folder = TempDir::new().unwrap();
            std::fs::create_dir(folder.path().join("files")).unwrap();
            let text = config(address);
            std::fs::write(folder.path().join("nginx.conf"), text).unwrap();
            let child = Command::new("setpriv")
                .args(["--pdeathsig", "KILL", "/usr/sbin/nginx", "-p"])
                .arg(folder.path())
                .args(["-c", "nginx.conf", "-e", "error.log"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut nginx = Self { child, address, folder };
            if nginx.is_up() {
                return nginx;
            }
        }
        panic!("nginx does not start; install it with `apt-get install nginx-light`");
    }

    fn is_up(&mut self) -> bool {
        for _ in 0..500 {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            if TcpStream::connect(self.address).is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    pub(crate) fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.folder.path().join("files").join(name)).ok()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn config(address: SocketAddr) -> String {
    format!(
        "daemon off; master_process off; pid nginx.pid; error_log error.log;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n\
           access_log off; client_max_body_size 0; keepalive_requests 1000000;\n\
           client_body_temp_path bodies; proxy_temp_path proxied; fastcgi_temp_path f; uwsgi_temp_path u;\n\
           scgi_temp_path s;\n\
           server {{ listen {address}; location / {{ root files;\n\
             # What this resource does not take, whoever writes it.\n\
             if ($http_value ~ ^-) {{ return 422; }}\n\
             dav_methods PUT DELETE MKCOL COPY MOVE; create_full_put_path on; }} }}\n\
         }}\n"
    )
}
