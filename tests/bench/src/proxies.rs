//! What stands between clients and backend: our gate, and nginx as people write it for this.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use fencedlease_wire::gate::{GateKey, Ticket};
use fencedlease_wire::{Fence, HoldingId};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The key of the gate's one resource, as its file.
const KEY: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const RESOURCE: &str = "shop/report";
/// How often a starting program is asked, and how many times.
const ASK_EVERY: Duration = Duration::from_millis(10);
const ASKS: u32 = 1000;

/// A running proxy. It is ended when this is dropped.
#[derive(Debug)]
pub struct Proxy {
    child: Child,
    /// Where clients connect.
    pub address: SocketAddr,
    /// Its files.
    pub folder: TempDir,
}

/// A gate with the resource `shop/report` at every path.
pub fn gate(program: &Path, backend: SocketAddr) -> anyhow::Result<Proxy> {
    let folder = TempDir::with_prefix("fencedlease-bench-")?;
    let keys = folder.path().join("keys");
    fs::create_dir(&keys)?;
    fs::write(keys.join(RESOURCE.replace('/', "_")), KEY)?;
    let mut child = tied(program)
        .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--guard", "shop/report=/"])
        .arg("--backend")
        .arg(format!("http://{backend}"))
        .arg("--data")
        .arg(folder.path().join("data"))
        .arg("--keys")
        .arg(keys)
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start the gate")?;
    let stderr = child.stderr.take().context("the gate has no log")?;
    let mut lines = BufReader::new(stderr).lines();
    let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
        let (_, rest) = line.split_once("address=")?;
        rest.split(' ').next()?.parse().ok()
    });
    thread::spawn(move || lines.map_while(Result::ok).for_each(|line| log(&line)));
    let address = address.context("the gate ended instead of listening")?;
    Ok(Proxy { child, address, folder })
}

/// Nginx as a plain proxy: connections to the backend are kept, and bodies stream.
pub fn nginx(backend: SocketAddr) -> anyhow::Result<Proxy> {
    let folder = TempDir::with_prefix("fencedlease-bench-")?;
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    fs::write(folder.path().join("nginx.conf"), config(address, backend))?;
    let mut child = tied(Path::new("/usr/sbin/nginx"))
        .arg("-p")
        .arg(folder.path())
        .args(["-c", "nginx.conf", "-e", "error.log"])
        .spawn()
        .context("cannot start nginx; install it with `apt-get install -y nginx-light`")?;
    for _ in 0..ASKS {
        if let Some(status) = child.try_wait()? {
            let log = fs::read_to_string(folder.path().join("error.log")).unwrap_or_default();
            bail!("nginx ended ({status}); its log:\n{log}");
        }
        if TcpStream::connect(address).is_ok() {
            return Ok(Proxy { child, address, folder });
        }
        thread::sleep(ASK_EVERY);
    }
    let _ = child.kill();
    bail!("nginx did not listen in time")
}

/// A header line that lets a write with this fence through, for the next minute.
pub fn ticket(fence: u64) -> anyhow::Result<String> {
    let time = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let ticket = Ticket {
        resource: RESOURCE.parse()?,
        fence: Fence::new(fence)?,
        holder: HoldingId::from_random([7; 8]),
        time_ms: u64::try_from(time.as_millis())?,
    };
    Ok(format!("FencedLease: {}\r\n", ticket.sign(&KEY.parse::<GateKey>()?)))
}

// === impl Proxy ===

impl Proxy {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How long its processes have worked, on all processors together.
    pub fn worked(&self) -> anyhow::Result<Duration> {
        let pid = self.pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        let own = pid.to_string();
        let all = children.split_whitespace().chain([own.as_str()]);
        all.map(worked).sum::<anyhow::Result<Duration>>()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Nginx ends its workers when it is asked, not when it is killed.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        for _ in 0..ASKS {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(ASK_EVERY);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command whose process is asked to end when this program dies.
fn tied(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM"]).arg(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// By the scheduler's own count, in ns, of each of a process's threads.
fn worked(pid: &str) -> anyhow::Result<Duration> {
    let mut all = Duration::ZERO;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may have ended meanwhile.
        let Ok(text) = fs::read_to_string(task?.path().join("schedstat")) else { continue };
        let ns = text.split_whitespace().next().context("an empty schedstat")?.parse()?;
        all += Duration::from_nanos(ns);
    }
    Ok(all)
}

fn log(line: &str) {
    if line.contains("WARN") || line.contains("ERROR") {
        eprintln!("gate: {line}");
    }
}

fn config(address: SocketAddr, backend: SocketAddr) -> String {
    format!(
        "daemon off; worker_processes auto; pid nginx.pid; error_log error.log;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n\
           access_log off; client_max_body_size 0; keepalive_requests 1000000000;\n\
           client_body_temp_path bodies; proxy_temp_path proxied; fastcgi_temp_path f; uwsgi_temp_path u;\n\
           scgi_temp_path s;\n\
           upstream backend {{ server {backend}; keepalive 256; keepalive_requests 1000000000; }}\n\
           server {{ listen {address}; location / {{\n\
             proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection \"\";\n\
             proxy_request_buffering off; }} }}\n\
         }}\n"
    )
}
