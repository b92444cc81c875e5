//! A proxy that does the fence check for an HTTP backend which cannot: it remembers the highest fence of each
//! resource, durably, and lets nothing of an older one through.

pub mod check;
pub mod desk;
pub mod metrics;
pub mod store;
