//! The part of the soak that belongs to every test run.
#![allow(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::time::Duration;

use fencedlease_nemesis::soak::{LEASES, Soak};

/// One after the other, so that the busy threads are as many as they are meant to be.
#[test]
fn nobody_loses_a_lease_for_nothing_and_everybody_does_when_answers_come_too_late() {
    let mut soak = Soak::start().unwrap();
    let seen = soak.watch(Duration::from_secs(120)).unwrap();
    println!("2 min: {seen}");
    assert!(seen.lost.is_empty(), "{seen}");
    // One every 5 s each: 24 of each lease, but for the first and the last.
    assert!(seen.renewals >= LEASES * 22, "{seen}");

    soak.set_round_trip(Duration::from_secs(4));
    let seen = soak.watch(Duration::from_secs(30)).unwrap();
    assert!(!seen.lost.is_empty(), "answers came after 4 s, and nobody noticed: {seen}");
}
