//! What an application asks its sidecar: a first line `METHOD PATH`, and the body after it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, Uri};
use fencedlease_core::BootTime;
use fencedlease_sidecar::hold::news::news;
use fencedlease_sidecar::hold::pod::{Published, State};
use fencedlease_sidecar::hold::socket::{Socket, routes};
use fencedlease_wire::endpoint::{RedisStanding, RedisStandingKind};
use fencedlease_wire::socket::{CommitRefusal, CommitVerdict, ErrorBody, LeaseView, ResourceKind};
use fencedlease_wire::{EndReason, Fence, HoldingId, LossReason, PlannedEnd};
use http_body_util::BodyExt as _;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use serde_json::Value;

use crate::is_one_line;

pub(crate) const WORDS: &[&str] = &[
    "GET /v1/lease\n",
    "GET /v1/events\n",
    "POST /v1/commit-check\n",
    "POST /v1/step-down\n",
    "POST /v1/fence-rejected\n",
    "{\"fence\":42}",
    "\"fence\":",
    "\"needMs\":",
    "\"resourceKind\":",
    "\"message\":",
    "\"postgresql\"",
    "\"mysql\"",
    "\"s3\"",
    "\"gcs\"",
    "\"redis\"",
    "\"queue\"",
    "\"gate\"",
    "\"other\"",
    "null",
];

/// When everything is asked.
const NOW_MS: u64 = 100;
const KILL_AT_MS: u64 = 9500;
const MARGIN_MS: u64 = 2000;
const FENCE: u64 = 42;
/// The longest body that is read.
const MOST_BODY: usize = 4096;

pub(crate) fn run(bytes: &[u8]) {
    let (line, body) = match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[][..]),
    };
    let Some((method, uri)) = asked(line) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    for state in states() {
        let answered = runtime.block_on(ask(&state, &method, &uri, body));
        check(&state, &method, &uri, body, &answered);
    }
}

fn asked(line: &[u8]) -> Option<(Method, Uri)> {
    let (method, uri) = str::from_utf8(line).ok()?.split_once(' ')?;
    Some((method.parse().ok()?, uri.parse().ok()?))
}

struct Answered {
    status: StatusCode,
    body: Vec<u8>,
    wishes: usize,
    rejections: Vec<ResourceKind>,
}

fn fence() -> Fence {
    Fence::new(FENCE).unwrap()
}

fn at(milliseconds: u64) -> BootTime {
    BootTime::from_millis(milliseconds)
}

fn states() -> [State; 5] {
    let active = |ending| State::Active {
        fence: fence(),
        holding: HoldingId::from_random([1; 8]),
        confirmed_at: at(0),
        term_at: at(7000),
        kill_at: at(KILL_AT_MS),
        ends_at: at(3_600_000),
        commit_margin: Duration::from_millis(MARGIN_MS),
        ending,
        max_hold_is_near: false,
    };
    [
        active(None),
        active(Some(EndReason::Planned(PlannedEnd::StepDown))),
        State::Waiting { holder: Some("other".to_owned()), next_try: at(200), message: None },
        State::Lost {
            fence: fence(),
            reason: EndReason::Lost(LossReason::RenewalTimeout),
            message: "no answer".to_owned(),
            killing: true,
        },
        State::Released { fence: fence(), reason: EndReason::Planned(PlannedEnd::MaxHold) },
    ]
}

async fn ask(state: &State, method: &Method, uri: &Uri, body: &[u8]) -> Answered {
    let (_, receiver) = news(Published {
        resource: "shop/report".to_owned(),
        state: state.clone(),
        competes: true,
        missing: Vec::new(),
        was_active: true,
        is_cold: false,
        redis: RedisStanding { kind: RedisStandingKind::Connected, message: String::new() },
        redis_answered_at: Some(at(0)),
        gates: None,
        ttl: Duration::from_secs(15),
        highest_fence: None,
    });
    let wishes = Arc::new(AtomicUsize::new(0));
    let rejections = Arc::new(Mutex::new(Vec::new()));
    let (wish, reject) = (Arc::clone(&wishes), Arc::clone(&rejections));
    let socket = Socket {
        latest: receiver.latest(),
        now: || at(NOW_MS),
        step_down: Arc::new(move || {
            wish.fetch_add(1, Ordering::SeqCst);
        }),
        headers: Arc::new(|fence, _| BTreeMap::from([("FencedLease".to_owned(), fence.to_string())])),
        on_commit_check: Arc::new(|_, _| ()),
        on_fence_rejected: Arc::new(move |kind| {
            reject.lock().unwrap_or_else(PoisonError::into_inner).push(kind);
        }),
    };
    let request = Request::builder().method(method).uri(uri).body(Body::from(body.to_vec())).unwrap();
    let answer = TowerToHyperService::new(routes(socket)).call(request).await.unwrap();
    let status = answer.status();
    let mut body = answer.into_body();
    let body = if status == StatusCode::OK && uri.path() == "/v1/events" {
        // It has no end of its own here.
        body.frame().await.unwrap().unwrap().into_data().unwrap().to_vec()
    } else {
        body.collect().await.unwrap().to_bytes().to_vec()
    };
    let rejections = rejections.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Answered { status, body, wishes: wishes.load(Ordering::SeqCst), rejections }
}

fn check(state: &State, method: &Method, uri: &Uri, body: &[u8], answered: &Answered) {
    let is_free = matches!(state, State::Active { ending: None, .. });
    let is_post = *method == Method::POST;
    let is_get = matches!(*method, Method::GET | Method::HEAD);
    let expected: &[u16] = match uri.path() {
        "/v1/lease" | "/v1/events" if is_get => &[200],
        "/v1/commit-check" if is_post => &[200, 409, 400, 413],
        "/v1/step-down" if is_post && is_free => &[202],
        "/v1/step-down" if is_post => &[409],
        "/v1/fence-rejected" if is_post => &[204, 400, 413],
        "/v1/lease" | "/v1/events" | "/v1/commit-check" | "/v1/step-down" | "/v1/fence-rejected" => &[405],
        _ => &[404],
    };
    let Answered { status, body: answer, wishes, rejections } = answered;
    assert!(expected.contains(&status.as_u16()), "{method} {uri} was answered {status} in {state:?}");
    assert_eq!(*wishes, usize::from(*status == StatusCode::ACCEPTED), "{method} {uri}");
    assert_eq!(rejections.len(), usize::from(*status == StatusCode::NO_CONTENT), "{method} {uri}");
    if *method == Method::HEAD {
        return;
    }
    match (status.as_u16(), uri.path()) {
        (200, "/v1/lease" | "/v1/events") => check_view(state, answer),
        (200 | 409, "/v1/commit-check") => check_verdict(state, body, *status, answer),
        (204, _) => check_rejection(body, rejections),
        (202, _) => assert!(answer.is_empty(), "{answer:?}"),
        _ => check_error(body, *status, answer),
    }
}

fn check_view(state: &State, answer: &[u8]) {
    let view: LeaseView = serde_json::from_slice(answer).unwrap();
    let is_told = match (state, view) {
        (State::Active { .. }, LeaseView::Active { fence: told, remaining_ms, .. }) => {
            told == fence() && remaining_ms == KILL_AT_MS - NOW_MS
        }
        (State::Lost { .. }, LeaseView::Lost { fence: told, .. })
        | (State::Released { .. }, LeaseView::Released { fence: told, .. }) => told == fence(),
        (State::Waiting { .. }, LeaseView::Waiting { .. }) => true,
        _ => false,
    };
    assert!(is_told, "{state:?} was told otherwise");
}

/// What a body of this length and shape asks; `None` where it is no commit check.
fn commit_check(body: &[u8]) -> Option<(Option<u64>, u64)> {
    if body.is_empty() {
        return Some((None, 0));
    }
    let asked: Value = serde_json::from_slice(body).ok()?;
    let number = |key: &str| asked.get(key).filter(|value| !value.is_null());
    let fence = number("fence").map_or(Some(None), |fence| fence.as_u64().map(Some))?;
    Some((fence, number("needMs").map_or(Some(0), Value::as_u64)?))
}

fn check_verdict(state: &State, body: &[u8], status: StatusCode, answer: &[u8]) {
    // What is no object at all is left to what the parser says.
    let is_object = body.is_empty() || body.trim_ascii_start().starts_with(b"{");
    let asked = commit_check(body);
    assert!(asked.is_some() || !is_object, "a verdict on what is no commit check");
    let (asked, need_ms) = asked.filter(|_| is_object).unwrap_or_default();
    let is_ours = asked.is_none_or(|asked| asked == FENCE);
    let fits = need_ms.max(MARGIN_MS) < KILL_AT_MS - NOW_MS;
    let is_free = matches!(state, State::Active { ending: None, .. });
    match serde_json::from_slice(answer).unwrap() {
        CommitVerdict::Allowed { allowed, fence: told, remaining_ms, headers } => {
            assert!(allowed && status == StatusCode::OK && is_free, "allowed in {state:?}");
            assert!(!is_object || (is_ours && fits), "allowed: {asked:?}, {need_ms} ms");
            assert_eq!((told.get(), remaining_ms), (FENCE, KILL_AT_MS - NOW_MS));
            assert_eq!(headers.get("FencedLease").map(String::as_str), Some("42"));
        }
        CommitVerdict::Refused { allowed, reason, message } => {
            assert!(!allowed && status == StatusCode::CONFLICT && !message.is_empty());
            assert!(!(is_object && is_free && is_ours && fits), "refused: {asked:?}, {need_ms} ms");
            let is_right = match reason {
                CommitRefusal::FenceMismatch => !is_ours || !is_object,
                CommitRefusal::TooLate => matches!(state, State::Active { .. }),
                CommitRefusal::Waiting => matches!(state, State::Waiting { .. }),
                CommitRefusal::Lost => matches!(state, State::Lost { .. } | State::Released { .. }),
            };
            assert!(is_right, "{reason:?} in {state:?}");
        }
    }
}

fn check_rejection(body: &[u8], rejections: &[ResourceKind]) {
    let told: Value = serde_json::from_slice(body).unwrap();
    if told.is_object() {
        assert_eq!(told["resourceKind"], rejections[0].as_str());
        assert!(told["fence"].as_u64().is_some_and(|fence| Fence::new(fence).is_ok()), "{told}");
        assert!(told["message"].as_str().is_none_or(|message| message.len() <= 1024), "{told}");
    }
}

/// Every refusal is of one form, has something to do in it, and fits into a terminal.
fn check_error(body: &[u8], status: StatusCode, answer: &[u8]) {
    let ErrorBody { error } = serde_json::from_slice(answer).unwrap();
    assert!(!error.code.is_empty() && error.code.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    assert!(!error.message.is_empty() && is_one_line(&error.message), "{:?}", error.message);
    assert_eq!(status == StatusCode::PAYLOAD_TOO_LARGE, error.code == "BodyTooLarge");
    assert!(status != StatusCode::PAYLOAD_TOO_LARGE || body.len() > MOST_BODY, "{} bytes", body.len());
}
