//! What one client can take from the others.

use std::time::Duration;

use crate::support::{Client, Nginx, Setup, Store, holder};

#[test]
fn a_body_that_is_too_long_is_rejected_by_its_length_or_cut() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let gate = Setup::new(nginx.address).with(&["--max-body-bytes", "1000"]).start(&store);
    assert_eq!(gate.client().put("/a", holder(5), &"x".repeat(1000)).status, 201);
    let answer = gate.client().put("/b", holder(5), &"x".repeat(1001));
    assert_eq!(answer.said(), (413, "rejected", "BodyTooLarge".to_owned()));
    let chunks = format!("400\r\n{}\r\n0\r\n\r\n", "x".repeat(1024));
    let ticket = holder(5).ticket();
    let headers = [("FencedLease", ticket.as_str()), ("transfer-encoding", "chunked")];
    let answer = gate.client().send_as_is("PUT", "/b", &headers, chunks.as_bytes());
    assert_eq!(answer.said(), (413, "unknown", "BodyTooLarge".to_owned()));
    assert_eq!(nginx.file("b"), None);
}

#[test]
fn headers_that_are_too_long_are_refused() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let gate = Setup::new(nginx.address).with(&["--max-header-bytes", "8192"]).start(&store);
    let answer = gate.client().send("GET", "/", &[("x-long", &"x".repeat(20_000))], b"");
    assert_eq!(answer.status, 431);
}

#[test]
fn connections_above_the_limit_wait_for_one_to_end() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let gate = Setup::new(nginx.address).with(&["--max-connections", "2"]).start(&store);
    let mut held: Vec<Client> = (0..2).map(|_| gate.client()).collect();
    for client in &mut held {
        assert_eq!(client.put("/a", holder(5), "x").result(), "passed");
    }
    let address = gate.address;
    let third = std::thread::spawn(move || Client::connect(address).put("/a", holder(5), "third"));
    std::thread::sleep(Duration::from_millis(200));
    assert!(!third.is_finished());
    held.pop();
    assert_eq!(third.join().unwrap().result(), "passed");
}

#[test]
fn a_client_that_is_slow_with_its_headers_is_let_go() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let gate = Setup::new(nginx.address).with(&["--header-timeout-ms", "300"]).start(&store);
    let mut slow = gate.client();
    assert!(slow.is_closed_after(b"GET / HTTP/1.1\r\nhost:"), "it still has the connection");
}

#[test]
fn what_only_the_gate_may_say_is_taken_from_both_sides() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let front = Setup::new(nginx.address).start(&store);
    // A second gate has the first as its backend: it must not pass on what that one says.
    let outer_store = Store::new();
    let outer = Setup::new(front.address).start(&outer_store);
    let answer = outer.client().put("/a", holder(5), "x");
    assert_eq!((answer.status, answer.result()), (428, "passed"), "the ticket ends at the first gate");
    let answer = outer.client().send("GET", "/a", &[], b"");
    assert_eq!(answer.result(), "none");
}
