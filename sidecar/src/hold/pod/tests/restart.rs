//! A sidecar that finds the note of a holding which nobody ended.

use super::*;

fn interrupted(loss_was_noted: bool) -> Interrupted {
    Interrupted {
        holding: HoldingId::from_random([77; 8]),
        fence: Fence::new(41).unwrap(),
        confirmed_at: BootTime::from_millis(999_000),
        loss_was_noted,
        grants: vec![("a".into(), "old secret".into())],
    }
}

fn back(secret: &str) -> Hello {
    Hello {
        container: "a".into(),
        secret: Some(secret.into()),
        holding: Some(HoldingId::from_random([77; 8])),
        acted: false,
    }
}

#[test]
fn what_was_held_is_lost_told_to_its_guard_and_not_released() {
    let mut bench = Bench::restarted(&["a"], Some(interrupted(false)), |_| {});
    assert_eq!(bench.lost(), Some(LossReason::SidecarRestarted));
    assert!(matches!(bench.file_orders(), [FileOrder::RemoveFence, FileOrder::Lost(_)]));
    bench.feed(Event::Hello { connection: ConnectionId(1), hello: back("old secret") });
    let end = (EndReason::Lost(LossReason::SidecarRestarted), Some(195));
    assert_eq!(bench.last_told_end(1), Some(end));
    bench.pass(Duration::from_millis(100));
    bench.died(1);
    assert!(bench.facts.iter().any(|fact| matches!(fact, Fact::Lost { dead_after: Some(_), .. })));
    assert!(bench.releases().is_empty());
    bench.hello(2, "a");
    assert_eq!(bench.acquire_calls(), 1, "a fresh guard may compete");
    assert_eq!(bench.last_floor(), Fence::new(41).ok());
}

#[test]
fn a_guard_without_the_secret_waits_until_the_old_one_must_be_dead() {
    let mut bench = Bench::restarted(&["a"], Some(interrupted(false)), |_| {});
    bench.hello(1, "a");
    assert!(bench.closed.contains(&1));
    bench.feed(Event::Hello { connection: ConnectionId(2), hello: back("wrong") });
    assert!(bench.closed.contains(&2));
    // 11 s after the last confirmation that was noted: validity is 12 s, and a second has passed.
    bench.pass(Duration::from_millis(10_999));
    bench.hello(3, "a");
    assert!(bench.closed.contains(&3));
    bench.pass(Duration::from_millis(1));
    bench.hello(4, "a");
    assert_eq!(bench.acquire_calls(), 1);
}

#[test]
fn a_sidecar_that_is_told_to_end_tells_the_loss_first() {
    let mut bench = Bench::restarted(&["a"], Some(interrupted(false)), |_| {});
    bench.feed(Event::Terminate);
    bench.pass(Duration::from_millis(10_900));
    assert!(!bench.exit, "nobody knows yet what became of the workload");
    bench.pass(Duration::from_millis(100));
    assert!(bench.facts.iter().any(|fact| matches!(fact, Fact::Lost { dead_after: None, .. })));
    assert!(bench.exit);

    let mut bench = Bench::restarted(&["a"], Some(interrupted(false)), |_| {});
    bench.feed(Event::Terminate);
    bench.feed(Event::Hello { connection: ConnectionId(1), hello: back("old secret") });
    bench.died(1);
    assert!(bench.facts.iter().any(|fact| matches!(fact, Fact::Lost { dead_after: Some(_), .. })));
    assert!(bench.exit);
}

#[test]
fn a_loss_that_was_noted_is_not_told_again() {
    let mut bench = Bench::restarted(&["a"], Some(interrupted(true)), |_| {});
    assert!(matches!(bench.file_orders(), [FileOrder::RemoveFence]));
    bench.feed(Event::Hello { connection: ConnectionId(1), hello: back("old secret") });
    assert!(bench.last_told_end(1).is_some(), "its guard is ended all the same");
    bench.died(1);
    assert!(bench.facts.iter().all(|fact| !matches!(fact, Fact::Lost { .. } | Fact::LossNoticed { .. })));
}

#[test]
fn a_workload_that_nobody_noted_is_ended_too() {
    let mut bench = Bench::new(&["a"], |_| {});
    bench.feed(Event::Hello { connection: ConnectionId(1), hello: back("never heard of") });
    assert!(bench.last_told_end(1).is_some());
    assert_eq!(bench.acquire_calls(), 0);
    bench.died(1);
    bench.hello(2, "a");
    assert_eq!(bench.acquire_calls(), 1);
}

#[test]
fn a_pod_that_was_active_before_is_not_cold_any_more() {
    let mut bench =
        Bench::restarted(&["a"], Some(interrupted(false)), |config| config.standby_mode = StandbyMode::Cold);
    bench.pass(Duration::from_mins(1));
    assert_eq!(bench.acquire_calls(), 0, "its containers are there, so it waits for their guards");
}
