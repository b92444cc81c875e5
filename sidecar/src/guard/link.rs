//! The connection to the sidecar: lines of JSON over `guard.sock`, never waited for.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use fencedlease_wire::guard::{FromGuard, ToGuard};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType, connect, send, sendmsg, socket_with,
};

use crate::lines::{LineError, Lines};

/// A connection to the sidecar.
#[derive(Debug)]
pub(super) struct Link {
    socket: OwnedFd,
    input: Lines,
    output: Vec<u8>,
}

/// Why a connection is of no more use.
#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    /// The sidecar closed it.
    #[error("the sidecar closed the connection")]
    Closed,
    /// The system refused a call.
    #[error("the connection failed")]
    Failed(#[from] Errno),
    /// A line that is none of ours.
    #[error(transparent)]
    Line(#[from] LineError),
    /// A word of ours that JSON cannot say.
    #[error("a word of ours has no JSON form")]
    NoForm(#[from] serde_json::Error),
    /// The sidecar does not read, and more has piled up than a guard ever has to say.
    #[error("the sidecar does not read")]
    Clogged,
}

/// What one pass reads at most: more than a socket buffer holds, and parsed in a few milliseconds, so that
/// a flood cannot hold up an instant.
const PASS_BYTES: usize = 256 * 1024;
const OUTPUT_BYTES: usize = 64 * 1024;

impl Link {
    /// Connects, or fails at once: a socket whose queue is full counts as absent.
    pub(super) fn connect(path: &Path) -> Result<Self, LinkError> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(Self { socket, input: Lines::default(), output: Vec::new() })
    }

    /// Queues a line and sends what the socket takes.
    pub(super) fn send(&mut self, line: &FromGuard) -> Result<(), LinkError> {
        self.queue(line)?;
        self.flush()
    }

    /// Sends the first line, with the proof of death.
    pub(super) fn send_hello(&mut self, hello: &FromGuard, pidfd: BorrowedFd<'_>) -> Result<(), LinkError> {
        self.queue(hello)?;
        let fds = [pidfd];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(&fds)) {
            return Err(Errno::NOBUFS.into());
        }
        let sent = sendmsg(&self.socket, &[IoSlice::new(&self.output)], &mut control, SendFlags::NOSIGNAL)?;
        self.output.drain(..sent);
        Ok(())
    }

    /// Sends what is queued, as far as the socket takes it.
    pub(super) fn flush(&mut self) -> Result<(), LinkError> {
        while !self.output.is_empty() {
            match send(&self.socket, &self.output, SendFlags::NOSIGNAL) {
                Ok(sent) => drop(self.output.drain(..sent)),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Whether something is queued.
    pub(super) fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Reads what has arrived and hands over each message, also those before an end or an error.
    pub(super) fn read(&mut self, mut each: impl FnMut(ToGuard)) -> Result<(), LinkError> {
        let mut chunk = [0; 16 * 1024];
        let mut total = 0;
        while total < PASS_BYTES {
            match rustix::io::read(&self.socket, &mut chunk) {
                Ok(0) => return Err(LinkError::Closed),
                Ok(length) => {
                    total += length;
                    self.input.push(&chunk[..length]);
                    while let Some(message) = self.input.message()? {
                        each(message);
                    }
                }
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn queue(&mut self, line: &FromGuard) -> Result<(), LinkError> {
        if self.output.len() > OUTPUT_BYTES {
            return Err(LinkError::Clogged);
        }
        serde_json::to_writer(&mut self.output, line)?;
        self.output.push(b'\n');
        Ok(())
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
