//! An HTTP/1.1 connection of a client that wants to know as little as it can of an answer.

use std::io::{self, BufRead as _, BufReader, IoSlice, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, bail};

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection that is kept alive.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
    line: Vec<u8>,
    body: Vec<u8>,
}

impl Connection {
    /// Connects.
    pub fn to(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("no connection to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream), line: Vec::new(), body: Vec::new() })
    }

    /// Sends a whole head and its body, and reads the whole answer. Fails if that is no 2xx.
    pub fn exchange(&mut self, head: &str, body: &[u8]) -> anyhow::Result<()> {
        let stream = self.stream.get_mut();
        let sent = stream.write_vectored(&[IoSlice::new(head.as_bytes()), IoSlice::new(body)])?;
        let (in_head, in_body) = (sent.min(head.len()), sent.saturating_sub(head.len()));
        stream.write_all(&head.as_bytes()[in_head..])?;
        stream.write_all(&body[in_body..])?;
        self.line()?;
        let status = String::from_utf8_lossy(&self.line).trim_end().to_owned();
        let length = self.length()?;
        self.body.resize(length, 0);
        self.stream.read_exact(&mut self.body)?;
        if status.split(' ').nth(1).is_none_or(|code| !code.starts_with('2')) {
            bail!("the answer was {status:?}: {}", String::from_utf8_lossy(&self.body));
        }
        Ok(())
    }

    /// Reads the rest of a head; how long the body is.
    fn length(&mut self) -> anyhow::Result<usize> {
        let mut length = 0;
        loop {
            self.line()?;
            let line = self.line.trim_ascii_end();
            if line.is_empty() {
                return Ok(length);
            }
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"content-length") {
                length = std::str::from_utf8(value)?.parse()?;
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                bail!("an answer of unknown length was not to be measured");
            }
        }
    }

    fn line(&mut self) -> io::Result<()> {
        self.line.clear();
        match self.stream.read_until(b'\n', &mut self.line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}
