//! The first process of a pod's sandbox: keeps its namespaces alive, reaps what is left to it, and ends on
//! SIGTERM. It is there for pods that share one PID namespace.

use std::io;

use rustix::process::{WaitOptions, wait};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<()> {
    let mut child = signal(SignalKind::child())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    loop {
        tokio::select! {
            _ = child.recv() => reap(),
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
        }
    }
}

/// One signal may stand for many children.
fn reap() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}
