//! Ends the guard at an instant though its one thread hangs: making the process that writes the termination
//! message can take as long as the kernel finds no memory for it, and as long as the guard is there, so may be
//! what its signals do not reach.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use fencedlease_core::BootTime;

use super::SLICE;
use super::report::pause;
use crate::clock;
use crate::sys;

/// Only what is touched is memory.
const STACK_BYTES: usize = 64 * 1024;
/// No longer than this between two looks at the clock, which may jump in a suspend.
const LOOK: Duration = Duration::from_millis(20);

/// A thread that sleeps until an exit is begun, and then bounds it.
#[derive(Debug)]
pub(super) struct ExitBound {
    begun: Sender<(BootTime, u8)>,
}

// === impl ExitBound ===

impl ExitBound {
    /// Starts the thread. To be called with every signal blocked, which it inherits.
    pub(super) fn start() -> io::Result<Self> {
        let (begun, exits) = channel();
        thread::Builder::new().name("exit".to_owned()).stack_size(STACK_BYTES).spawn(move || wait(&exits))?;
        Ok(Self { begun })
    }

    /// This process ends with this code at this instant, if it is still there. The first word counts.
    pub(super) fn exit_by(&self, at: BootTime, code: u8) {
        // The thread lives as long as this sender.
        let _ = self.begun.send((at, code));
    }
}

fn wait(exits: &Receiver<(BootTime, u8)>) {
    // Best effort, as in the guard's own thread.
    let _ = sys::ask_for_short_slice(SLICE);
    if let Ok((at, code)) = exits.recv() {
        while clock::now() < at {
            pause(at.since(clock::now()).min(LOOK));
        }
        sys::exit_now(code);
    }
}

#[cfg(test)]
mod tests;
