//! `lease.sock`: how the application asks. HTTP/1.1 with JSON, so that `curl --unix-socket` is a client.
//!
//! Answers are computed at their instant, from the last snapshot that the watching thread has told. Nothing here can
//! reach the thread that watches the instants, but for the wish to step down.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State as Shared};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use fencedlease_core::BootTime;
use fencedlease_wire::socket::{CommitCheck, CommitVerdict, ErrorBody, ErrorDetail, LeaseView, ResourceKind};
use fencedlease_wire::{Fence, HoldingId};
use hyper::body::Bytes;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

use super::http::{is_passing, serve_client};
use super::news::Latest;
use super::pod::State;

mod events;
mod rejection;

/// Clients at most; more are told to come again.
pub const MAX_CLIENTS: usize = 64;
/// The longest body.
const MAX_BODY_BYTES: usize = 4096;
/// How long a client may take for a request, or be idle between two.
const IDLE: Duration = Duration::from_mins(1);
/// Clients that are being turned away at most; beyond that connections are closed without a word.
const MAX_TURNED_AWAY: usize = 16;
/// How long turning a client away may take.
const TURN_AWAY: Duration = Duration::from_secs(1);
/// How long a body may take to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// Makes the headers that a holder of this fence sends with a write.
pub type Headers = Arc<dyn Fn(Fence, &HoldingId) -> BTreeMap<String, String> + Send + Sync>;

/// What the socket is served from.
#[derive(Clone)]
pub struct Socket {
    /// The pod as it is now.
    pub latest: Latest,
    /// The present instant.
    pub now: fn() -> BootTime,
    /// Tells the watching thread that the application wants to step down. Must not block.
    pub step_down: Arc<dyn Fn() + Send + Sync>,
    /// The headers for gates, signed now for this holder; none where there are no gates. Must not block.
    pub headers: Headers,
    /// Counts the answers to commit checks: whether allowed, and how much remained.
    pub on_commit_check: Arc<dyn Fn(bool, Duration) + Send + Sync>,
    /// Counts the fences that a resource refused.
    pub on_fence_rejected: Arc<dyn Fn(ResourceKind) + Send + Sync>,
}

/// Serves clients until the task is dropped; ends only if the listener fails.
pub async fn serve(listener: UnixListener, socket: Socket) -> std::io::Result<()> {
    let routes = routes(socket);
    let (clients, turned_away) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    if let Some(seat) = Seat::take(&clients, MAX_CLIENTS) {
                        let routes = routes.clone();
                        connections.spawn(async move {
                            let _seat = seat;
                            serve_client(stream, routes, IDLE).await;
                        });
                    } else if let Some(seat) = Seat::take(&turned_away, MAX_TURNED_AWAY) {
                        connections.spawn(turn_away(stream, seat));
                    }
                }
                // Out of file descriptors, or a client that is gone already: others still count.
                Err(error) if is_passing(&error) => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(error) => return Err(error),
            },
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended && error.is_panic() {
                    return Err(std::io::Error::other(error));
                }
            }
        }
    }
}

/// One of so many; given back when dropped.
struct Seat(Arc<AtomicUsize>);

impl Seat {
    fn take(clients: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let taken = |count: usize| (count < most).then_some(count + 1);
        clients
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, taken)
            .ok()
            .map(|_| Self(Arc::clone(clients)))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Tells a client to come again. Its request is taken in first: a socket that is closed with bytes unread
/// resets the connection, and the client would not see the answer.
async fn turn_away(stream: UnixStream, _seat: Seat) {
    let body = r#"{"error":{"code":"TooManyClients","message":"64 clients are connected; close idle ones and try again"}}"#;
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let exchange = async {
        stream.readable().await?;
        stream.try_read(&mut [0; MAX_BODY_BYTES])?;
        stream.writable().await?;
        stream.try_write(answer.as_bytes())
    };
    // A client that is slow even at this sees the connection close.
    let _ = tokio::time::timeout(TURN_AWAY, exchange).await;
}

/// What is answered to whom, without a listener.
pub fn routes(socket: Socket) -> Router {
    Router::new()
        .route("/v1/lease", get(lease))
        .route("/v1/events", get(events::stream))
        .route("/v1/commit-check", post(commit_check))
        .route("/v1/step-down", post(step_down))
        .route("/v1/fence-rejected", post(rejection::fence_rejected))
        .fallback(not_found)
        .method_not_allowed_fallback(not_allowed)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(socket)
}

async fn lease(Shared(mut socket): Shared<Socket>) -> Response {
    let published = socket.latest.get().await;
    let mut view = published.lease_view((socket.now)());
    // From the kill instant on nobody is told that he may write.
    if let LeaseView::Active { fence, holding, remaining_ms: 1.., headers, .. } = &mut view {
        *headers = (socket.headers)(*fence, holding);
    }
    Json(view).into_response()
}

async fn commit_check(Shared(mut socket): Shared<Socket>, request: axum::extract::Request) -> Response {
    let check = match check_of(request).await {
        Ok(check) => check,
        Err(refused) => return refused,
    };
    let published = socket.latest.get().await;
    let now = (socket.now)();
    let mut verdict = published.commit_verdict(check, now);
    if let (CommitVerdict::Allowed { headers, .. }, State::Active { fence, holding, .. }) =
        (&mut verdict, &published.state)
    {
        *headers = (socket.headers)(*fence, holding);
    }
    let allowed = matches!(verdict, CommitVerdict::Allowed { .. });
    let remaining = match &published.state {
        State::Active { kill_at, .. } => kill_at.since(now),
        _ => Duration::ZERO,
    };
    (socket.on_commit_check)(allowed, remaining);
    // 409 makes `curl -f` fail, so that a shell script is right by default.
    let status = if allowed { StatusCode::OK } else { StatusCode::CONFLICT };
    (status, Json(verdict)).into_response()
}

async fn step_down(Shared(mut socket): Shared<Socket>) -> Response {
    let holds = matches!(socket.latest.get().await.state, State::Active { ending: None, .. });
    if !holds {
        let message = "this pod does not hold the lease, so there is nothing to step down from";
        return refusal(StatusCode::CONFLICT, "NotActive", message);
    }
    (socket.step_down)();
    StatusCode::ACCEPTED.into_response()
}

/// The body of a commit check: absent, or JSON of its shape.
async fn check_of(request: axum::extract::Request) -> Result<CommitCheck, Response> {
    let body = body_of(request).await?;
    if body.is_empty() {
        return Ok(CommitCheck::default());
    }
    serde_json::from_slice(&body).map_err(|error| {
        let message = format!(
            r#"the body is not a commit check: {error}. It is empty, or looks like {{"fence":42,"needMs":3000}}"#
        );
        refusal(StatusCode::BAD_REQUEST, "BadBody", &message)
    })
}

/// A body that arrived in time and is not too long.
async fn body_of(request: axum::extract::Request) -> Result<Bytes, Response> {
    use axum::extract::FromRequest as _;
    let body = tokio::time::timeout(BODY_TIMEOUT, Bytes::from_request(request, &())).await.map_err(|_| {
        refusal(StatusCode::REQUEST_TIMEOUT, "BodyTimeout", "the body did not arrive within 5 s")
    })?;
    body.map_err(|rejection: BytesRejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            refusal(StatusCode::PAYLOAD_TOO_LARGE, "BodyTooLarge", "the body may have 4096 bytes at most")
        }
        _ => refusal(StatusCode::BAD_REQUEST, "BodyUnreadable", "the body broke off"),
    })
}

async fn not_found(uri: Uri) -> Response {
    let message = format!(
        "{} is not served here; there are GET /v1/lease, GET /v1/events, POST /v1/commit-check, POST /v1/step-down, POST /v1/fence-rejected",
        uri.path()
    );
    refusal(StatusCode::NOT_FOUND, "NotFound", &message)
}

async fn not_allowed(method: Method, uri: Uri) -> Response {
    let message = format!(
        "{method} {} is not allowed; use GET for /v1/lease and /v1/events, POST for /v1/commit-check, /v1/step-down and /v1/fence-rejected",
        uri.path()
    );
    refusal(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", &message)
}

fn refusal(status: StatusCode, code: &str, message: &str) -> Response {
    // A parser repeats what it was given, and people print it.
    let message = message.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    let error = ErrorDetail { code: code.to_owned(), message };
    (status, Json(ErrorBody { error })).into_response()
}

#[cfg(test)]
pub(super) mod tests;
