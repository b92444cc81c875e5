//! Is what a user wrote accepted? Pure decisions over annotations, FencedLeases and workloads.

pub mod annotations;
pub mod lease;
pub mod problem;
pub mod quantity;

pub use problem::{Cause, Problem, Refusal};
