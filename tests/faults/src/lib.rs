//! What tests break on purpose: a Redis of their own, and a TCP proxy in front of it that delays, holds,
//! drops and cuts. Both are real: the one is a `redis-server` process, the other speaks TCP.
//!
//! A test asserts that its fault happened: [`Snapshot`] has counters for everything that the proxy did.

mod control;
mod counters;
mod exec_timings;
mod fault;
pub mod matrix;
mod pipe;
mod proxy;
mod redis_server;

pub use control::{ControlError, Order, fetch_snapshot, send_order, serve_control};
pub use counters::{Counters, Snapshot};
pub use exec_timings::SHORT_TIMINGS;
pub use fault::{Clients, Direction, Fault, Faults};
pub use proxy::{FaultProxy, NotSeen, ProxyHandle};
pub use redis_server::{RedisError, RedisServer};
