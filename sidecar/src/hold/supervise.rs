//! Threads whose end, however it comes, ends the process with its reason.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use fencedlease_core::BootTime;

use crate::clock;

/// Enough for what runs here; only what is touched is memory.
const STACK_BYTES: usize = 1024 * 1024;

/// How much later than those who end with it the leader's end may be told.
const FOLLOWERS: Duration = Duration::from_secs(1);

/// All threads of the process that are its work.
#[derive(Debug)]
pub struct Threads {
    sender: Sender<End>,
    ends: Receiver<End>,
    running: usize,
}

/// The end of a thread.
#[derive(Debug)]
pub struct End {
    /// Which one.
    pub thread: &'static str,
    /// What it has to say, or why it failed.
    pub outcome: Result<String, String>,
}

impl Threads {
    /// None yet.
    pub fn new() -> Self {
        let (sender, ends) = mpsc::channel();
        Self { sender, ends, running: 0 }
    }

    /// Starts one.
    pub fn start(
        &mut self,
        thread: &'static str,
        work: impl FnOnce() -> anyhow::Result<String> + Send + 'static,
    ) -> std::io::Result<()> {
        let sender = self.sender.clone();
        thread::Builder::new().name(thread.to_owned()).stack_size(STACK_BYTES).spawn(move || {
            let outcome = match catch_unwind(AssertUnwindSafe(work)) {
                Ok(outcome) => outcome.map_err(|error| format!("{error:#}")),
                Err(_) => Err("it panicked; the log has the message".to_owned()),
            };
            // Whoever listened has ended the process.
            let _ = sender.send(End { thread, outcome });
        })?;
        self.running += 1;
        Ok(())
    }

    /// Waits for the end that counts: the one of `leader`, or a failure. The others end in order only
    /// because the leader is gone, so its own end is on its way then.
    pub fn decisive_end(&mut self, leader: &str) -> End {
        let none = || End { thread: "none", outcome: Err("no thread was started".to_owned()) };
        let mut end = self.ends.recv().unwrap_or_else(|_| none());
        self.running = self.running.saturating_sub(1);
        while end.thread != leader && end.outcome.is_ok() {
            match self.ends.recv_timeout(FOLLOWERS) {
                Ok(next) => {
                    self.running = self.running.saturating_sub(1);
                    end = next;
                }
                Err(_) => end.outcome = Err("it ended though it had work".to_owned()),
            }
        }
        end
    }

    /// Waits until all have ended, or until `patience` is over.
    pub fn all_ended(&mut self, patience: Duration) {
        let until: BootTime = clock::now() + patience;
        while self.running > 0 && self.ends.recv_timeout(until.since(clock::now())).is_ok() {
            self.running -= 1;
        }
    }
}

impl Default for Threads {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
