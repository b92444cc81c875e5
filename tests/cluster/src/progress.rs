//! What does a person see while a long step runs?

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How often a step that goes on says so.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Prints one line for each step, with the seconds since the start.
#[derive(Debug, Clone)]
pub struct Progress {
    started: Instant,
}

impl Progress {
    /// Starts to count now.
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }

    /// Says what is done now, and what comes next.
    pub fn step(&self, text: &str) {
        eprintln!("[{:>4}s] {text}", self.started.elapsed().as_secs());
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Does one long piece of work; while it goes on, a line every 15 seconds says so.
    pub fn during<T>(&self, text: &str, work: impl FnOnce() -> T) -> T {
        self.step(text);
        let begun = Instant::now();
        let (done, over) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                while over.recv_timeout(HEARTBEAT) == Err(RecvTimeoutError::Timeout) {
                    self.step(&format!("  … still at it after {} s", begun.elapsed().as_secs()));
                }
            });
            let result = work();
            drop(done);
            result
        })
    }
}
