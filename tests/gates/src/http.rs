//! HTTP/1.1 by hand, one request a connection, as a shell script with curl would speak it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// What the gate says became of the request; empty if nothing.
    pub result: String,
    /// The body.
    pub body: String,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_str(&self.body).with_context(|| format!("no JSON: {}", self.body))
    }
}

/// Asks over TCP, with headers as a JSON object has them.
pub fn over_tcp(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &Value,
    body: &str,
) -> anyhow::Result<Answer> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    exchange(stream, method, path, headers, body)
}

/// Asks over a Unix socket.
pub(crate) fn over_socket(socket: &Path, method: &str, path: &str) -> anyhow::Result<Answer> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    exchange(stream, method, path, &Value::Null, "")
}

fn exchange(
    mut stream: impl Read + Write,
    method: &str,
    path: &str,
    headers: &Value,
    body: &str,
) -> anyhow::Result<Answer> {
    let length = body.len();
    let mut request = Vec::new();
    write!(
        request,
        "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n"
    )?;
    for (name, value) in headers.as_object().into_iter().flatten() {
        write!(request, "{name}: {}\r\n", value.as_str().context("a header is text")?)?;
    }
    write!(request, "\r\n{body}")?;
    stream.write_all(&request)?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let (head, body) = text.split_once("\r\n\r\n").with_context(|| format!("no HTTP: {text:?}"))?;
    let status = head.split_whitespace().nth(1).context("no status")?.parse()?;
    let result = head.lines().find_map(|line| line.strip_prefix("fencedlease-result: "));
    Ok(Answer { status, result: result.unwrap_or_default().to_owned(), body: body.to_owned() })
}
