//! A real gate in front of a real nginx, with real clients, crashes and disks.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the helpers of tests fail as tests do"
)]

mod bodies;
mod crash;
mod disk;
mod drain;
mod end;
mod fences;
mod histories;
mod http2;
mod limits;
mod suite;
mod support;
