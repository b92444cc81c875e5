//! One connection of a guard, or of something that says so. Nothing on it is waited for, and it may not
//! cost more than a guard ever needs.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use fencedlease_core::BootTime;
use fencedlease_wire::guard::{FromGuard, MAX_LINE_BYTES, ToGuard};
use rustix::fs::{fstat, fstatfs, readlink};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};

use crate::hold::pod::{ConnectionId, Hello};
use crate::lines::{LineError, Lines};
use crate::sys;

/// A guard says a handful of lines in its life.
const MAX_LINES: u32 = 256;
/// What a client that does not read may leave unread.
const MAX_OUTPUT_BYTES: usize = 16 * 1024;
/// `SCM_MAX_FD`, what one message can carry: what does not fit is closed by the kernel, while we wait.
const MAX_DESCRIPTORS: usize = 253;
/// `PIDFD_FS_MAGIC`: here each process has one inode, so that two pidfds can be compared (Linux 6.9).
const PIDFS: i64 = 0x5049_4446;

/// A connection to `guard.sock`.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: ConnectionId,
    socket: OwnedFd,
    pub(super) opened_at: BootTime,
    /// The pidfd of the process that connected, where the kernel tells it (Linux 6.5).
    peer: Option<OwnedFd>,
    /// The pidfd that came with the first bytes.
    sent: Option<OwnedFd>,
    /// What else came. Not closed here: that can take as long as the client likes.
    unwanted: Vec<OwnedFd>,
    pub(super) has_greeted: bool,
    lines: u32,
    input: Lines,
    output: Vec<u8>,
    /// To be closed when all is sent.
    pub(super) closing: bool,
}

/// What a client said.
#[derive(Debug)]
pub(super) enum Word {
    Hello(Hello),
    Other(FromGuard),
}

/// Why a connection is cut.
#[derive(Debug, thiserror::Error)]
pub(super) enum Cut {
    #[error("it was closed")]
    Closed,
    #[error("it failed")]
    Failed(#[from] Errno),
    #[error(transparent)]
    Line(#[from] LineError),
    #[error("a word of ours has no JSON form")]
    NoForm(#[from] serde_json::Error),
    #[error("more than {MAX_LINES} lines were said")]
    TooMuch,
    #[error("the client does not read")]
    Clogged,
    #[error("it brought more descriptors than the one pidfd of a hello")]
    Descriptors,
    #[error("too much that clients sent is still to be closed")]
    Busy,
    #[error("the first line is no hello, or came without a pidfd of the process that said it")]
    NoProof,
}

// === impl Connection ===

impl Connection {
    pub(super) fn new(id: ConnectionId, socket: OwnedFd, opened_at: BootTime) -> Self {
        Self {
            id,
            peer: sys::peer_pidfd(socket.as_fd()).ok(),
            socket,
            opened_at,
            sent: None,
            unwanted: Vec::new(),
            has_greeted: false,
            lines: 0,
            input: Lines::default(),
            output: Vec::new(),
            closing: false,
        }
    }

    /// Reads once and gives what was said; what came before a cut counts.
    pub(super) fn read(&mut self, words: &mut Vec<(ConnectionId, Word)>) -> Result<(), Cut> {
        let mut chunk = [0; MAX_LINE_BYTES];
        let Some(count) = self.receive(&mut chunk)? else { return Ok(()) };
        if count == 0 {
            return Err(Cut::Closed);
        }
        self.input.push(&chunk[..count]);
        while let Some(message) = self.input.message()? {
            self.lines += 1;
            if self.lines > MAX_LINES {
                return Err(Cut::TooMuch);
            }
            words.push((self.id, self.word(message)?));
        }
        Ok(())
    }

    /// Queues a line and sends what the socket takes.
    pub(super) fn tell(&mut self, message: &ToGuard) -> Result<(), Cut> {
        serde_json::to_writer(&mut self.output, message)?;
        self.output.push(b'\n');
        self.flush()?;
        if self.output.len() > MAX_OUTPUT_BYTES { Err(Cut::Clogged) } else { Ok(()) }
    }

    /// Sends what is queued, as far as the socket takes it.
    pub(super) fn flush(&mut self) -> Result<(), Cut> {
        while !self.output.is_empty() {
            match send(&self.socket, &self.output, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(sent) => drop(self.output.drain(..sent)),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// How many descriptors this connection keeps open.
    pub(super) fn descriptors(&self) -> usize {
        1 + usize::from(self.peer.is_some()) + usize::from(self.sent.is_some()) + self.unwanted.len()
    }

    pub(super) fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// The proof of death of the process behind this connection. What the kernel says of who connected is
    /// worth more than what was sent.
    pub(super) fn take_pidfd(&mut self) -> Option<OwnedFd> {
        let sent = self.sent.take();
        self.peer.take().or(sent)
    }

    fn word(&mut self, message: FromGuard) -> Result<Word, Cut> {
        match message {
            FromGuard::Hello { container, secret, holding, acted } if !self.has_greeted => {
                let sent = self.sent.as_ref().filter(|sent| is_pidfd(sent)).ok_or(Cut::NoProof)?;
                if self.peer.as_ref().is_some_and(|peer| are_of_different_processes(peer, sent)) {
                    return Err(Cut::NoProof);
                }
                self.has_greeted = true;
                Ok(Word::Hello(Hello { container, secret, holding, acted }))
            }
            FromGuard::Hello { .. } => Err(Cut::NoProof),
            _ if !self.has_greeted => Err(Cut::NoProof),
            message => Ok(Word::Other(message)),
        }
    }

    /// `None` if nothing has arrived.
    fn receive(&mut self, chunk: &mut [u8]) -> Result<Option<usize>, Cut> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let received = match recvmsg(&self.socket, &mut [IoSliceMut::new(chunk)], &mut control, flags) {
            Ok(received) => received,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(Errno::CONNRESET) => return Err(Cut::Closed),
            Err(error) => return Err(error.into()),
        };
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                let mut fds = fds;
                if self.sent.is_none() && !self.has_greeted {
                    self.sent = fds.next();
                }
                self.unwanted.extend(fds);
            }
        }
        if self.unwanted.is_empty() { Ok(Some(received.bytes)) } else { Err(Cut::Descriptors) }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Everything else that can be polled would be a proof of nothing. The name is the kernel's own, where a file's begins
/// with a slash. It is asked of nobody: the lines of `fdinfo` or the state of a file system may be a client's to give,
/// and to keep waiting for.
fn is_pidfd(fd: &OwnedFd) -> bool {
    // Linux 6.9 has the second form.
    readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()), Vec::new())
        .is_ok_and(|name| name.as_bytes() == b"anon_inode:[pidfd]" || name.as_bytes().starts_with(b"pidfd:["))
}

/// Sure only where pidfds have a file system of their own.
fn are_of_different_processes(one: &OwnedFd, other: &OwnedFd) -> bool {
    let on_pidfs = |fd: &OwnedFd| fstatfs(fd).is_ok_and(|found| found.f_type == PIDFS);
    let (Ok(first), Ok(second)) = (fstat(one), fstat(other)) else { return true };
    on_pidfs(one) && (!on_pidfs(other) || first.st_ino != second.st_ino)
}
