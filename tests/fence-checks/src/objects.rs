//! Object stores that others wrote, with the recipes of `guards/object-stores` in front of them.

mod check;
mod driver;
mod server;

pub use check::{ObjectCheck, Shape};
pub use server::Kind;
