//! HTTP/1.1 by hand, as a shell script with curl would speak it.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    fn parse(text: &str) -> Option<Self> {
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split_whitespace().nth(1)?.parse().ok()?;
        Some(Self { status, body: body.to_owned() })
    }
}

/// Asks over a Unix socket.
pub(crate) fn over_socket(socket: &Path, method: &str, path: &str, body: &str) -> io::Result<Answer> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    exchange(stream, method, path, body)
}

/// Asks over TCP.
pub(crate) fn over_tcp(address: SocketAddr, path: &str) -> io::Result<Answer> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    exchange(stream, "GET", path, "")
}

fn exchange(mut stream: impl io::Read + Write, method: &str, path: &str, body: &str) -> io::Result<Answer> {
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: pod\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Answer::parse(&text).ok_or_else(|| io::Error::other(format!("no HTTP: {text:?}")))
}
