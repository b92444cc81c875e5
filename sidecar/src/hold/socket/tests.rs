use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use fencedlease_wire::endpoint::{RedisStanding, RedisStandingKind};
use fencedlease_wire::{EndReason, Fence, HoldingId, LossReason};

use super::*;
use crate::hold::news::{NewsReceiver, news};
use crate::hold::pod::Published;

fn at(milliseconds: u64) -> BootTime {
    BootTime::from_millis(milliseconds)
}

pub(in crate::hold) fn active(confirmed: u64) -> State {
    State::Active {
        fence: Fence::new(42).unwrap(),
        holding: HoldingId::from_random([1; 8]),
        confirmed_at: at(confirmed),
        term_at: at(confirmed + 7000),
        kill_at: at(confirmed + 9500),
        ends_at: at(3_600_000),
        commit_margin: Duration::from_secs(2),
        ending: None,
        max_hold_is_near: false,
    }
}

fn lost() -> State {
    State::Lost {
        fence: Fence::new(42).unwrap(),
        reason: EndReason::Lost(LossReason::RenewalTimeout),
        message: "no answer".into(),
        killing: true,
    }
}

pub(in crate::hold) fn published(state: State) -> Published {
    Published {
        resource: "shop/report".into(),
        state,
        competes: true,
        missing: Vec::new(),
        was_active: true,
        is_cold: false,
        redis: RedisStanding { kind: RedisStandingKind::Connected, message: String::new() },
        redis_answered_at: Some(at(0)),
        gates: None,
        ttl: Duration::from_secs(15),
        highest_fence: None,
    }
}

#[test]
fn a_confirmed_renewal_is_a_line_and_another_try_of_a_standby_is_none() {
    let line = events::lines(&published(active(0)), &published(active(5000)), at(5100));
    assert_eq!(line, "{\"type\":\"alive\",\"remainingMs\":9400}\n");
    let waiting =
        |next_try| published(State::Waiting { holder: None, next_try: at(next_try), message: None });
    assert_eq!(events::lines(&waiting(1), &waiting(2), at(0)), "");
    let line = events::lines(&waiting(1), &published(active(0)), at(0));
    assert!(line.contains("\"state\":\"ACTIVE\"") && line.contains("\"fence\":42"), "{line}");
}

struct Served {
    path: std::path::PathBuf,
    receiver: Mutex<NewsReceiver>,
    stepped_down: Arc<AtomicBool>,
    rejected: Arc<Mutex<Vec<ResourceKind>>>,
    _folder: tempfile::TempDir,
}

/// Serves on a thread of its own until the test ends.
fn serve_state(state: State) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lease.sock");
    let (_, receiver) = news(published(state));
    let stepped_down = Arc::new(AtomicBool::new(false));
    let wish = Arc::clone(&stepped_down);
    let rejected = Arc::new(Mutex::new(Vec::new()));
    let counted = Arc::clone(&rejected);
    let socket = Socket {
        latest: receiver.latest(),
        now: || at(100),
        step_down: Arc::new(move || wish.store(true, Ordering::SeqCst)),
        headers: Arc::new(|fence, holding| {
            BTreeMap::from([("FencedLease".to_owned(), format!("{fence} of {holding}"))])
        }),
        on_commit_check: Arc::new(|_, _| ()),
        on_fence_rejected: Arc::new(move |kind| counted.lock().unwrap().push(kind)),
    };
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { serve(UnixListener::from_std(listener).unwrap(), socket).await })
    });
    Served { path, receiver: Mutex::new(receiver), stepped_down, rejected, _folder: folder }
}

impl Served {
    fn publish(&self, state: State) {
        self.receiver.lock().unwrap().publish(published(state));
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = StdStream::connect(&self.path).unwrap();
        let length = body.len();
        write!(stream, "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
        (status, body)
    }
}

#[test]
fn the_lease_is_told_as_it_stands_at_the_answer() {
    let served = serve_state(active(0));
    let (status, body) = served.ask("GET", "/v1/lease", "");
    assert_eq!(status, 200);
    let lease: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(lease["state"], "ACTIVE");
    assert_eq!(lease["fence"], 42);
    assert_eq!(lease["remainingMs"], 9400);
    assert_eq!(lease["renewedMsAgo"], 100);
}

#[test]
fn a_commit_check_says_yes_or_no_and_a_shell_sees_it() {
    let served = serve_state(active(0));
    assert_eq!(served.ask("POST", "/v1/commit-check", "").0, 200);
    assert_eq!(served.ask("POST", "/v1/commit-check", r#"{"fence":42,"needMs":9000}"#).0, 200);
    for (body, reason) in [(r#"{"fence":41}"#, "FenceMismatch"), (r#"{"needMs":9400}"#, "TooLate")] {
        let (status, answer) = served.ask("POST", "/v1/commit-check", body);
        assert_eq!(status, 409, "{body}");
        assert!(answer.contains(reason), "{answer}");
    }
    served.publish(lost());
    let (status, answer) = served.ask("POST", "/v1/commit-check", "");
    assert!(status == 409 && answer.contains("\"Lost\""), "{answer}");
}

#[test]
fn the_headers_for_gates_are_signed_at_the_answer_and_only_for_who_may_write() {
    let served = serve_state(active(0));
    let headers = |method: &str, path: &str| {
        let answer: serde_json::Value = serde_json::from_str(&served.ask(method, path, "").1).unwrap();
        answer["headers"].clone()
    };
    let signed = serde_json::json!({"FencedLease": "42 of 0101010101010101"});
    assert_eq!(headers("GET", "/v1/lease"), signed);
    assert_eq!(headers("POST", "/v1/commit-check"), signed);
    let past = State::Active {
        fence: Fence::new(42).unwrap(),
        holding: HoldingId::from_random([1; 8]),
        confirmed_at: at(0),
        term_at: at(50),
        kill_at: at(100),
        ends_at: at(3_600_000),
        commit_margin: Duration::ZERO,
        ending: None,
        max_hold_is_near: false,
    };
    for state in [past, lost()] {
        served.publish(state);
        for (method, path) in [("GET", "/v1/lease"), ("POST", "/v1/commit-check")] {
            assert_eq!(headers(method, path), serde_json::Value::Null, "{method} {path}");
        }
    }
}

#[test]
fn bad_requests_get_a_code_and_the_remedy() {
    let served = serve_state(active(0));
    for (method, path, body, status) in [
        ("GET", "/v1/leases", "", 404),
        ("DELETE", "/v1/lease", "", 405),
        ("POST", "/v1/commit-check", "{", 400),
        ("POST", "/v1/commit-check", r#"{"fences":1}"#, 400),
        ("POST", "/v1/commit-check", r#"{"fence":0}"#, 400),
        ("POST", "/v1/commit-check", &"x".repeat(5000), 413),
        ("POST", "/v1/fence-rejected", "", 400),
        ("POST", "/v1/fence-rejected", r#"{"fence":42}"#, 400),
        ("POST", "/v1/fence-rejected", r#"{"fence":-1,"resourceKind":"s3"}"#, 400),
        ("POST", "/v1/fence-rejected", &"x".repeat(5000), 413),
        ("GET", "/v1/fence-rejected", "", 405),
    ] {
        let (found, answer) = served.ask(method, path, body);
        assert_eq!(found, status, "{method} {path}: {answer}");
        let error: ErrorBody = serde_json::from_str(&answer).unwrap();
        assert!(!error.error.code.is_empty() && error.error.message.len() > 20, "{answer}");
    }
}

#[test]
fn a_refused_fence_is_counted_by_kind_in_every_state() {
    let served = serve_state(active(0));
    let told = |body: &str| served.ask("POST", "/v1/fence-rejected", body);
    for kind in ResourceKind::ALL {
        let body =
            format!(r#"{{"fence":41,"resourceKind":"{}","message":"fence 42 was here"}}"#, kind.as_str());
        assert_eq!(told(&body), (204, String::new()));
    }
    served.publish(lost());
    assert_eq!(told(r#"{"fence":42,"resourceKind":"gate"}"#).0, 204);
    let expected: Vec<ResourceKind> = ResourceKind::ALL.into_iter().chain([ResourceKind::Gate]).collect();
    assert_eq!(*served.rejected.lock().unwrap(), expected);
}

#[test]
fn a_refusal_that_cannot_be_counted_is_told_what_is_accepted() {
    let served = serve_state(active(0));
    let (status, answer) =
        served.ask("POST", "/v1/fence-rejected", r#"{"fence":42,"resourceKind":"oracle"}"#);
    assert_eq!(status, 400, "{answer}");
    let named = ResourceKind::ALL.into_iter().all(|kind| answer.contains(&format!("`{}`", kind.as_str())));
    assert!(answer.contains("oracle") && named, "{answer}");
    let long = format!(r#"{{"fence":42,"resourceKind":"s3","message":"{}"}}"#, "x".repeat(1025));
    let (status, answer) = served.ask("POST", "/v1/fence-rejected", &long);
    assert!(status == 400 && answer.contains("1025") && answer.contains("1024"), "{answer}");
    assert!(served.rejected.lock().unwrap().is_empty());
}

#[test]
fn stepping_down_is_passed_on_once_it_holds() {
    let served = serve_state(State::Waiting { holder: None, next_try: at(5), message: None });
    assert_eq!(served.ask("POST", "/v1/step-down", "").0, 409);
    assert!(!served.stepped_down.load(Ordering::SeqCst));
    served.publish(active(0));
    assert_eq!(served.ask("POST", "/v1/step-down", "").0, 202);
    assert!(served.stepped_down.load(Ordering::SeqCst));
}

#[test]
fn events_begin_with_the_state_and_end_with_the_loss() {
    let served = serve_state(active(0));
    let mut stream = StdStream::connect(&served.path).unwrap();
    write!(stream, "GET /v1/events HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut seen = String::new();
    let mut buffer = [0; 4096];
    while !seen.contains("\"ACTIVE\"") {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "ended early: {seen}");
        seen += &String::from_utf8_lossy(&buffer[..count]);
    }
    served.publish(lost());
    stream.read_to_string(&mut seen).unwrap();
    assert!(seen.contains("application/x-ndjson") && seen.contains("\"LOST\""), "{seen}");
}

#[test]
fn one_client_too_many_is_told_to_come_again() {
    let served = serve_state(active(0));
    let idle: Vec<StdStream> = (0..MAX_CLIENTS).map(|_| StdStream::connect(&served.path).unwrap()).collect();
    // The listener takes clients in their order, so this one is the last.
    let (status, answer) = served.ask("GET", "/v1/lease", "");
    assert_eq!(status, 503, "{answer}");
    assert!(answer.contains("TooManyClients"));
    drop(idle);
    let freed = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        served.ask("GET", "/v1/lease", "").0 == 200
    });
    assert!(freed, "no seat came free");
}
