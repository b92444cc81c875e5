//! *hold* and *guard* together, as processes in PID namespaces, with a real Redis: everything that a pod
//! does, without Kubernetes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests fail as tests do"
)]

mod clients;
mod ends;
mod gates;
mod holding;
mod left_overs;
mod losses;
mod redis_trouble;
mod refusals;
mod reports;
mod support;
