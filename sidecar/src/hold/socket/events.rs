//! `GET /v1/events`: the present state first, then each change, a line each; it ends with the holding.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use fencedlease_core::BootTime;
use fencedlease_wire::socket::EventLine;
use futures::stream;
use hyper::body::Bytes;
use serde::Serialize;

use super::Socket;
use crate::hold::news::Latest;
use crate::hold::pod::{Published, State};

pub(super) async fn stream(Shared(mut socket): Shared<Socket>) -> Response {
    let first = socket.latest.get().await;
    let line = text(&first.lease_view((socket.now)()));
    let follower = Follower { latest: socket.latest, now: socket.now, last: first, pending: Some(line) };
    let lines = stream::unfold(follower, |mut follower| async move {
        let lines = follower.next().await?;
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(lines)), follower))
    });
    let headers = [(CONTENT_TYPE, "application/x-ndjson"), (CACHE_CONTROL, "no-store")];
    (headers, Body::from_stream(lines)).into_response()
}

/// One client of the stream. A slow one misses snapshots, never the last.
struct Follower {
    latest: Latest,
    now: fn() -> BootTime,
    last: Arc<Published>,
    pending: Option<String>,
}

impl Follower {
    /// The next lines; `None` after a holding's end was told.
    async fn next(&mut self) -> Option<String> {
        if let Some(line) = self.pending.take() {
            return Some(line);
        }
        loop {
            if is_end(&self.last.state) {
                return None;
            }
            let next = self.latest.next().await?;
            let lines = lines(&self.last, &next, (self.now)());
            self.last = next;
            if !lines.is_empty() {
                return Some(lines);
            }
        }
    }
}

fn is_end(state: &State) -> bool {
    matches!(state, State::Lost { .. } | State::Released { .. })
}

/// What is to be told of a change from one snapshot to a later one.
pub(super) fn lines(last: &Published, next: &Published, now: BootTime) -> String {
    let (
        State::Active { holding, confirmed_at, ending, max_hold_is_near, .. },
        State::Active {
            holding: next_holding,
            confirmed_at: next_confirmed_at,
            ending: next_ending,
            max_hold_is_near: next_is_near,
            kill_at,
            ends_at,
            ..
        },
    ) = (&last.state, &next.state)
    else {
        return if same_state(&last.state, &next.state) {
            String::new()
        } else {
            text(&next.lease_view(now))
        };
    };
    if holding != next_holding || ending != next_ending {
        return text(&next.lease_view(now));
    }
    let mut lines = String::new();
    if confirmed_at != next_confirmed_at {
        lines += &text(&EventLine::Alive { remaining_ms: milliseconds(kill_at.since(now)) });
    }
    if !max_hold_is_near && *next_is_near {
        lines += &text(&EventLine::MaxHoldWarning { ends_in_ms: milliseconds(ends_at.since(now)) });
    }
    lines
}

/// A standby that tries again, or a loss that is now proven dead, is no change of state.
fn same_state(last: &State, next: &State) -> bool {
    match (last, next) {
        (State::Waiting { holder, .. }, State::Waiting { holder: next_holder, .. }) => holder == next_holder,
        (State::Lost { fence, .. }, State::Lost { fence: next_fence, .. })
        | (State::Released { fence, .. }, State::Released { fence: next_fence, .. }) => fence == next_fence,
        _ => false,
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn text(line: &impl Serialize) -> String {
    // Our own plain types always have a JSON form.
    serde_json::to_string(line).map(|line| line + "\n").unwrap_or_default()
}
