//! A nemesis run: several holders of each lease as real processes of the shipped program, on a real Redis behind
//! proxies, random faults by seed, and a judge of the recorded history.
//!
//! Every process of a workload keeps its first and last instant on a [`board`] that outlives SIGKILL; [`monitor`]
//! reads from Redis itself what was executed there and when; [`history::check`] is a pure function over both.

pub mod board;
pub mod faults;
pub mod history;
pub mod lane;
pub mod monitor;
pub mod processes;
pub mod run;
pub mod soak;
