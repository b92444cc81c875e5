//! The operator's parts: what it injects, admits, serves, watches and reports.

pub mod admin;
pub mod admit;
pub mod app;
pub mod args;
pub mod cache;
pub mod certificates;
pub mod controller;
pub mod embedded_redis;
pub mod endpoint;
pub mod events;
pub mod gate_keys;
pub mod inject;
pub mod installation;
pub mod metrics;
pub mod refusals;
pub mod replace;
pub mod restart_rules;
pub mod serve;
pub mod status;
pub mod tasks;
pub mod tidy;
pub mod unguarded;
pub mod webhook;

#[cfg(test)]
mod fake_api;

/// Who wrote a field, as the API server remembers it.
pub const FIELD_MANAGER: &str = "fencedlease-operator";

/// For writes in our own name.
fn post_params() -> kube::api::PostParams {
    kube::api::PostParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..kube::api::PostParams::default()
    }
}
