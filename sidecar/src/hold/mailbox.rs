//! How do other threads reach the watching one? A channel, and an eventfd that ends its sleep. Sending
//! never waits.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

/// The watching thread's end.
#[derive(Debug)]
pub struct Mailbox<T> {
    receiver: Receiver<T>,
    bell: Arc<OwnedFd>,
}

/// Everybody else's end.
#[derive(Debug)]
pub struct Post<T> {
    sender: Sender<T>,
    bell: Arc<OwnedFd>,
}

/// Both ends.
pub fn mailbox<T>() -> Result<(Post<T>, Mailbox<T>), Errno> {
    let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let (sender, receiver) = mpsc::channel();
    Ok((Post { sender, bell: Arc::clone(&bell) }, Mailbox { receiver, bell }))
}

// === impl Mailbox ===

impl<T> Mailbox<T> {
    /// Silences the bell. What is sent from now on rings it again.
    pub fn silence(&self) {
        // An empty counter is what is wanted.
        let _ = rustix::io::read(&self.bell, &mut [0_u8; 8]);
    }

    /// Rings it again, for letters that were left where they are.
    pub fn ring(&self) {
        ring(&self.bell);
    }

    /// The next letter, if there is one.
    pub fn take(&self) -> Option<T> {
        self.receiver.try_recv().ok()
    }
}

impl<T> AsFd for Mailbox<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

// === impl Post ===

impl<T> Post<T> {
    /// Sends a letter. Without a watching thread there is nobody to miss it: the process is ending.
    pub fn send(&self, letter: T) {
        if self.sender.send(letter).is_ok() {
            ring(&self.bell);
        }
    }
}

impl<T> Clone for Post<T> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), bell: Arc::clone(&self.bell) }
    }
}

fn ring(bell: &OwnedFd) {
    // A full counter is a bell that rings.
    let _ = rustix::io::write(bell, &1_u64.to_ne_bytes());
}
