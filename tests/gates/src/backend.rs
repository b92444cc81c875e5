//! A backend that cannot compare fences, and remembers what it was sent.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A server on a port of 127.0.0.1, on threads that end with the test program.
#[derive(Clone, Debug)]
pub struct Backend {
    /// Where it is.
    pub address: SocketAddr,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Backend {
    /// Starts one.
    pub fn start() -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let backend = Self { address: listener.local_addr()?, bodies: Arc::default() };
        let copy = backend.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let copy = copy.clone();
                // A gate that ends its connection is no trouble.
                thread::spawn(move || copy.serve(&stream));
            }
        });
        Ok(backend)
    }

    /// The bodies of all requests, in order.
    pub fn bodies(&self) -> Vec<String> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn serve(&self, stream: &TcpStream) -> std::io::Result<()> {
        let (mut reader, mut writer) = (BufReader::new(stream), stream);
        loop {
            let mut length = 0;
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line)? == 0 {
                    return Ok(());
                }
                let line = line.trim().to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length: ") {
                    length = value.parse().map_err(std::io::Error::other)?;
                }
                if line.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            let body = String::from_utf8_lossy(&body).into_owned();
            self.bodies.lock().unwrap_or_else(PoisonError::into_inner).push(body);
            writer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\ndone\n")?;
        }
    }
}
