//! A real MariaDB with the fence check installed, and the ways in which an application writes to it.

mod check;
mod server;

pub use check::{Isolation, MariadbCheck, Shape};
pub use server::MariadbServer;
