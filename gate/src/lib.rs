//! A proxy that does the fence check for an HTTP backend which cannot: it remembers the highest fence of each
//! resource, durably, and lets nothing of an older one through.

pub mod admin;
pub mod answer;
pub mod app;
pub mod args;
pub mod backend;
pub mod body;
pub mod check;
pub mod desk;
pub mod exchange;
pub mod headers;
pub mod keys;
pub mod listener;
pub mod metrics;
pub mod outlive;
pub mod route;
pub mod service;
pub mod stall;
pub mod store;
pub mod tls;
pub mod workers;
