//! What does the gate say where the backend does not?

use bytes::Bytes;
use fencedlease_wire::Fence;
use fencedlease_wire::gate::{
    Disbelief, GateProblem, GateResult, GuardedResource, RESULT_HEADER, RaiseAnswer, TicketError,
};
use http_body_util::{Either, Full};
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};

use crate::body::Download;
use crate::check::Refusal;
use crate::desk::NotLetIn;
use crate::exchange::Failure;
use crate::route::Unroutable;

/// The body of an answer: the gate's own text, or what streams from the backend.
pub type Body = Either<Full<Bytes>, Download>;

/// Why the gate answers itself.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Problem {
    /// A write, or a read that must be fresh, without a ticket.
    #[error("this request needs the header FencedLease; take it from the socket's /v1/commit-check")]
    TicketMissing,
    /// More than one ticket.
    #[error("the header FencedLease stands here more than once")]
    TicketTwice,
    /// No ticket at all.
    #[error("the header FencedLease is no ticket: {0}")]
    TicketMalformed(#[from] TicketError),
    /// A ticket that is not believed.
    #[error("the header FencedLease is not believed: {0}")]
    TicketNotBelieved(#[from] Disbelief),
    /// A ticket of another resource.
    #[error("the ticket is for {shown}, but this path belongs to {guarded}")]
    ResourceMismatch {
        /// What the ticket names.
        shown: GuardedResource,
        /// What the path belongs to.
        guarded: GuardedResource,
    },
    /// A resource that this gate does not guard.
    #[error("this gate guards no resource {0}; see its --guard")]
    ResourceUnknown(GuardedResource),
    /// A path that belongs to no resource.
    #[error(transparent)]
    Unroutable(#[from] Unroutable),
    /// The body is longer than the gate takes.
    #[error("the body has more than {0} bytes, the gate's --max-body-bytes")]
    BodyTooLarge(u64),
    /// Not let in.
    #[error("{}", not_let_in(.0))]
    NotLetIn(NotLetIn),
    /// The backend, or the client's body, failed.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The same for a read that was not checked.
    #[error("the backend gave no answer")]
    ReadFailed(Failure),
}

impl Problem {
    /// The answer that says so.
    pub fn answer(&self) -> Response<Body> {
        let (status, result, code) = self.parts();
        let problem =
            GateProblem { code: code.to_owned(), message: self.to_string(), highest: self.highest() };
        let mut answer = json(status, result, &problem);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        answer
    }

    /// What became of the request.
    pub fn result(&self) -> GateResult {
        self.parts().1
    }

    /// The stable word for programs.
    pub fn code(&self) -> &'static str {
        self.parts().2
    }

    fn parts(&self) -> (StatusCode, GateResult, &'static str) {
        use GateResult::{Refused, Rejected, Unavailable, Unknown};
        match self {
            Self::TicketMissing => (StatusCode::PRECONDITION_REQUIRED, Rejected, "TicketMissing"),
            Self::TicketTwice => (StatusCode::BAD_REQUEST, Rejected, "TicketTwice"),
            Self::TicketMalformed(_) => (StatusCode::BAD_REQUEST, Rejected, "TicketMalformed"),
            Self::TicketNotBelieved(Disbelief::Forged) => {
                (StatusCode::UNAUTHORIZED, Rejected, "TicketForged")
            }
            Self::TicketNotBelieved(Disbelief::Old { .. }) => {
                (StatusCode::UNAUTHORIZED, Rejected, "TicketOld")
            }
            Self::TicketNotBelieved(Disbelief::Ahead { .. }) => {
                (StatusCode::UNAUTHORIZED, Rejected, "TicketAhead")
            }
            Self::ResourceMismatch { .. } => (StatusCode::FORBIDDEN, Rejected, "ResourceMismatch"),
            Self::ResourceUnknown(_) => (StatusCode::FORBIDDEN, Rejected, "ResourceUnknown"),
            Self::Unroutable(Unroutable::NotFound) => (StatusCode::NOT_FOUND, Rejected, "NotFound"),
            Self::Unroutable(Unroutable::Method) => {
                (StatusCode::METHOD_NOT_ALLOWED, Rejected, "MethodNotPassed")
            }
            Self::Unroutable(Unroutable::UnclearPath) => (StatusCode::BAD_REQUEST, Rejected, "PathUnclear"),
            Self::Unroutable(Unroutable::NotGuarded) => (StatusCode::FORBIDDEN, Rejected, "PathNotGuarded"),
            Self::Unroutable(Unroutable::Destination) => {
                (StatusCode::FORBIDDEN, Rejected, "DestinationElsewhere")
            }
            Self::Unroutable(Unroutable::OtherPath) => (StatusCode::FORBIDDEN, Rejected, "PathOverridden"),
            Self::BodyTooLarge(_) => (StatusCode::PAYLOAD_TOO_LARGE, Rejected, "BodyTooLarge"),
            Self::NotLetIn(NotLetIn::Refused(Refusal::Lower { .. })) => {
                (StatusCode::PRECONDITION_FAILED, Refused, "FenceLower")
            }
            Self::NotLetIn(NotLetIn::Refused(Refusal::OtherHolder { .. })) => {
                (StatusCode::PRECONDITION_FAILED, Refused, "FenceOfAnotherHolder")
            }
            Self::NotLetIn(NotLetIn::StoreFailed) => {
                (StatusCode::SERVICE_UNAVAILABLE, Unavailable, "StoreFailed")
            }
            Self::NotLetIn(NotLetIn::TooLong) => {
                (StatusCode::SERVICE_UNAVAILABLE, Unavailable, "WaitedTooLong")
            }
            Self::ReadFailed(Failure::BackendSilent) => {
                (StatusCode::GATEWAY_TIMEOUT, Unavailable, "BackendSilent")
            }
            Self::ReadFailed(_) => (StatusCode::BAD_GATEWAY, Unavailable, "BackendUnreachable"),
            Self::Failed(Failure::Unreachable) => {
                (StatusCode::BAD_GATEWAY, Unavailable, "BackendUnreachable")
            }
            Self::Failed(Failure::BackendCut) => (StatusCode::BAD_GATEWAY, Unknown, "BackendCut"),
            Self::Failed(Failure::BackendSilent) => (StatusCode::GATEWAY_TIMEOUT, Unknown, "BackendSilent"),
            Self::Failed(Failure::ClientSilent) => (StatusCode::REQUEST_TIMEOUT, Unknown, "ClientSilent"),
            Self::Failed(Failure::ClientCut) => (StatusCode::BAD_REQUEST, Unknown, "ClientCut"),
            Self::Failed(Failure::TooLarge) => (StatusCode::PAYLOAD_TOO_LARGE, Unknown, "BodyTooLarge"),
            Self::Failed(Failure::Superseded) => (StatusCode::BAD_GATEWAY, Unknown, "Superseded"),
        }
    }

    fn highest(&self) -> Option<Fence> {
        match self {
            Self::NotLetIn(NotLetIn::Refused(
                Refusal::Lower { highest, .. } | Refusal::OtherHolder { highest },
            )) => Some(*highest),
            _ => None,
        }
    }
}

/// The answer to a raise that is stored.
pub fn raised(answer: &RaiseAnswer) -> Response<Body> {
    json(StatusCode::OK, GateResult::Passed, answer)
}

fn json(status: StatusCode, result: GateResult, value: &impl serde::Serialize) -> Response<Body> {
    // Plain structs of texts and numbers always have a JSON.
    let mut text = serde_json::to_vec(value).unwrap_or_default();
    text.push(b'\n');
    let mut answer = Response::new(Either::Left(Full::new(text.into())));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(RESULT_HEADER, HeaderValue::from_static(result.as_str()));
    answer
}

fn not_let_in(why: &NotLetIn) -> String {
    match why {
        NotLetIn::Refused(Refusal::Lower { highest, offered }) => {
            format!(
                "fence {offered} is refused: {highest} has been here, so this holder's lease is lost. Stop working"
            )
        }
        NotLetIn::Refused(Refusal::OtherHolder { highest }) => {
            format!("refused: another holder has been here with fence {highest}")
        }
        NotLetIn::StoreFailed => {
            "the gate cannot store a fence now; see its log. Nothing was passed on".to_owned()
        }
        NotLetIn::TooLong => {
            "the gate could not let this request in within its --admission-timeout-ms; try again".to_owned()
        }
    }
}
