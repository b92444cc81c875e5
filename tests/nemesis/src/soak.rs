//! Holders with whom nothing is wrong: Redis answers late but in time, every processor is busy, and nobody may lose
//! a lease.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use fencedlease_faults::{Clients, Direction, Fault, FaultProxy, RedisServer};
use rustix::process::Signal;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::board;
use crate::history::Said;
use crate::lane::memory_folder;
use crate::processes::{Exec, Part, program};

/// Leases held side by side, each by a process of its own with the default timings.
pub const LEASES: u64 = 4;
/// Threads that do nothing but keep the processors busy.
pub const HOGS: usize = 16;
/// Half of the default `renewTimeout`.
pub const ROUND_TRIP: Duration = Duration::from_millis(500);
/// How long it may take until everybody holds.
const START: Duration = Duration::from_secs(60);
/// From one look at everybody to the next.
const LOOK: Duration = Duration::from_millis(500);

/// Holders, the slow network before their Redis, and what keeps the machine busy.
pub struct Soak {
    holders: Vec<Exec>,
    proxy: FaultProxy,
    redis: RedisServer,
    acquired_by: u64,
    _hogs: Hogs,
    _folder: TempDir,
    _runtime: Runtime,
}

/// What has been seen so far.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Seen {
    /// Renewals that Redis has executed since everybody held.
    pub renewals: u64,
    /// Who lost the lease or ended, with the fences it had.
    pub lost: Vec<String>,
}

struct Hogs {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

// === impl Soak ===

impl Soak {
    /// Starts everything, and returns when everybody holds.
    pub fn start() -> anyhow::Result<Self> {
        let binary = program("fencedlease-sidecar", "fencedlease")?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let redis = RedisServer::start()?;
        let proxy = runtime.block_on(FaultProxy::start(redis.address().to_string()))?;
        let folder = memory_folder()?;
        let holders = (1..=LEASES)
            .map(|number| hold(&binary, &proxy, folder.path().join(number.to_string()), number))
            .collect::<anyhow::Result<_>>()?;
        let mut soak = Self {
            holders,
            proxy,
            redis,
            acquired_by: 0,
            _hogs: Hogs::start(),
            _folder: folder,
            _runtime: runtime,
        };
        soak.wait_until_held()?;
        // Not before: who connects, logs in and acquires needs three round trips within one timeout.
        soak.set_round_trip(ROUND_TRIP);
        soak.acquired_by = soak.executed()?;
        Ok(soak)
    }

    /// From now on an answer of Redis comes so much after its request.
    pub fn set_round_trip(&self, round_trip: Duration) {
        let delay_ms = u64::try_from(round_trip.as_millis() / 2).unwrap_or(u64::MAX);
        self.proxy.set(Clients::All, Fault::Delay { delay_ms, direction: Direction::Both });
    }

    /// Waits until somebody has lost a lease, at most so long, and tells what was seen.
    pub fn watch(&mut self, longest: Duration) -> anyhow::Result<Seen> {
        let until = now() + longest;
        loop {
            let lost = self.lost()?;
            if !lost.is_empty() || now() >= until {
                return Ok(Seen { renewals: self.executed()? - self.acquired_by, lost });
            }
            thread::sleep(LOOK.min(until.saturating_sub(now())));
        }
    }

    /// Ends everybody in order; fails if one is still there after 30 s.
    pub fn end(mut self) -> anyhow::Result<()> {
        for holder in &self.holders {
            holder.signal(Part::Exec, Signal::TERM);
        }
        let until = now() + Duration::from_secs(30);
        for holder in &mut self.holders {
            while !holder.has_ended()? {
                ensure!(now() < until, "run {} has not ended 30 s after SIGTERM", holder.run);
                thread::sleep(LOOK);
            }
        }
        Ok(())
    }

    fn wait_until_held(&mut self) -> anyhow::Result<()> {
        let until = now() + START;
        while !self.holders.iter().all(|holder| holder.said().iter().any(is_active)) {
            let lost = self.lost()?;
            if !lost.is_empty() || now() > until {
                bail!("not everybody holds after {START:?}; lost: {lost:?}");
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    fn lost(&mut self) -> anyhow::Result<Vec<String>> {
        let mut lost = Vec::new();
        for holder in &mut self.holders {
            let said = holder.said();
            let ended = holder.has_ended()?;
            if ended || said.iter().any(|said| !is_active(said)) || said.len() > 1 {
                lost.push(format!("run {}: {said:?}, ended: {ended}", holder.run));
            }
        }
        Ok(lost)
    }

    /// How many scripts that were sent whole, as renewals are, Redis has executed.
    fn executed(&self) -> anyhow::Result<u64> {
        let stats = self.redis.cli(&["INFO", "commandstats"])?;
        let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_eval:calls="));
        let Some(calls) = calls else { return Ok(0) };
        let digits = calls.split(',').next().unwrap_or_default();
        digits.parse().with_context(|| format!("Redis counts calls of EVAL as {digits:?}"))
    }
}

fn hold(binary: &std::path::Path, proxy: &FaultProxy, folder: PathBuf, number: u64) -> anyhow::Result<Exec> {
    let workload = ["sleep".to_owned(), "infinity".to_owned()];
    let lease = format!("soak/lease-{number}");
    Exec::start(binary, &lease, &proxy.address().to_string(), number, folder, &[], &workload)
}

/// Time since the machine was started.
fn now() -> Duration {
    Duration::from_nanos(board::now())
}

fn is_active(said: &Said) -> bool {
    matches!(said, Said::Active { .. })
}

// === impl Hogs ===

impl Hogs {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = (0..HOGS).map(|_| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        });
        let threads = threads.collect();
        Self { stop, threads }
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that spins cannot panic.
            let _ = thread.join();
        }
    }
}

// === impl Seen ===

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} renewals of {LEASES} leases, {} lost", self.renewals, self.lost.len())?;
        self.lost.iter().try_for_each(|lost| write!(f, "\n  {lost}"))
    }
}
