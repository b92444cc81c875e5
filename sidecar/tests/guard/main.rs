//! The guard as PID 1 of a real PID namespace, with real workloads, under a sidecar that these tests play.
//! They need root and Linux namespaces, as a container runtime does.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail like tests"
)]

mod beside;
mod connection;
mod instants;
mod lifecycle;
mod processes;
mod refusals;
mod support;
