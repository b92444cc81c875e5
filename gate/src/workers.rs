//! Which thread serves which client? As many threads as there are processors, each with a runtime and connections
//! to the backend of its own: all that one request waits for wakes it where it is, and never another thread.

use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::service::Gate;

/// The threads. They end, with all that they still do, when this is dropped.
pub struct Workers(Vec<Worker>);

/// One thread.
pub struct Worker {
    runtime: Handle,
    gate: Arc<Gate>,
    /// Shared with each of its clients, which are counted by it.
    clients: Arc<()>,
    _end: oneshot::Sender<()>,
}

/// Says to the worker that a client is served, for as long as it is.
pub struct Served(#[expect(dead_code, reason = "it counts by being there")] Arc<()>);

impl Workers {
    /// Starts the threads, each with a gate of its own.
    pub fn start(gate: impl Fn() -> Gate) -> io::Result<Self> {
        let count = thread::available_parallelism().map_or(1, NonZero::get);
        (0..count).map(|_| Worker::start(gate())).collect::<io::Result<Vec<_>>>().map(Self)
    }

    /// The one with the fewest clients; `None` if there are no threads at all.
    pub fn idlest(&self) -> Option<&Worker> {
        self.0.iter().min_by_key(|worker| Arc::strong_count(&worker.clients))
    }
}

impl Worker {
    fn start(gate: Gate) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        thread::Builder::new().name("clients".to_owned()).spawn(move || {
            // No word comes: the sender is dropped.
            let _ = runtime.block_on(ended);
        })?;
        Ok(Self { runtime: handle, gate: Arc::new(gate), clients: Arc::new(()), _end: end })
    }

    /// Its runtime.
    pub fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Its gate.
    pub fn gate(&self) -> Arc<Gate> {
        Arc::clone(&self.gate)
    }

    /// Counts a client.
    pub fn serve(&self) -> Served {
        Served(Arc::clone(&self.clients))
    }
}
