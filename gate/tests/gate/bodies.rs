//! Bodies whose length nobody announced, and clients that do not send the rest.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::support::{Backend, Http2Request, Mood, Nginx, Setup, Store, eventually, holder};

/// HTTP/2's codes: no error, and a client that wants no answer any more.
const NO_ERROR: u32 = 0;
const CANCEL: u32 = 8;

const CHUNKS: &str = "4\r\nbody\r\n0\r\n\r\n";

/// The next request that a backend gets, to its end as its head announces it.
fn heard(socket: &TcpListener) -> String {
    let (mut stream, _) = socket.accept().unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut bytes = Vec::new();
    let text = loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let is_whole = match text.split_once("\r\n\r\n") {
            Some((head, body)) => !head.contains("transfer-encoding") || body.ends_with("0\r\n\r\n"),
            None => false,
        };
        let mut more = [0; 4096];
        match if is_whole { Ok(0) } else { stream.read(&mut more) } {
            Ok(read @ 1..) => bytes.extend(&more[..read]),
            _ => break text,
        }
    };
    stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").unwrap();
    text
}

#[test]
fn a_body_of_unknown_length_arrives_whatever_the_method() {
    let (socket, store) = (TcpListener::bind("127.0.0.1:0").unwrap(), Store::new());
    let gate = Setup::new(socket.local_addr().unwrap()).start(&store);
    let ticket = holder(5).ticket();
    for method in ["GET", "HEAD", "DELETE", "REPORT"] {
        let head = format!(
            "{method} /a HTTP/1.1\r\nhost: gate\r\nfencedlease: {ticket}\r\ntransfer-encoding: chunked\r\n\r\n"
        );
        let mut client = TcpStream::connect(gate.address).unwrap();
        client.write_all((head + CHUNKS).as_bytes()).unwrap();
        let over_http_1 = heard(&socket);
        assert!(over_http_1.ends_with(&format!("\r\n\r\n{CHUNKS}")), "{over_http_1}");
        let headers = [("fencedlease", ticket.as_str())];
        let mut client = Http2Request::begin(gate.address, method, "/a", &headers, true);
        client.data(b"body", true);
        let over_http_2 = heard(&socket);
        assert!(over_http_2.ends_with(&format!("\r\n\r\n{CHUNKS}")), "{over_http_2}");
    }
    let _client = Http2Request::begin(gate.address, "GET", "/a", &[], false);
    let without = heard(&socket);
    assert!(without.starts_with("GET /a HTTP/1.1\r\n") && without.ends_with("\r\n\r\n"), "{without}");
    assert!(!without.contains("transfer-encoding") && !without.contains("content-length"), "{without}");
}

#[test]
fn a_stream_that_is_reset_amid_its_body_leaves_nothing() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let gate = Setup::new(nginx.address).start(&store);
    let on_their_way = || gate.metric("fencedlease_gate_requests_on_their_way");
    let ticket = holder(5).ticket();
    for code in [NO_ERROR, CANCEL] {
        for announced in [vec![], vec![("content-length", "1000")]] {
            let headers = [vec![("fencedlease", ticket.as_str())], announced].concat();
            let mut client = Http2Request::begin(gate.address, "PUT", "/a", &headers, true);
            client.data(b"half", false);
            eventually("it is on its way", || on_their_way() == 1);
            client.reset(code);
            eventually("it has ended", || on_their_way() == 0);
            assert_eq!(nginx.file("a"), None, "{code} {headers:?}");
        }
    }
    let raised = gate.client().raise(holder(6));
    assert!(raised.text().contains("\"unsettled\":0"), "{}", raised.text());
}

#[test]
fn a_body_that_the_gates_end_cuts_off_is_not_passed_on_as_a_whole_one() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let gate = Setup::new(nginx.address).with(&["--end-timeout-ms", "300"]).start(&store);
    let mut client = TcpStream::connect(gate.address).unwrap();
    let head = format!(
        "PUT /a HTTP/1.1\r\nhost: gate\r\nfencedlease: {}\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        holder(5).ticket()
    );
    client.write_all(head.as_bytes()).unwrap();
    eventually("it is on its way", || gate.metric("fencedlease_gate_requests_on_their_way") == 1);
    gate.terminate();
    assert!(!gate.wait().success(), "it was still on its way");
    assert_eq!(nginx.file("a"), None);
}

#[test]
fn a_read_whose_client_has_gone_is_taken_from_the_backend_too() {
    let (backend, store) = (Backend::start(Mood::Stalls), Store::new());
    let gate = Setup::new(backend.address).start(&store);
    for has_body in [false, true] {
        let before = backend.whole();
        let headers = if has_body { vec![("content-length", "4")] } else { vec![] };
        let mut client = Http2Request::begin(gate.address, "GET", "/a", &headers, has_body);
        if has_body {
            client.data(b"body", true);
        }
        eventually("the backend has it", || backend.whole() > before);
        client.reset(CANCEL);
        eventually("its connection is closed", || backend.left_by_peers() == backend.whole());
    }
}
