//! The operator's parts: what it injects, admits, serves, watches and reports.

pub mod admin;
pub mod app;
pub mod args;
pub mod cache;
pub mod certificates;
pub mod installation;
pub mod metrics;
pub mod restart_rules;
pub mod serve;
pub mod tasks;
