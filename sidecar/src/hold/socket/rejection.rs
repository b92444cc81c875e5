//! `POST /v1/fence-rejected`: the application tells that a resource refused its fence. It is counted here
//! because many resources cannot: SQL takes back a counter together with what it aborts.

use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use fencedlease_wire::socket::FenceRejection;

use super::{Socket, body_of, refusal};
use crate::hold::pod::State;

/// Accepted in every state: what is refused is most often what was sent before a loss.
pub(super) async fn fence_rejected(
    Shared(socket): Shared<Socket>,
    request: axum::extract::Request,
) -> Response {
    let body = match body_of(request).await {
        Ok(body) => body,
        Err(refused) => return refused,
    };
    let rejection = match parse(&body) {
        Ok(rejection) => rejection,
        Err(message) => return refusal(StatusCode::BAD_REQUEST, "BadBody", &message),
    };
    (socket.on_fence_rejected)(rejection.resource_kind);
    let published = socket.latest.last();
    tracing::warn!(
        resource = published.resource,
        at_boottime_ms = (socket.now)().as_millis(),
        state = word(&published.state),
        fence = rejection.fence.get(),
        resource_kind = rejection.resource_kind.as_str(),
        detail = rejection.message.as_deref().unwrap_or_default(),
        "the resource refused a fence"
    );
    StatusCode::NO_CONTENT.into_response()
}

fn parse(body: &[u8]) -> Result<FenceRejection, String> {
    let rejection: FenceRejection = serde_json::from_slice(body).map_err(|error| {
        format!(
            r#"the body is no fence rejection: {error}. It looks like {{"fence":42,"resourceKind":"postgresql","message":"..."}}, where message may be left out"#
        )
    })?;
    let length = rejection.message.as_ref().map_or(0, String::len);
    if length > FenceRejection::MAX_MESSAGE_BYTES {
        let most = FenceRejection::MAX_MESSAGE_BYTES;
        return Err(format!("message has {length} bytes; send {most} at most"));
    }
    Ok(rejection)
}

fn word(state: &State) -> &'static str {
    match state {
        State::Active { .. } => "ACTIVE",
        State::Lost { .. } => "LOST",
        State::Released { .. } => "RELEASED",
        State::Waiting { .. } => "WAITING",
    }
}
