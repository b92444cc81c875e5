//! How does an answer get lost between a server and its client? A proxy swallows it, and then cuts the connection.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use fencedlease_faults::{Clients, Direction, Fault, FaultProxy};
use tokio::runtime::{Builder, Runtime};

use crate::check::Outcome;

/// How long the server's answer is waited for before the connection is cut.
const LIMIT: Duration = Duration::from_secs(20);

/// A server that has said nothing for this long has said all.
const QUIET: Duration = Duration::from_millis(300);

/// A way to a server on which one answer can be lost. Everything on it is gone when it is dropped.
#[derive(Debug)]
pub struct LossyLink {
    // The proxy's tasks run in it.
    runtime: Runtime,
    proxy: FaultProxy,
}

// === impl LossyLink ===

impl LossyLink {
    /// A link to the server that listens there.
    pub fn to(server: SocketAddr) -> anyhow::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let proxy = runtime.block_on(FaultProxy::start(server.to_string()))?;
        Ok(Self { runtime, proxy })
    }

    /// Where clients connect.
    fn address(&self) -> SocketAddr {
        self.proxy.address()
    }

    /// Runs a write over this link and loses the answer to its commit. `write` is given the address to connect to
    /// and a function to call right before it commits.
    pub fn lose_answer_of(&self, write: impl FnOnce(SocketAddr, &dyn Fn()) -> Outcome + Send) -> Outcome {
        let (committing, commits) = mpsc::channel();
        thread::scope(|scope| {
            let writer = scope.spawn(move || {
                let before_commit = move || {
                    self.until_quiet();
                    self.proxy.set(Clients::All, Fault::Drop { direction: Direction::Replies });
                    // Who waits for it waits until the writer is done.
                    let _ = committing.send(());
                };
                write(self.address(), &before_commit)
            });
            let cut = if commits.recv().is_ok() { self.cut_when_answered() } else { Ok(()) };
            let outcome = writer.join().unwrap_or_else(|_| Outcome::Failed("the writer panicked".to_owned()));
            match cut {
                Ok(()) => outcome,
                Err(error) => Outcome::Failed(format!("the commit was not answered: {error:#}")),
            }
        })
    }

    /// Waits until nothing has come back for a while: the end of an earlier answer, which some clients never read, is
    /// not to be taken for the commit's.
    fn until_quiet(&self) {
        let replied = || self.proxy.snapshot().total.reply_bytes;
        let mut before = replied();
        loop {
            thread::sleep(QUIET);
            let now = replied();
            if now == before {
                return;
            }
            before = now;
        }
    }

    /// Waits until an answer was swallowed, then cuts: the server has done what it was told, and the client
    /// will not hear of it. Fails if no answer came.
    fn cut_when_answered(&self) -> anyhow::Result<()> {
        let answered =
            self.runtime.block_on(self.proxy.until(LIMIT, |seen| seen.total.dropped_reply_bytes > 0));
        self.proxy.set(Clients::All, Fault::Cut);
        answered?;
        Ok(())
    }
}
