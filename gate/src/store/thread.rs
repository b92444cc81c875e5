//! The one thread that writes: disks may stall, and no request that needs no raise waits for them.

use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fencedlease_wire::gate::GuardedResource;

use super::{Record, Store};
use crate::check::Mark;

/// How many raises one sync stores at most.
const BATCH: usize = 256;

/// Something to be stored, and who is told: whether it is durable, and how long the sync took.
pub struct Job {
    /// Of which resource.
    pub resource: GuardedResource,
    /// What.
    pub mark: Mark,
    /// Called on the store's thread.
    pub done: Box<dyn FnOnce(Stored) + Send>,
}

/// What became of a [`Job`].
#[derive(Clone, Copy, Debug)]
pub struct Stored {
    /// Whether it is durable.
    pub is_durable: bool,
    /// Whether nothing can be stored until a restart.
    pub is_broken: bool,
    /// How long the write and the sync took.
    pub took: Duration,
}

/// The store, on a thread of its own.
pub struct StoreThread {
    jobs: mpsc::Sender<Job>,
    thread: JoinHandle<Store>,
}

/// Why the thread could not end well.
#[derive(Debug, thiserror::Error)]
pub enum StoreThreadError {
    /// It could not be started.
    #[error("cannot start the store's thread")]
    Start(#[source] std::io::Error),
    /// It panicked.
    #[error("the store's thread failed")]
    Panicked,
}

impl StoreThread {
    /// Starts the thread.
    pub fn start(store: Store) -> Result<Self, StoreThreadError> {
        let (jobs, inbox) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || run(store, &inbox))
            .map_err(StoreThreadError::Start)?;
        Ok(Self { jobs, thread })
    }

    /// Where jobs are handed in. The thread ends when the last of these is gone.
    pub fn jobs(&self) -> mpsc::Sender<Job> {
        self.jobs.clone()
    }

    /// Waits until every job is done and every sender is gone.
    pub fn join(self) -> Result<Store, StoreThreadError> {
        drop(self.jobs);
        self.thread.join().map_err(|_| StoreThreadError::Panicked)
    }
}

fn run(mut store: Store, inbox: &mpsc::Receiver<Job>) -> Store {
    while let Ok(first) = inbox.recv() {
        let mut jobs = vec![first];
        jobs.extend(inbox.try_iter().take(BATCH - 1));
        let time_ms = unix_ms();
        let record = |job: &Job| Record { resource: job.resource.clone(), mark: job.mark.clone(), time_ms };
        let records: Vec<Record> = jobs.iter().map(record).collect();
        let start = tokio::time::Instant::now();
        let outcome = store.append(&records);
        if let Err(error) = &outcome {
            tracing::error!(error = error as &dyn std::error::Error, "a raise could not be stored");
        }
        let stored =
            Stored { is_durable: outcome.is_ok(), is_broken: store.is_broken(), took: start.elapsed() };
        for job in jobs {
            (job.done)(stored);
        }
    }
    store
}

/// Now, in ms of Unix time.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
