//! The dead man: whatever becomes of *hold*, of a guard or of the socket between them, the workload is dead before
//! the deadline. Real processes, a real Redis, faults at random instants.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests fail as tests do"
)]

#[allow(dead_code, reason = "shared with tests that need more of it")]
#[path = "../hold/support/mod.rs"]
mod support;

mod cgroup;
mod guards;
mod lane;
mod liars;
mod sidecars;
mod threads;
mod unkillable;
