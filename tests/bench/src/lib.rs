//! What do the checks cost? Each figure stands beside the same thing done without them, measured in the same
//! minute on the same machine, in turns, so that noise meets both.

#![allow(clippy::disallowed_types, reason = "it measures what clients wait for, never a lease")]

pub mod connection;
pub mod figures;
pub mod handover;
pub mod load;
pub mod programs;
pub mod proxies;
pub mod raise;
pub mod sink;
pub mod sql;
pub mod table;
pub mod through;
