//! Raise before run: nothing starts before every gate has stored the fence, and the lease is kept meanwhile.

use fencedlease_wire::endpoint::GatesStandingKind;

use super::support::gates;
use super::*;
use crate::hold::pod::raise::time_for_gates;

/// A pod that has just got fence 41 and asks these gates.
fn raising(names: &[&str]) -> Bench {
    let mut bench = Bench::new(&["a"], |config| config.gates = gates(names));
    bench.hello(1, "a");
    bench.acquired(41);
    bench
}

fn answer(bench: &mut Bench, raise: usize, answer: GateAnswer) {
    let call = bench.raises[raise].call;
    bench.feed(Event::RaiseAnswered { call, answer });
}

fn stored() -> GateAnswer {
    GateAnswer::Stored { unsettled: 0 }
}

fn failed() -> GateAnswer {
    GateAnswer::Failed { message: "said the test".to_owned() }
}

fn ahead(highest: u64) -> GateAnswer {
    GateAnswer::Ahead { highest: Fence::new(highest).unwrap() }
}

fn standing(bench: &Bench) -> GatesStanding {
    bench.pod.published().gates.unwrap()
}

fn message(bench: &Bench) -> String {
    match bench.pod.published().state {
        State::Waiting { message, .. } => message.unwrap_or_default(),
        other => panic!("not WAITING: {other:?}"),
    }
}

#[test]
fn nothing_is_noted_or_granted_before_every_gate_has_stored_the_fence() {
    let mut bench = raising(&["one", "two"]);
    assert_eq!(bench.raises.iter().map(|raise| raise.gate).collect::<Vec<_>>(), [0, 1]);
    assert!(bench.raises.iter().all(|raise| raise.fence.get() == 41));
    assert_eq!(standing(&bench).kind, GatesStandingKind::NotAsked);
    assert!(
        message(&bench).contains("fence 41") && message(&bench).contains("one, two"),
        "{}",
        message(&bench)
    );
    answer(&mut bench, 0, stored());
    assert!(bench.file_orders().is_empty() && bench.granted().is_empty());
    assert!(bench.pod.published().not_ready(false, bench.now).is_some());
    answer(&mut bench, 1, stored());
    assert!(matches!(bench.file_orders(), [FileOrder::Hold { .. }]));
    bench.filed();
    assert_eq!(bench.granted(), [1]);
    assert_eq!(standing(&bench), GatesStanding { kind: GatesStandingKind::Raised, message: String::new() });
}

#[test]
fn a_cold_pod_has_not_started_while_its_fence_is_raised() {
    let mut bench = Bench::new(&["a"], |config| {
        config.gates = gates(&["one"]);
        config.standby_mode = StandbyMode::Cold;
    });
    bench.acquired(41);
    assert!(bench.pod.published().not_started().is_some());
    answer(&mut bench, 0, stored());
    bench.filed();
    assert_eq!(bench.pod.published().not_started(), None);
}

#[test]
fn a_gate_that_does_not_answer_is_named_and_asked_again_while_the_lease_is_renewed() {
    let mut bench = raising(&["one", "two"]);
    answer(&mut bench, 0, failed());
    answer(&mut bench, 1, stored());
    assert_eq!(standing(&bench).kind, GatesStandingKind::GateUnreachable);
    for text in [standing(&bench).message, message(&bench)] {
        assert!(text.contains("gate one (https://one.shop:8443): said the test"), "{text}");
        assert!(!text.contains("gate two"), "{text}");
    }
    bench.pass_renewing(Duration::from_secs(12));
    assert_eq!(bench.lost(), None);
    let again: Vec<usize> = bench.raises[2..].iter().map(|raise| raise.gate).collect();
    assert_eq!(again, [0, 0], "one call at a time, given up after 6 s, and two is not asked again");
    let last = bench.raises.len() - 1;
    answer(&mut bench, last, stored());
    bench.filed();
    assert_eq!(bench.granted(), [1]);
}

#[test]
fn a_call_that_was_given_up_does_not_count_when_it_is_answered() {
    let mut bench = raising(&["one"]);
    bench.pass_renewing(Duration::from_secs(9));
    assert_eq!(bench.raises.len(), 2);
    answer(&mut bench, 0, stored());
    assert!(bench.file_orders().is_empty());
    answer(&mut bench, 1, stored());
    assert!(!bench.file_orders().is_empty());
}

#[test]
fn without_a_gate_the_lease_is_given_back_after_thirty_seconds_and_left_to_others() {
    let mut bench = raising(&["one"]);
    answer(&mut bench, 0, failed());
    bench.pass_renewing(Duration::from_millis(29_900));
    assert!(bench.releases().is_empty());
    bench.pass_renewing(Duration::from_millis(200));
    assert_eq!(bench.releases(), [true]);
    let told = message(&bench);
    assert!(told.contains("gate one") && told.contains("Given back after 30 s"), "{told}");
    assert!(
        bench.facts.iter().any(|fact| matches!(fact, Fact::Abandoned { message, .. } if *message == told))
    );
    // Its own release is heard like any other.
    bench.feed(Event::ReleaseHeard { published: true });
    bench.pass(Duration::from_millis(4900));
    assert_eq!(bench.acquire_calls(), 1, "another pod may try");
    bench.pass(Duration::from_millis(5200));
    assert_eq!(bench.acquire_calls(), 2);
}

#[test]
fn the_gates_have_no_longer_than_half_of_max_hold() {
    assert_eq!(time_for_gates(Duration::from_secs(15), Duration::from_hours(24)).as_secs(), 30);
    assert_eq!(time_for_gates(Duration::from_mins(2), Duration::from_hours(24)).as_secs(), 120);
    assert_eq!(time_for_gates(Duration::from_secs(15), Duration::from_secs(54)).as_secs(), 27);
}

#[test]
fn max_hold_begins_with_active() {
    let mut bench = Bench::new(&["a"], |config| {
        config.gates = gates(&["one"]);
        config.max_hold = Duration::from_mins(1);
        config.max_hold_warning = Duration::from_secs(5);
    });
    bench.hello(1, "a");
    bench.acquired(41);
    bench.pass_renewing(Duration::from_secs(5));
    let opened_at = bench.now;
    answer(&mut bench, 0, stored());
    bench.filed();
    let State::Active { ends_at, .. } = bench.pod.published().state else { panic!("not ACTIVE") };
    assert!(ends_at.since(opened_at) >= Duration::from_secs(54), "at most a tenth shorter");
}

#[test]
fn a_gate_that_is_ahead_costs_the_holding_and_the_next_fence_lies_above_it() {
    let mut bench = raising(&["one", "two"]);
    answer(&mut bench, 1, ahead(57));
    assert_eq!(bench.releases(), [true]);
    assert_eq!(standing(&bench).kind, GatesStandingKind::GateAhead);
    let told = message(&bench);
    assert!(told.contains("gate two") && told.contains("57") && told.contains("41"), "{told}");
    answer(&mut bench, 0, stored());
    assert!(bench.file_orders().is_empty(), "it was given back");
    bench.pass(Duration::from_millis(1001));
    assert_eq!(bench.last_floor().map(Fence::get), Some(57));
    bench.acquired(58);
    for raise in 2..4 {
        answer(&mut bench, raise, stored());
    }
    bench.filed();
    assert_eq!((bench.granted(), standing(&bench).kind), (vec![1], GatesStandingKind::Raised));
}

#[test]
fn the_same_fence_of_another_holder_is_ahead_too() {
    let mut bench = raising(&["one"]);
    answer(&mut bench, 0, ahead(41));
    bench.pass(Duration::from_millis(1001));
    assert_eq!(bench.last_floor().map(Fence::get), Some(41));
}

#[test]
fn a_gate_that_is_ahead_again_is_not_chased() {
    let mut bench = raising(&["one"]);
    answer(&mut bench, 0, ahead(57));
    bench.pass(Duration::from_millis(1001));
    bench.acquired(58);
    answer(&mut bench, 1, ahead(1000));
    bench.pass(Duration::from_secs(5));
    assert_eq!(bench.acquire_calls(), 2);
    bench.pass(Duration::from_millis(5100));
    assert_eq!(bench.acquire_calls(), 3);
}

#[test]
fn a_gate_that_is_too_far_ahead_is_not_followed() {
    let mut bench = raising(&["one"]);
    answer(&mut bench, 0, ahead(Fence::MAX.get()));
    let told = message(&bench);
    assert!(told.contains("docs/gate.md"), "{told}");
    bench.pass(Duration::from_secs(11));
    assert_eq!(bench.last_floor().map(Fence::get), Some(41));
}

#[test]
fn no_answers_of_gates_lead_a_fence_further_than_one_may() {
    let mut bench = raising(&["one"]);
    let mut last = 41;
    for call in 0..2000 {
        let highest = last + 1_000_000;
        answer(&mut bench, call, ahead(highest));
        let was_followed = !message(&bench).contains("docs/gate.md");
        bench.pass(Duration::from_secs(11));
        let floor = bench.last_floor().unwrap().get();
        assert_eq!(floor, if was_followed { highest } else { last }, "after {call} answers");
        // As Redis does: above the floor.
        last = floor + 1;
        bench.acquired(last);
    }
    assert!((999_000_000..=1_000_010_000).contains(&last), "{last}");
}

#[test]
fn only_what_gates_add_to_the_fences_of_redis_counts() {
    let mut bench = raising(&["one"]);
    for (raise, (told, is_followed, next)) in [
        (600_000_041, true, 2_000_000_000),
        (2_300_000_000, true, 2_300_000_001),
        // In all that would be 100000001 too many.
        (2_500_000_002, false, 2_300_000_002),
        // Another holder's, and no step further.
        (2_300_000_002, true, 2_300_000_003),
        (2_400_000_003, true, 2_400_000_004),
        (2_400_000_005, false, 2_400_000_005),
    ]
    .into_iter()
    .enumerate()
    {
        answer(&mut bench, raise, ahead(told));
        assert_eq!(!message(&bench).contains("docs/gate.md"), is_followed, "{told}: {}", message(&bench));
        bench.pass(Duration::from_secs(11));
        bench.acquired(next);
    }
}

#[test]
fn what_ends_while_it_is_raised_is_given_back_and_what_is_lost_is_lost() {
    let mut bench = raising(&["one"]);
    bench.feed(Event::Terminate);
    assert_eq!(bench.releases(), [true]);
    bench.answer_release();
    assert!(bench.exit);

    let mut bench = raising(&["one"]);
    bench.died(1);
    assert_eq!(bench.releases(), [true]);

    let mut bench = raising(&["one"]);
    bench.pass(Duration::from_secs(5));
    bench.fail(LossReason::OtherOwner);
    assert_eq!(bench.releases(), [false]);
    answer(&mut bench, 0, stored());
    assert!(bench.file_orders().is_empty() && bench.granted().is_empty());
    assert!(matches!(bench.pod.published().state, State::Waiting { .. }));
}

#[test]
fn an_acquisition_that_is_still_to_be_confirmed_is_not_raised() {
    let mut bench = Bench::new(&["a"], |config| {
        config.timing = support::timing(Some(400));
        config.gates = gates(&["one"]);
    });
    bench.hello(1, "a");
    bench.pass(Duration::from_millis(401));
    bench.acquired(41);
    assert!(bench.raises.is_empty());
    bench.confirm();
    assert_eq!(bench.raises.len(), 1);
}
