//! Probes and metrics on the pod's address: `/startup`, `/ready` and `/metrics`. A probe answers 200 or 503
//! with one line that says what is missing. Anybody in the cluster can reach them, so that who came last, such as
//! the kubelet's probe, is served before who has been idle longest.

use std::collections::VecDeque;
use std::time::Duration;

use axum::Router;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use fencedlease_core::BootTime;
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};

use super::http::{is_passing, serve_client};
use super::metrics::Metrics;
use super::news::Latest;

/// Clients at a time; for one more the oldest makes room.
pub const MAX_CLIENTS: usize = 64;
/// How long a client may take for a request, or be idle between two.
const IDLE: Duration = Duration::from_secs(10);
/// How long a client may stay at all: one that does not read its answer is not waited for longer.
const STAY: Duration = Duration::from_mins(5);

/// What probes and metrics are answered from.
#[derive(Clone)]
pub struct Admin {
    /// The last snapshot.
    pub latest: Latest,
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
    let mut clients = JoinSet::new();
    let mut by_age: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    by_age.retain(|client| !client.is_finished());
                    if by_age.len() >= MAX_CLIENTS && let Some(oldest) = by_age.pop_front() {
                        oldest.abort();
                    }
                    let client = tokio::time::timeout(STAY, serve_client(stream, routes.clone(), IDLE));
                    by_age.push_back(clients.spawn(client));
                }
                Err(error) if is_passing(&error) => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(error) => return Err(error),
            },
            Some(ended) = clients.join_next() => {
                if let Err(error) = ended && error.is_panic() {
                    return Err(std::io::Error::other(error));
                }
            }
        }
    }
}

async fn startup(Shared(admin): Shared<Admin>) -> Response {
    // Guard binary and guard.sock are in place before anything is served.
    probe(admin.latest.last().not_started())
}

async fn ready(Shared(admin): Shared<Admin>) -> Response {
    let published = admin.latest.last();
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
