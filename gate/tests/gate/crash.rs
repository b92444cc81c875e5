//! What a gate keeps when it is killed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fencedlease_faults::matrix::shown;

use crate::support::{Client, Nginx, Setup, Store, holder};

#[test]
fn the_memory_survives_a_kill_and_a_clean_end() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let setup = Setup::new(nginx.address);
    let gate = setup.start(&store);
    assert_eq!(gate.client().put("/a", holder(5), "five").status, 201);
    gate.kill();
    let gate = setup.start(&store);
    let mut client = gate.client();
    assert_eq!(client.put("/a", holder(4), "late").said(), (412, "refused", "FenceLower".to_owned()));
    assert_eq!(client.put("/a", holder(5), "more").status, 204);
    gate.terminate();
    assert!(gate.wait().success());
    let gate = setup.start(&store);
    assert_eq!(gate.client().put("/a", holder(4), "late").result(), "refused");
    assert_eq!(nginx.file("a").unwrap(), "more");
}

#[test]
fn kills_at_any_point_lose_nothing_that_was_answered() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let setup = Setup::new(nginx.address).with(&["--drain-ms", "1"]);
    let (answered, next) = (AtomicU64::new(0), AtomicU64::new(1));
    for round in 0..40_u64 {
        let gate = setup.start(&store);
        let (address, is_over) = (gate.address, AtomicBool::new(false));
        let before = answered.load(Ordering::SeqCst);
        if before > 1 {
            let answer = gate.client().put("/a", holder(before - 1), "late");
            assert_eq!(answer.result(), "refused", "round {round}: {before} was answered, so {answer:?}");
        }
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let (is_over, answered, next) = (&is_over, &answered, &next);
                scope.spawn(move || {
                    let Ok(mut client) = Client::try_connect(address) else { return };
                    while !is_over.load(Ordering::SeqCst) {
                        let fence = next.fetch_add(1, Ordering::SeqCst);
                        let ticket = holder(fence).ticket();
                        let ticket = [("FencedLease", ticket.as_str())];
                        let sent = if writer % 2 == 0 {
                            client.try_send("PUT", "/a", &ticket, b"x")
                        } else {
                            client.try_send("POST", "/.fencedlease/v1/raise", &ticket, b"")
                        };
                        let Ok(answer) = sent else { return };
                        if answer.result() == "passed" {
                            answered.fetch_max(fence, Ordering::SeqCst);
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_micros(3_000 + round * 7_919 % 40_000));
            gate.kill();
            is_over.store(true, Ordering::SeqCst);
        });
    }
    assert!(answered.load(Ordering::SeqCst) > 100, "only {answered:?} were answered");
    shown(
        &[49],
        &format!(
            "40 kills amid 4 writers: {} was answered, and no fence below it passed",
            answered.into_inner()
        ),
    )
    .unwrap();
}
