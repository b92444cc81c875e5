//! How do the operator's tasks end? All together: the first to end ends the process, with its reason.

use std::future::Future;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long tasks may take to end once they are told to.
const END: Duration = Duration::from_secs(20);

/// Every task of the process, and the word that ends them.
pub struct Tasks {
    set: JoinSet<&'static str>,
    stop: watch::Sender<bool>,
}

/// Why the process ended.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// A task ended that should have run on.
    #[error("the task {0:?} ended by itself")]
    Ended(&'static str),
    /// A task panicked.
    #[error("a task failed")]
    Failed(#[from] tokio::task::JoinError),
    /// Signals cannot be received.
    #[error("cannot receive signals")]
    Signals(#[source] std::io::Error),
}

impl Default for Tasks {
    fn default() -> Self {
        Self { set: JoinSet::new(), stop: watch::Sender::new(false) }
    }
}

impl Tasks {
    /// Turns true when tasks should end.
    pub fn stop(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Runs `task`, which ends only after [`Tasks::stop`] turned true.
    pub fn add(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.set.spawn(async move {
            task.await;
            name
        });
    }

    /// Runs until SIGTERM or SIGINT, then calls `leave`, then ends every task; or until a task ends by
    /// itself, which is an error.
    pub async fn run<F: Future<Output = ()>>(mut self, leave: impl FnOnce() -> F) -> Result<(), TaskError> {
        let mut terminate = signal(SignalKind::terminate()).map_err(TaskError::Signals)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(TaskError::Signals)?;
        let outcome = tokio::select! {
            Some(ended) = self.set.join_next() => Err(reason(ended)),
            _ = terminate.recv() => Ok(()),
            _ = interrupt.recv() => Ok(()),
        };
        if outcome.is_ok() {
            tracing::info!("told to end");
            tokio::select! {
                () = leave() => {}
                // A second signal is impatience.
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
        self.stop.send_replace(true);
        let ended = timeout(END, async { while self.set.join_next().await.is_some() {} }).await;
        if ended.is_err() {
            tracing::warn!(left = self.set.len(), "tasks did not end in time");
        }
        outcome
    }
}

fn reason(ended: Result<&'static str, tokio::task::JoinError>) -> TaskError {
    match ended {
        Ok(name) => TaskError::Ended(name),
        Err(error) => TaskError::Failed(error),
    }
}

#[cfg(test)]
mod tests;
