//! Is what a user wrote accepted? Pure decisions over annotations, FencedLeases and workloads.

pub mod annotations;
pub mod disruption;
mod gates;
pub mod lease;
mod overlap;
pub(crate) mod patch;
pub mod problem;
pub mod quantity;
pub mod rollout;
pub mod workload;

pub use problem::{Cause, Problem, Refusal};
