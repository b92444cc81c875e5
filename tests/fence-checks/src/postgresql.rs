//! A real PostgreSQL with the fence check installed, and the ways in which an application writes to it.

mod check;
mod pool;
mod server;

pub use check::{Isolation, PostgresCheck, Shape};
pub use pool::PgBouncer;
pub use server::PostgresServer;
