//! What the tests of the whole are told with. A test opens a [`Stage`] (a namespace of its own on a real
//! Kubernetes, with the operator installed from this checkout), puts a lease, a Redis behind a proxy and a
//! workload on it, breaks something, and reads what became of it:
//!
//! ```no_run
//! # use fencedlease_end_to_end::{Direction, Fault, Stage, Workload, seconds};
//! # fn main() -> anyhow::Result<()> {
//! let stage = Stage::open("cut off")?;
//! let redis = stage.redis_behind_proxy()?;
//! stage.lease("report", &redis, &fencedlease_end_to_end::timings::short())?;
//! stage.start(&Workload::deployment("report").guarded_by("report").replicas(2))?;
//! let holder = stage.holder("report", seconds(60))?;
//! let death = holder.watch_death("app", seconds(30))?;
//! redis.set(&holder, Fault::Drop { direction: Direction::Both })?;
//! let dead_at = death.seen()?;
//! # Ok(())
//! # }
//! ```
//!
//! Everything is asked through kubectl, so that it holds on any cluster. Without one the tests fail and say how
//! to have one; none is skipped.

#![allow(clippy::disallowed_types, reason = "tests measure waits of their own, never a lease")]

mod admission;
pub mod chart;
mod cluster;
mod death;
mod events;
mod flag;
mod gate;
pub mod images;
mod journal;
pub mod late_write;
mod lease;
mod node_shell;
mod operator;
mod pod;
mod proxy;
mod redis;
mod stage;
pub mod timings;
mod workload;

pub use admission::WebhookChanged;
pub use cluster::Cluster;
pub use death::DeathWatch;
pub use fencedlease_faults::matrix;
pub use fencedlease_faults::{Counters, Direction, Fault, Snapshot};
pub use flag::FlagWatch;
pub use gate::Gate;
pub use journal::{Journal, WRITES_JOURNAL};
pub use node_shell::{HostProcess, NodeShell};
pub use operator::OperatorAway;
pub use pod::{Pod, Termination};
pub use proxy::PodProxy;
pub use redis::RedisBehindProxy;
pub use stage::Stage;
pub use workload::Workload;

use std::time::Duration;

/// So many seconds.
pub const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}
