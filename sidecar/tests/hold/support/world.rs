//! A Redis, and proxies in front of it.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::JoinHandle;

use fencedlease_faults::{FaultProxy, ProxyHandle, RedisServer};
use tokio::sync::oneshot;

/// A Redis for one test.
pub(crate) struct World {
    pub(crate) redis: RedisServer,
}

/// A proxy of its own for one pod, on a thread of its own.
pub(crate) struct Proxy {
    pub(crate) handle: ProxyHandle,
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_redis(&[])
    }

    /// With further arguments for Redis.
    pub(crate) fn with_redis(arguments: &[&str]) -> Self {
        Self { redis: RedisServer::with_args(arguments).unwrap() }
    }

    pub(crate) fn proxy(&self) -> Proxy {
        let target = self.redis.address().to_string();
        let (send, started) = mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let proxy = FaultProxy::start(target).await.unwrap();
                send.send((proxy.handle().clone(), proxy.address())).unwrap();
                let _ = stopped.await;
            });
        });
        let (handle, address) = started.recv().unwrap();
        Proxy { handle, address, stop: Some(stop), thread: Some(thread) }
    }

    /// A key of the lease shop/report.
    pub(crate) fn key(part: &str) -> String {
        format!("fencedlease:v1:{{test/shop/report}}:{part}")
    }

    pub(crate) fn has_lease(&self) -> bool {
        self.redis.cli(&["EXISTS", &Self::key("lease")]).unwrap() == "1"
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
