//! What does a sidecar hear when it gets nothing? A status, a stable word, and what to do.

use axum::Json;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use fencedlease_wire::socket::{ErrorBody, ErrorDetail};

/// An answer that is no success.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl Refusal {
    /// The request cannot be read.
    pub fn bad(code: &'static str, message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code, message: message.into() }
    }

    /// The body is too long, or broke off.
    pub fn unread(error: &BytesRejection) -> Self {
        Self { status: error.status(), code: "BodyUnread", message: error.body_text() }
    }

    /// Nobody knows who is asking.
    pub fn unauthorized(code: &'static str, message: impl Into<String>) -> Self {
        Self { status: StatusCode::UNAUTHORIZED, code, message: message.into() }
    }

    /// It is known who is asking, and it may not.
    pub fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self { status: StatusCode::FORBIDDEN, code, message: message.into() }
    }

    /// What was asked for does not exist.
    pub fn not_found(code: &'static str, message: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, code, message: message.into() }
    }

    /// It may work in a moment.
    pub fn unavailable(code: &'static str, message: impl Into<String>) -> Self {
        Self { status: StatusCode::SERVICE_UNAVAILABLE, code, message: message.into() }
    }

    /// Too many ask at once.
    pub fn busy() -> Self {
        Self::unavailable("Busy", "the endpoint answers as many as it can: ask again in a second")
    }

    /// The answer took too long.
    pub fn slow() -> Self {
        Self::unavailable(
            "Slow",
            "the answer took too long, mostly because the Kubernetes API does: ask again",
        )
    }

    /// The Kubernetes API did not do its part. What it said goes to the log, not to the caller.
    pub fn kubernetes(what: &str, error: &kube::Error) -> Self {
        tracing::warn!(%error, "cannot {what}");
        Self::unavailable("KubernetesUnavailable", format!("the operator could not {what}: ask again"))
    }

    /// The answer's status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The stable word.
    pub fn code(&self) -> &'static str {
        self.code
    }
}

// === impl Refusal ===

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let detail = ErrorDetail { code: self.code.to_owned(), message: self.message };
        let body = Json(ErrorBody { error: detail });
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            return (self.status, [(RETRY_AFTER, "1")], body).into_response();
        }
        (self.status, body).into_response()
    }
}
