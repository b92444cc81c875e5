//! The asking side.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::protocol::{ComponentStatus, Request, Response, Start};
use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::paths::Paths;

/// A first process that does not answer for so long is as good as none.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Speaks with the first process of one machine.
#[derive(Debug, Clone)]
pub struct Client {
    machine: Machine,
    paths: Paths,
}

impl Client {
    /// For that machine; nothing is connected yet.
    pub fn new(paths: &Paths, machine: Machine) -> Self {
        Self { machine, paths: paths.clone() }
    }

    /// The process id, on this host, of the machine's first process.
    /// Fails if the machine does not run.
    pub fn pid(&self) -> Result<i32> {
        let stream = self.connect()?;
        let socket = self.paths.socket(self.machine);
        let peer = rustix::net::sockopt::socket_peercred(&stream)
            .map_err(|error| Error::file("ask who serves", &socket)(error.into()))?;
        Ok(peer.pid.as_raw_nonzero().get())
    }

    /// Starts a component. Fails if one of that name runs, or its program cannot be started.
    pub fn start(&self, start: Start) -> Result<()> {
        self.ask(&Request::Start(start)).map(|_| ())
    }

    /// Sends a signal (SIGHUP, SIGKILL, SIGTERM, SIGCONT or SIGSTOP, by number) to a component.
    /// Fails if that component does not run.
    pub fn signal(&self, name: &str, signal: i32) -> Result<()> {
        self.ask(&Request::Signal { name: name.to_owned(), signal }).map(|_| ())
    }

    /// All components that were started, in order, each with its present state.
    pub fn components(&self) -> Result<Vec<ComponentStatus>> {
        match self.ask(&Request::List)? {
            Response::Components(components) => Ok(components),
            other => Err(self.refused(format!("an answer that does not fit: {other:?}"))),
        }
    }

    fn connect(&self) -> Result<UnixStream> {
        let socket = self.paths.socket(self.machine);
        let stream = UnixStream::connect(&socket).map_err(Error::file("connect to", &socket))?;
        stream.set_read_timeout(Some(ANSWER_WITHIN)).map_err(Error::file("set up", &socket))?;
        Ok(stream)
    }

    fn ask(&self, request: &Request) -> Result<Response> {
        let socket = self.paths.socket(self.machine);
        let document =
            |source| Error::Document { what: format!("what {} said", self.machine.name()), source };
        let text = serde_json::to_string(request).map_err(document)?;
        let mut stream = self.connect()?;
        writeln!(stream, "{text}").map_err(Error::file("write to", &socket))?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).map_err(Error::file("read from", &socket))?;
        match serde_json::from_str(&line).map_err(document)? {
            Response::Refused(message) => Err(self.refused(message)),
            response => Ok(response),
        }
    }

    fn refused(&self, message: String) -> Error {
        Error::Refused { machine: self.machine.name(), message }
    }
}
