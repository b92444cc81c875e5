//! How does one see whether the operator works? Health for the kubelet, metrics for Prometheus.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use fencedlease_crds::FencedLease;
use kube::runtime::reflector::Store;

use crate::metrics::Metrics;

/// What still stands between the operator and being ready, by name.
#[derive(Clone, Default)]
pub struct Readiness {
    missing: Arc<Mutex<BTreeSet<&'static str>>>,
}

impl Readiness {
    /// Not ready until `what` is [`Readiness::done`].
    pub fn needs(&self, what: &'static str) {
        self.lock().insert(what);
    }

    /// `what` no longer stands in the way.
    pub fn done(&self, what: &'static str) {
        self.lock().remove(what);
    }

    /// What is missing, as one line; `None` when ready.
    pub fn missing(&self) -> Option<String> {
        let missing = self.lock();
        let names: Vec<&str> = missing.iter().copied().collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<&'static str>> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone)]
struct Admin {
    readiness: Readiness,
    metrics: Arc<Metrics>,
    leases: Store<FencedLease>,
}

/// `/healthz` (the process answers), `/readyz` and `/metrics`.
pub fn router(readiness: Readiness, metrics: Arc<Metrics>, leases: Store<FencedLease>) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readyz))
        .route("/metrics", get(scrape))
        .with_state(Admin { readiness, metrics, leases })
}

async fn readyz(State(admin): State<Admin>) -> (StatusCode, String) {
    match admin.readiness.missing() {
        None => (StatusCode::OK, "ready\n".to_owned()),
        Some(missing) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {missing}\n")),
    }
}

async fn scrape(State(admin): State<Admin>) -> Response {
    let leases = admin.leases.state();
    match admin.metrics.render(leases.iter().map(AsRef::as_ref)) {
        Ok(text) => ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

#[cfg(test)]
mod tests;
