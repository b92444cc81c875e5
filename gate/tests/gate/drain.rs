//! What becomes of older requests that are on their way when a fence is raised, and how it is told.

use std::io::Write as _;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use hyper::Request;
use hyper::body::{Body, Bytes, Frame};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::support::{Answer, Backend, Client, Gate, Mood, Nginx, Setup, Store, eventually, holder};

fn on_their_way(gate: &Gate) -> u64 {
    gate.metric("fencedlease_gate_requests_on_their_way")
}

/// A PUT by another thread.
fn put(address: SocketAddr, fence: u64) -> std::thread::JoinHandle<Answer> {
    std::thread::spawn(move || Client::connect(address).put("/a", holder(fence), "x"))
}

/// A body that does not know that it is at its end until it is asked once more, as streams are.
struct Stream(Option<Bytes>);

impl Body for Stream {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// A PUT with its length announced and its end in a frame of its own; gives the status.
fn put_over_http_2(address: SocketAddr, fence: u64, body: &'static str) -> u16 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let (mut sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = Request::put(format!("http://{address}/a"))
            .header("fencedlease", holder(fence).ticket())
            .header("content-length", body.len())
            .body(Stream(Some(Bytes::from_static(body.as_bytes()))))
            .unwrap();
        sender.send_request(request).await.unwrap().status().as_u16()
    })
}

fn timed<T>(act: impl FnOnce() -> T) -> (T, Duration) {
    let start = SystemTime::now();
    (act(), start.elapsed().unwrap())
}

#[test]
fn a_body_that_is_incomplete_is_cut_before_the_raise_is_answered() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let gate = Setup::new(nginx.address).with(&["--drain-ms", "5000"]).start(&store);
    let slow = gate.client().begin("/a", holder(5), 1000, &[b'x'; 999]);
    eventually("it is on its way", || on_their_way(&gate) > 0);
    let (raised, took) = timed(|| gate.client().raise(holder(6)));
    assert_eq!(raised.status, 200);
    assert!(took < Duration::from_secs(3), "nothing had to be waited for, but it took {took:?}");
    assert!(raised.text().contains("\"unsettled\":0"), "{}", raised.text());
    let mut slow = slow;
    slow.more(b"x");
    assert_eq!(slow.answer().said(), (502, "unknown", "Superseded".to_owned()));
    assert_eq!(nginx.file("a"), None);
}

#[test]
fn a_complete_request_has_the_drain_time_to_be_answered() {
    let (backend, store) = (Backend::start(Mood::Stalls), Store::new());
    let gate = Setup::new(backend.address).with(&["--drain-ms", "5000"]).start(&store);
    let older = put(gate.address, 5);
    eventually("the backend has it", || backend.whole() == 1);
    let newer = put(gate.address, 6);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(backend.whole(), 1, "the newer one waits for the older");
    backend.set(Mood::Answers);
    assert_eq!(older.join().unwrap().said(), (200, "passed", String::new()));
    assert_eq!(newer.join().unwrap().said(), (200, "passed", String::new()));
}

#[test]
fn what_is_not_answered_within_the_drain_time_is_unknown_and_counted_by_the_raise() {
    let (backend, store) = (Backend::start(Mood::Stalls), Store::new());
    let gate = Setup::new(backend.address).with(&["--drain-ms", "600"]).start(&store);
    let older = put(gate.address, 5);
    eventually("the backend has it", || backend.whole() == 1);
    let (raised, took) = timed(|| gate.client().raise(holder(6)));
    assert!(raised.text().contains("\"unsettled\":1"), "{}", raised.text());
    assert!(took >= Duration::from_millis(600), "it was answered after {took:?}, before the drain was over");
    assert!(took < Duration::from_secs(5), "the drain is bounded, but it took {took:?}");
    assert_eq!(older.join().unwrap().said(), (502, "unknown", "Superseded".to_owned()));
}

#[test]
fn an_http_2_body_whose_end_comes_in_a_frame_of_its_own_is_complete() {
    let (backend, store) = (Backend::start(Mood::Stalls), Store::new());
    let gate = Setup::new(backend.address).with(&["--drain-ms", "600"]).start(&store);
    let address = gate.address;
    let older = std::thread::spawn(move || put_over_http_2(address, 5, "x"));
    eventually("the backend has it", || backend.whole() == 1);
    let (raised, took) = timed(|| gate.client().raise(holder(6)));
    assert!(raised.text().contains("\"unsettled\":1"), "{}", raised.text());
    assert!(took >= Duration::from_millis(600), "{took:?}");
    assert_eq!(older.join().unwrap(), 502);
}

#[test]
fn a_client_that_has_gone_leaves_its_request_on_its_way() {
    let (backend, store) = (Backend::start(Mood::Stalls), Store::new());
    let gate = Setup::new(backend.address).with(&["--drain-ms", "600"]).start(&store);
    let client = gate.client().begin("/a", holder(5), 1, b"x");
    eventually("the backend has it", || backend.whole() == 1);
    drop(client);
    std::thread::sleep(Duration::from_millis(100));
    assert!(on_their_way(&gate) > 0, "the backend may still carry it out");
    let (raised, took) = timed(|| gate.client().raise(holder(6)));
    assert!(took >= Duration::from_millis(600), "{took:?}");
    assert!(raised.text().contains("\"unsettled\":1"), "{}", raised.text());
}

#[test]
fn a_client_that_leaves_amid_its_body_leaves_nothing() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let gate = Setup::new(nginx.address).start(&store);
    let client = gate.client().begin("/a", holder(5), 1000, b"x");
    eventually("it is on its way", || on_their_way(&gate) > 0);
    drop(client);
    eventually("it has ended", || on_their_way(&gate) == 0);
    assert!(gate.client().raise(holder(6)).text().contains("\"unsettled\":0"));
    assert_eq!(nginx.file("a"), None);
}

#[test]
fn a_backend_that_cuts_stalls_or_is_not_there_is_told_apart() {
    let (backend, store) = (Backend::start(Mood::Cuts), Store::new());
    let setup = Setup::new(backend.address).with(&["--idle-timeout-ms", "300"]);
    let gate = setup.start(&store);
    assert_eq!(put(gate.address, 5).join().unwrap().said(), (502, "unknown", "BackendCut".to_owned()));
    backend.set(Mood::Stalls);
    assert_eq!(put(gate.address, 5).join().unwrap().said(), (504, "unknown", "BackendSilent".to_owned()));
    backend.set(Mood::ReadsNothing);
    let large = "x".repeat(30_000_000);
    let answer = gate.client().begin("/a", holder(5), large.len() + 1, b"");
    let mut feeding = answer;
    std::thread::scope(|scope| {
        scope.spawn(|| feeding.feed(large.as_bytes()));
    });
    assert_eq!(feeding.answer().said(), (504, "unknown", "BackendSilent".to_owned()));
    let raised = gate.client().raise(holder(6));
    assert!(raised.text().contains("\"unsettled\":2"), "those that it may have wholly: {}", raised.text());
    drop(gate);
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gate = Setup::new(nowhere).start(&store);
    let answer = put(gate.address, 6).join().unwrap();
    assert_eq!(answer.said(), (502, "unavailable", "BackendUnreachable".to_owned()));
    let read = gate.client().send("GET", "/a", &[], b"");
    assert_eq!(read.said(), (502, "unavailable", "BackendUnreachable".to_owned()));
}

#[test]
fn a_client_that_stalls_is_given_up() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let gate = Setup::new(nginx.address).with(&["--idle-timeout-ms", "300"]).start(&store);
    let slow = gate.client().begin("/a", holder(5), 1000, b"x");
    assert_eq!(slow.answer().said(), (408, "unknown", "ClientSilent".to_owned()));
    assert_eq!(nginx.file("a"), None);
    assert_eq!(gate.client().put("/a", holder(6), "six").status, 201);
}

#[test]
fn an_answer_that_comes_early_does_not_end_what_is_still_sent() {
    let (backend, store) = (Backend::start(Mood::AnswersEarly), Store::new());
    let gate = Setup::new(backend.address).start(&store);
    let slow = gate.client().begin("/a", holder(5), 1000, b"x");
    let answer = slow.answer();
    assert_eq!((answer.status, answer.result()), (413, "passed"));
    let (raised, took) = timed(|| gate.client().raise(holder(6)));
    assert_eq!(raised.status, 200);
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert_eq!(backend.whole(), 0);
}

#[test]
fn a_connection_that_the_backend_had_closed_costs_no_request() {
    let (backend, store) = (Backend::start(Mood::Answers), Store::new());
    let gate = Setup::new(backend.address).start(&store);
    assert_eq!(put(gate.address, 5).join().unwrap().status, 200);
    backend.close_all();
    assert_eq!(put(gate.address, 5).join().unwrap().said(), (200, "passed", String::new()));
}

#[test]
fn who_has_sent_all_and_gone_is_judged_and_counted() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let gate = Setup::new(nginx.address).start(&store);
    assert_eq!(gate.client().put("/a", holder(5), "held").status, 201);
    let late = format!(
        "PUT /a HTTP/1.1\r\nhost: x\r\nFencedLease: {}\r\ncontent-length: 4\r\n\r\nlate",
        holder(4).ticket()
    );
    // As of a holder that was killed: its bytes and its end arrive together.
    std::net::TcpStream::connect(gate.address).unwrap().write_all(late.as_bytes()).unwrap();
    let refused = "fencedlease_gate_requests_total{result=\"refused\"}";
    eventually("the late write is counted", || gate.metric(refused) == 1);
    assert_eq!(nginx.file("a").unwrap(), "held");
}
