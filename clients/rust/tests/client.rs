//! The client against a socket that says what a test wants. tests/clients runs it against the real one.
#![allow(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::time::Duration;

use fencedlease_client::{
    Client, ClientError, CommitRefusal, Ended, Event, Fence, FenceRejection, LeaseView, ResourceKind,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

const ACTIVE: &str = r#"{"state":"ACTIVE","resource":"shop/report","fence":42,"holding":"0123456789abcdef","remainingMs":600,"killAtBoottimeMs":1,"maxHoldRemainingMs":1,"renewedMsAgo":0}"#;
const LOST: &str =
    r#"{"state":"LOST","resource":"shop/report","fence":42,"reason":"KeyGone","message":"no lease"}"#;

struct Sidecar {
    listener: UnixListener,
    client: Client,
    _folder: TempDir,
}

impl Sidecar {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("lease.sock");
        Self { listener: UnixListener::bind(&path).unwrap(), client: Client::at(path), _folder: folder }
    }

    /// Takes one request and gives it with its connection.
    async fn request(&self) -> (String, UnixStream) {
        let (mut stream, _) = self.listener.accept().await.unwrap();
        let mut bytes = [0; 8192];
        let mut length = stream.read(&mut bytes).await.unwrap();
        let mut text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        let declared = |text: &str| {
            let rest = text.split("content-length: ").nth(1)?;
            rest.split("\r\n").next()?.parse::<usize>().ok()
        };
        while text.split_once("\r\n\r\n").is_none_or(|(_, body)| body.len() < declared(&text).unwrap_or(0)) {
            let more = stream.read(&mut bytes[length..]).await.unwrap();
            assert!(more > 0, "the request broke off: {text}");
            length += more;
            text = String::from_utf8_lossy(&bytes[..length]).into_owned();
        }
        (text, stream)
    }

    async fn answer(&self, status: &str, body: &str) -> String {
        let (text, mut stream) = self.request().await;
        let length = body.len();
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(answer.as_bytes()).await.unwrap();
        text
    }

    /// Begins a stream of events.
    async fn events(&self, lines: String) -> UnixStream {
        let (_, mut stream) = self.request().await;
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
        stream.write_all(format!("{head}{lines}").as_bytes()).await.unwrap();
        stream
    }
}

#[tokio::test]
async fn a_permit_has_fence_time_and_the_gates_headers() {
    let sidecar = Sidecar::new();
    let body = r#"{"allowed":true,"fence":42,"remainingMs":60000,"headers":{"FencedLease":"v1;signed"}}"#;
    let check = sidecar.client.commit_check(Some(Fence::new(42).unwrap()), Some(Duration::from_secs(3)));
    let (permit, request) = tokio::join!(check, sidecar.answer("200 OK", body));
    let permit = permit.unwrap();
    assert!(
        request.starts_with("POST /v1/commit-check ") && request.ends_with(r#"{"fence":42,"needMs":3000}"#)
    );
    assert_eq!((permit.fence().get(), permit.ticket()), (42, Some("v1;signed")));
    assert!(permit.remaining() <= Duration::from_secs(60) && permit.remaining() > Duration::from_secs(50));
}

#[tokio::test]
async fn a_no_is_an_error_with_its_reason() {
    let sidecar = Sidecar::new();
    let body = r#"{"allowed":false,"reason":"TooLate","message":"1 s remains"}"#;
    let (verdict, _) =
        tokio::join!(sidecar.client.commit_check(None, None), sidecar.answer("409 Conflict", body));
    assert!(matches!(verdict, Err(ClientError::NotAllowed { reason: CommitRefusal::TooLate, .. })));
    let body = r#"{"error":{"code":"TooManyClients","message":"try again"}}"#;
    let (verdict, _) =
        tokio::join!(sidecar.client.commit_check(None, None), sidecar.answer("503 Unavailable", body));
    assert!(matches!(verdict, Err(ClientError::Refused { status: 503, .. })), "{verdict:?}");
    let yes = r#"{"allowed":false,"fence":42,"remainingMs":60000,"headers":{}}"#;
    let (verdict, _) = tokio::join!(sidecar.client.commit_check(None, None), sidecar.answer("200 OK", yes));
    assert!(matches!(verdict, Err(ClientError::Unexpected(_))), "{verdict:?}");
}

#[tokio::test]
async fn stepping_down_and_a_refused_fence_are_told() {
    let sidecar = Sidecar::new();
    let (done, request) = tokio::join!(sidecar.client.step_down(), sidecar.answer("202 Accepted", ""));
    done.unwrap();
    assert!(request.starts_with("POST /v1/step-down "));
    let message = Some("é".repeat(2000));
    let rejection =
        FenceRejection { fence: Fence::new(41).unwrap(), resource_kind: ResourceKind::Postgresql, message };
    let (done, request) =
        tokio::join!(sidecar.client.fence_rejected(rejection), sidecar.answer("204 No Content", ""));
    done.unwrap();
    let sent: FenceRejection = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(sent.message.unwrap(), "é".repeat(FenceRejection::MAX_MESSAGE_BYTES / 2));
}

#[tokio::test]
async fn work_is_dropped_when_the_lease_is_lost() {
    let sidecar = Sidecar::new();
    let (holding, mut stream) = tokio::join!(sidecar.client.holding(), sidecar.events(format!("{ACTIVE}\n")));
    let holding = holding.unwrap();
    assert_eq!((holding.fence().get(), holding.resource()), (42, "shop/report"));
    // A line may come in pieces.
    let (begin, end) = LOST.split_at(20);
    let tell = async {
        stream.write_all(begin.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        stream.write_all(format!("{end}\n").as_bytes()).await.unwrap();
    };
    let (ended, ()) = tokio::join!(holding.run(std::future::pending::<()>()), tell);
    assert!(matches!(&ended, Err(Ended::Lost { message, .. }) if message == "no lease"), "{ended:?}");
}

#[tokio::test]
async fn work_that_is_done_first_keeps_its_result() {
    let sidecar = Sidecar::new();
    let (holding, _stream) = tokio::join!(sidecar.client.holding(), sidecar.events(format!("{ACTIVE}\n")));
    assert_eq!(holding.unwrap().run(async { 7 }).await, Ok(7));
}

#[tokio::test]
async fn a_planned_end_silence_and_a_closed_socket_end_work_too() {
    let sidecar = Sidecar::new();
    let open = || async {
        let (holding, stream) = tokio::join!(sidecar.client.holding(), sidecar.events(format!("{ACTIVE}\n")));
        (holding.unwrap(), stream)
    };
    let (mut holding, mut stream) = open().await;
    let ending = ACTIVE.replace("\"renewedMsAgo\":0", "\"renewedMsAgo\":0,\"ending\":\"MaxHold\"");
    stream.write_all(format!("{ending}\n").as_bytes()).await.unwrap();
    assert!(matches!(holding.ended().await, Ended::Released { .. }));
    let (mut holding, _stream) = open().await;
    assert_eq!(holding.ended().await, Ended::Silent);
    // A word that comes when nothing remained any more is none: what is left counts from the question.
    let (holding, mut stream) = tokio::join!(sidecar.client.holding(), async {
        let (_, mut stream) = sidecar.request().await;
        tokio::time::sleep(Duration::from_millis(700)).await;
        stream
            .write_all(format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{ACTIVE}\n").as_bytes())
            .await
            .unwrap();
        stream
    });
    let later = format!("{{\"type\":\"alive\",\"remainingMs\":600000}}\n{LOST}\n");
    stream.write_all(later.as_bytes()).await.unwrap();
    assert_eq!(holding.unwrap().ended().await, Ended::Silent);
    let (mut holding, stream) = open().await;
    drop(stream);
    assert!(matches!(holding.ended().await, Ended::Unreachable(_)));
}

#[tokio::test]
async fn who_waits_has_no_holding_and_who_has_no_sidecar_is_told() {
    let sidecar = Sidecar::new();
    let waiting = r#"{"state":"WAITING","resource":"shop/report","retryInMs":10}"#;
    let (holding, _stream) = tokio::join!(sidecar.client.holding(), sidecar.events(format!("{waiting}\n")));
    assert!(matches!(holding, Err(ClientError::NotHeld(_))));
    let nobody = Client::at("/does/not/exist").lease().await;
    assert!(matches!(nobody, Err(ClientError::Connection { .. })), "{nobody:?}");
    let (lease, _) = tokio::join!(sidecar.client.lease(), sidecar.answer("200 OK", LOST));
    assert!(matches!(lease.unwrap(), LeaseView::Lost { .. }));
}

#[tokio::test]
async fn events_come_in_their_order_and_end_with_the_stream() {
    let sidecar = Sidecar::new();
    let lines = format!("{ACTIVE}\n{{\"type\":\"alive\",\"remainingMs\":9}}\n{LOST}\n");
    let (events, stream) = tokio::join!(sidecar.client.events(), sidecar.events(lines));
    drop(stream);
    let mut events = events.unwrap();
    assert!(matches!(events.next().await.unwrap(), Some(Event::State(LeaseView::Active { .. }))));
    assert!(matches!(events.next().await.unwrap(), Some(Event::Line(_))));
    assert!(matches!(events.next().await.unwrap(), Some(Event::State(LeaseView::Lost { .. }))));
    assert!(events.next().await.unwrap().is_none());
}
