//! A real Kubernetes for whole-system tests: brought up and down on this host without leaving a trace, or
//! the one that a kubeconfig names.

#![allow(clippy::disallowed_types, reason = "the harness measures waits of its own, never a lease")]

pub mod cgroups;
pub mod cluster;
pub mod command;
pub mod components;
pub mod config;
pub mod error;
pub mod images;
pub mod init;
pub mod kubectl;
pub mod machine;
pub mod network;
pub mod node;
pub mod paths;
pub mod pki;
pub mod progress;
pub mod target;
pub mod testing;
pub mod tools;
