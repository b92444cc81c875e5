//! Probes and metrics on the pod's address: `/startup`, `/ready` and `/metrics`. A probe answers 200 or 503
//! with one line that says what is missing.

use std::sync::Arc;

use axum::Router;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use fencedlease_core::BootTime;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::metrics::Metrics;
use super::pod::Published;

/// What probes and metrics are answered from.
#[derive(Clone)]
pub struct Admin {
    /// The last snapshot.
    pub published: watch::Receiver<Arc<Published>>,
    /// The present instant.
    pub now: fn() -> BootTime,
    /// Whether a waiting pod is Ready.
    pub standby_is_ready: bool,
    /// The metrics.
    pub metrics: Metrics,
}

/// Serves until the task is dropped; ends only if the listener fails.
pub async fn serve(listener: TcpListener, admin: Admin) -> std::io::Result<()> {
    let routes = Router::new()
        .route("/startup", get(startup))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .with_state(admin);
    axum::serve(listener, routes).await
}

async fn startup(Shared(admin): Shared<Admin>) -> Response {
    // Guard binary and guard.sock are in place before anything is served.
    probe(admin.published.borrow().not_started())
}

async fn ready(Shared(admin): Shared<Admin>) -> Response {
    let published = Arc::clone(&admin.published.borrow());
    probe(published.not_ready(admin.standby_is_ready, (admin.now)()))
}

async fn metrics(Shared(admin): Shared<Admin>) -> Response {
    match admin.metrics.text() {
        Ok(text) => ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

fn probe(missing: Option<String>) -> Response {
    match missing {
        None => (StatusCode::OK, "ok\n").into_response(),
        Some(missing) => (StatusCode::SERVICE_UNAVAILABLE, format!("{missing}\n")).into_response(),
    }
}
