//! How a gate starts and ends, and what its admin port shows.

use std::time::{Duration, SystemTime};

use crate::support::{Backend, Client, Mood, Nginx, Setup, Store, eventually, holder};

#[test]
fn sigterm_lets_what_is_on_its_way_end_and_takes_nothing_new() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let setup = Setup::new(nginx.address).with(&["--drain-ms", "3000"]);
    let gate = setup.start(&store);
    let mut slow = gate.client().begin("/a", holder(5), 4, b"ab");
    eventually("it is on its way", || gate.metric("fencedlease_gate_requests_on_their_way") > 0);
    gate.terminate();
    eventually("nobody new is let in", || Client::try_connect(gate.address).is_err());
    slow.more(b"cd");
    assert_eq!(slow.answer().said(), (201, "passed", String::new()));
    assert!(gate.wait().success());
    assert_eq!(nginx.file("a").unwrap(), "abcd");
    let gate = setup.start(&store);
    assert_eq!(gate.admin("/readyz").0, 200, "after a clean end nothing is waited for");
}

#[test]
fn after_a_kill_nobody_passes_until_what_may_be_on_its_way_has_had_its_time() {
    let (backend, store) = (Backend::start(Mood::Stalls), Store::new());
    let setup = Setup::new(backend.address).with(&["--drain-ms", "1500"]);
    let gate = setup.start(&store);
    let client = gate.client().begin("/a", holder(5), 1, b"x");
    eventually("the backend has it", || backend.whole() == 1);
    gate.kill();
    drop(client);
    backend.set(Mood::Answers);
    let start = SystemTime::now();
    let gate = setup.start(&store);
    let (status, text) = gate.admin("/readyz");
    assert_eq!(status, 503, "{text}");
    assert_eq!(gate.admin("/healthz").0, 200);
    assert_eq!(gate.client().put("/a", holder(4), "late").result(), "refused", "this needs no waiting");
    assert_eq!(gate.client().put("/a", holder(6), "x").result(), "passed");
    let took = start.elapsed().unwrap();
    assert!(took >= Duration::from_millis(1500), "it passed after {took:?}");
    assert_eq!(gate.admin("/readyz").0, 200);
}

#[test]
fn the_admin_port_shows_the_highest_fences_and_counts() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let gate = Setup::new(nginx.address).start(&store);
    let mut client = gate.client();
    assert_eq!(client.put("/a", holder(42), "x").status, 201);
    assert_eq!(client.put("/a", holder(41), "x").status, 412);
    let (status, page) = gate.admin("/");
    assert_eq!(status, 200);
    assert!(
        page.contains("shop/report") && page.contains(" 42 ") && page.contains("2a2a2a2a2a2a2a2a"),
        "{page}"
    );
    assert_eq!(gate.metric("fencedlease_gate_requests_total{result=\"passed\"}"), 1);
    assert_eq!(gate.metric("fencedlease_gate_requests_total{result=\"refused\"}"), 1);
    assert_eq!(gate.metric("fencedlease_gate_problems_total{code=\"FenceLower\"}"), 1);
    assert_eq!(gate.metric("fencedlease_gate_sync_seconds_count"), 1, "one raise, one sync");
}
