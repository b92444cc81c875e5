//! When does a fence check keep its word? One suite of cases for everything that compares fences where a write
//! happens: SQL, a script, a proxy. Each of them is run against the real server.
//!
//! The suite asks a [`FenceCheck`], so whatever checks fences is brought under it by a few functions. What is
//! known to be broken must turn it red: its own tests say so.

mod check;
pub mod history;
mod link;
pub mod mariadb;
mod model;
pub mod objects;
pub mod postgresql;
mod process;
pub mod redis_resource;
pub mod suite;

pub use check::{Claim, FenceCheck, Outcome};
pub use link::LossyLink;
pub use model::{Fault, Model};
pub use process::ServerError;
