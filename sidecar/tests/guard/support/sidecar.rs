//! A sidecar as the guard sees it: guard.sock, and lines of JSON.

use std::io::{IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use fencedlease_wire::guard::{FromGuard, ToGuard};
use fencedlease_wire::{HoldingId, paths};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::{Instants, PATIENCE, eventually};

/// What guards connect to.
pub(crate) struct Sidecar {
    listener: UnixListener,
}

/// One guard's connection, its hello read.
pub(crate) struct Connection {
    stream: UnixStream,
    input: Vec<u8>,
    pub(crate) hello: FromGuard,
    pub(crate) pidfd: OwnedFd,
}

impl Sidecar {
    /// Serves guard.sock in this folder.
    pub(crate) fn serve(dir: &Path) -> Self {
        let path = dir.join(paths::GUARD_SOCKET);
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        Self { listener }
    }

    /// The next guard that connects, with its hello and its pidfd.
    pub(crate) fn accept(&self) -> Connection {
        let stream = eventually("a guard that connects", || self.listener.accept().ok()).0;
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let mut bytes = [0; 4096];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received =
            recvmsg(&stream, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)
                .unwrap();
        let mut fds: Vec<OwnedFd> = control
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(fds) => Some(fds),
                _ => None,
            })
            .flatten()
            .collect();
        assert_eq!(fds.len(), 1, "one pidfd comes with the hello");
        let mut input = bytes[..received.bytes].to_vec();
        let end = input.iter().position(|byte| *byte == b'\n').expect("a whole first line");
        let rest = input.split_off(end + 1);
        let hello = serde_json::from_slice(&input[..end]).unwrap();
        assert!(matches!(hello, FromGuard::Hello { .. }), "the first line is a hello, not {hello:?}");
        Connection { stream, input: rest, hello, pidfd: fds.remove(0) }
    }

    /// Accepts a guard, welcomes it, and grants: the workload runs when this returns.
    pub(crate) fn start(&self, holding: &HoldingId, instants: Instants) -> Connection {
        let mut guard = self.accept();
        guard.welcome();
        guard.send(&instants.grant(holding, 42));
        assert_eq!(guard.expect(), FromGuard::Started { holding: holding.clone() });
        guard
    }
}

impl Connection {
    pub(crate) fn welcome(&mut self) {
        self.send(&ToGuard::Welcome { secret: "s3cret".to_owned() });
    }

    pub(crate) fn send(&mut self, message: &ToGuard) {
        let mut line = serde_json::to_vec(message).unwrap();
        line.push(b'\n');
        self.stream.write_all(&line).unwrap();
    }

    /// Sends bytes that need not be a message; the guard may close while they are under way.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The next line, or `None` at the end of the connection.
    pub(crate) fn next(&mut self) -> Option<FromGuard> {
        loop {
            if let Some(end) = self.input.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.input.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let mut chunk = [0; 4096];
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(length) => self.input.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no line from the guard in {PATIENCE:?}: {error}"),
            }
        }
    }

    /// The next line, which must be there.
    pub(crate) fn expect(&mut self) -> FromGuard {
        self.next().expect("a line, not the end of the connection")
    }

    /// Whether the guard says nothing for this long.
    pub(crate) fn is_silent_for(&mut self, duration: Duration) -> bool {
        self.stream.set_read_timeout(Some(duration)).unwrap();
        let mut chunk = [0; 4096];
        let read = self.stream.read(&mut chunk);
        self.stream.set_read_timeout(Some(PATIENCE)).unwrap();
        match read {
            Ok(length) => {
                self.input.extend_from_slice(&chunk[..length]);
                false
            }
            Err(error) => matches!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
    }
}
