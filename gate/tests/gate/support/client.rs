//! An HTTP/1.1 client that says what it sends, byte by byte where a test wants that.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use fencedlease_wire::gate::{GateProblem, RAISE_PATH};

use super::Holder;

#[derive(Debug)]
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// A request whose body goes on.
#[derive(Debug)]
pub(crate) struct Slow(Client);

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).unwrap()
    }

    pub(crate) fn try_connect(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    pub(crate) fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.try_send(method, path, headers, body).unwrap()
    }

    pub(crate) fn try_send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Answer> {
        // In one write: a gate that answers without having read the body keeps the connection only then.
        self.head(method, path, headers, body.len(), body)?;
        self.answer(method == "HEAD")
    }

    /// A body that says itself how long it is.
    pub(crate) fn send_as_is(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: gate\r\n");
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        self.stream.get_mut().write_all(&[head.as_bytes(), b"\r\n", body].concat()).unwrap();
        self.answer(false).unwrap()
    }

    /// Sends this and no more; whether the other side ends the connection.
    pub(crate) fn is_closed_after(&mut self, bytes: &[u8]) -> bool {
        self.stream.get_mut().write_all(bytes).unwrap();
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).is_ok()
    }

    pub(crate) fn put(&mut self, path: &str, holder: Holder, body: &str) -> Answer {
        self.send("PUT", path, &[("FencedLease", &holder.ticket())], body.as_bytes())
    }

    pub(crate) fn raise(&mut self, holder: Holder) -> Answer {
        self.send("POST", RAISE_PATH, &[("FencedLease", &holder.ticket())], b"")
    }

    /// A PUT whose last byte comes after a pause.
    pub(crate) fn try_send_slowly(
        &mut self,
        path: &str,
        holder: Holder,
        body: &[u8],
        pause: Duration,
    ) -> io::Result<Answer> {
        let (last, first) = body.split_last().ok_or(io::ErrorKind::InvalidInput)?;
        self.head("PUT", path, &[("FencedLease", &holder.ticket())], body.len(), first)?;
        std::thread::sleep(pause);
        self.stream.get_mut().write_all(&[*last])?;
        self.answer(false)
    }

    /// Sends the head and `body`, of `length` bytes in all.
    pub(crate) fn begin(mut self, path: &str, holder: Holder, length: usize, body: &[u8]) -> Slow {
        self.head("PUT", path, &[("FencedLease", &holder.ticket())], length, body).unwrap();
        Slow(self)
    }

    fn head(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        length: usize,
        body: &[u8],
    ) -> io::Result<()> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: gate\r\ncontent-length: {length}\r\n");
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        head.push_str("\r\n");
        self.stream.get_mut().write_all(&[head.as_bytes(), body].concat())
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    fn answer(&mut self, is_head: bool) -> io::Result<Answer> {
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|it| it.parse().ok());
        let status = status.ok_or(io::ErrorKind::InvalidData)?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(": ") else { break };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        if let Some(length) = answer.header("content-length")
            && !is_head
        {
            answer.body = vec![0; length.parse().unwrap()];
            self.stream.read_exact(&mut answer.body)?;
        } else if answer.header("transfer-encoding").is_some() {
            loop {
                let length =
                    usize::from_str_radix(&self.line()?, 16).map_err(|_| io::ErrorKind::InvalidData)?;
                let start = answer.body.len();
                answer.body.resize(start + length, 0);
                self.stream.read_exact(&mut answer.body[start..])?;
                self.line()?;
                if length == 0 {
                    break;
                }
            }
        }
        Ok(answer)
    }
}

impl Slow {
    /// As [`Slow::more`], as far as the other side takes it.
    pub(crate) fn feed(&mut self, body: &[u8]) {
        // It may have answered already.
        let _ = self.0.stream.get_mut().write_all(body);
    }

    pub(crate) fn more(&mut self, body: &[u8]) {
        self.0.stream.get_mut().write_all(body).unwrap();
    }

    pub(crate) fn answer(mut self) -> Answer {
        self.0.answer(false).unwrap()
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The word of the gate.
    pub(crate) fn result(&self) -> &str {
        self.header("fencedlease-result").unwrap_or("none")
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn code(&self) -> String {
        serde_json::from_slice::<GateProblem>(&self.body).map_or_else(|_| self.text(), |problem| problem.code)
    }

    /// Status, the gate's word, and its code where it has one.
    pub(crate) fn said(&self) -> (u16, &str, String) {
        let code = if self.result() == "passed" { String::new() } else { self.code() };
        (self.status, self.result(), code)
    }
}
