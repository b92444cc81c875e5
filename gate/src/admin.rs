//! How does one see whether the gate works? Health, metrics, and the highest fences for people.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::desk::{Desk, Row};
use crate::metrics::{Metrics, Now};
use crate::store::unix_ms;

/// What the admin port tells of.
#[derive(Clone)]
pub struct Admin {
    /// The doors.
    pub desk: Arc<Desk>,
    /// The counters.
    pub metrics: Arc<Metrics>,
    /// Whether the end was asked for.
    pub is_ending: Arc<AtomicBool>,
}

/// `/healthz`, `/readyz`, `/metrics`, and the page of the highest fences at `/`.
pub fn router(admin: Admin) -> Router {
    Router::new()
        .route("/", get(fences))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/metrics", get(scrape))
        .with_state(admin)
}

/// A broken store is cured by a restart alone, so the process counts as dead with it.
async fn healthz(State(admin): State<Admin>) -> (StatusCode, &'static str) {
    if admin.desk.is_broken() {
        (StatusCode::SERVICE_UNAVAILABLE, "the store is broken until a restart; see the log\n")
    } else {
        (StatusCode::OK, "ok\n")
    }
}

async fn readyz(State(admin): State<Admin>) -> (StatusCode, &'static str) {
    let missing = if admin.is_ending.load(Ordering::Relaxed) {
        "not ready: ending\n"
    } else if admin.desk.is_broken() {
        "not ready: the store is broken until a restart; see the log\n"
    } else if !admin.desk.is_open() {
        "not ready: waiting for what a gate that was killed may have left on its way to the backend\n"
    } else {
        return (StatusCode::OK, "ready\n");
    };
    (StatusCode::SERVICE_UNAVAILABLE, missing)
}

async fn scrape(State(admin): State<Admin>) -> Response {
    let now = Now { on_their_way: admin.desk.on_their_way(), is_broken: admin.desk.is_broken() };
    match admin.metrics.render(now) {
        Ok(text) => ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn fences(State(admin): State<Admin>) -> String {
    page(&admin.desk.rows(), unix_ms())
}

fn page(rows: &[Row], now_ms: u64) -> String {
    let widest = rows.iter().map(|row| row.resource.as_str().len()).max().unwrap_or(0).max("RESOURCE".len());
    let mut page =
        format!("{:widest$}  {:>15}  {:16}  {:>10}  ON THEIR WAY\n", "RESOURCE", "FENCE", "HOLDER", "SINCE");
    for Row { resource, highest, since_ms, on_their_way } in rows {
        let fence = highest.as_ref().map_or_else(|| "-".to_owned(), |mark| mark.fence.to_string());
        let holder = highest.as_ref().and_then(|mark| mark.holder.as_ref());
        let holder = holder.map_or("-", |holder| holder.as_str());
        let since = if highest.is_some() { ago(now_ms.saturating_sub(*since_ms)) } else { "-".to_owned() };
        // Writing to a text cannot fail.
        let _ = writeln!(
            page,
            "{:widest$}  {fence:>15}  {holder:16}  {since:>10}  {on_their_way}",
            resource.as_str()
        );
    }
    page
}

/// As kubectl shows ages, in the two greatest units.
fn ago(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h{}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{}h", seconds / 86400, seconds % 86400 / 3600),
    }
}

#[cfg(test)]
mod tests;
