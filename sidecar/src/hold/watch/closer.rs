//! Closes what a client had a hand in, on a thread of its own: the last close of a descriptor can take as long as
//! the client likes (a TCP socket that lingers, a file on a server that hangs), and a socket's close is the close
//! of every descriptor that lies in it unread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;

/// With more descriptors than these still open, no more are taken in. One message can carry 253 more,
/// connections and clients of the other sockets have some 400, and a process commonly may have 1024: beyond
/// that the kernel closes what it cannot hand over, while we wait.
const MOST_OPEN: usize = 256;

/// Hands things over to be closed, and never waits for that.
#[derive(Debug)]
pub(super) struct Closer {
    things: Sender<Thing>,
    open: Arc<AtomicUsize>,
}

/// Something to close, and how many descriptors it has.
struct Thing {
    _owner: Box<dyn Send>,
    weight: usize,
}

// === impl Closer ===

impl Closer {
    /// Starts the thread. Nobody joins it, since it may hang as long as a client likes; the end of the process does
    /// not wait for lingering sockets.
    pub(super) fn start() -> io::Result<Self> {
        let (things, arriving) = mpsc::channel::<Thing>();
        let open = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&open);
        thread::Builder::new().name("closer".to_owned()).stack_size(64 * 1024).spawn(move || {
            for Thing { _owner: owner, weight } in arriving {
                drop(owner);
                counted.fetch_sub(weight, Ordering::AcqRel);
            }
        })?;
        Ok(Self { things, open })
    }

    /// Closes by dropping, later. `weight` is the number of descriptors.
    pub(super) fn close(&self, owner: impl Send + 'static, weight: usize) {
        self.open.fetch_add(weight, Ordering::AcqRel);
        // The thread ends only after this sender.
        let _ = self.things.send(Thing { _owner: Box::new(owner), weight });
    }

    /// Whether so much is still open that no more descriptors may be taken in.
    pub(super) fn is_behind(&self) -> bool {
        self.open.load(Ordering::Acquire) > MOST_OPEN
    }
}
