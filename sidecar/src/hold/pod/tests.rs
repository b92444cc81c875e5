//! The machine, event by event. Time stands still unless a test moves it.

mod ends;
mod init;
mod property;
mod raise;
mod restart;
mod support;
mod texts;

use std::time::Duration;

use fencedlease_core::RenewalOutcome;
use fencedlease_wire::endpoint::RedisStandingKind;
use fencedlease_wire::guard::{FromGuard, ToGuard};
use fencedlease_wire::settings::{RestartPolicy, StandbyMode};
use fencedlease_wire::{EndReason, LossReason, PlannedEnd};

use self::support::Bench;
use super::*;

#[test]
fn a_warm_pod_competes_when_every_guard_waits_and_grants_when_its_note_is_written() {
    let mut bench = Bench::new(&["a", "b"], |_| {});
    bench.hello(1, "a");
    assert_eq!(bench.acquire_calls(), 0, "b is missing");
    bench.hello(2, "b");
    assert_eq!(bench.acquire_calls(), 1);
    bench.acquired(41);
    assert_eq!(bench.granted(), [0; 0], "nothing is granted before the note is written");
    bench.filed();
    assert_eq!(bench.granted(), [1, 2]);
    assert!(matches!(bench.pod.published().state, State::Active { fence, .. } if fence.get() == 41));
}

#[test]
fn a_guard_that_goes_away_before_the_answer_means_a_release_at_once() {
    let mut bench = Bench::new(&["a"], |_| {});
    bench.hello(1, "a");
    bench.died(1);
    bench.acquired(41);
    assert_eq!(bench.releases(), [true]);
    bench.filed();
    assert_eq!(bench.granted(), [0; 0]);
}

#[test]
fn a_note_that_cannot_be_written_means_a_release_and_no_grant() {
    let mut bench = Bench::new(&["a"], |_| {});
    bench.hello(1, "a");
    bench.acquired(41);
    bench.pass_renewing(FILING_BOUND);
    assert_eq!(bench.releases(), [true]);
    assert_eq!(bench.granted(), [0; 0]);
    assert!(bench.acquire_calls() == 1, "it does not try again at once");
}

#[test]
fn an_answer_after_the_renewal_interval_is_confirmed_before_anything_is_granted() {
    let mut bench = Bench::new(&["a"], |config| config.timing = support::timing(Some(400)));
    bench.hello(1, "a");
    bench.pass(Duration::from_millis(401));
    bench.acquired(41);
    assert!(bench.file_orders().is_empty(), "not ACTIVE yet");
    bench.confirm();
    bench.filed();
    assert_eq!(bench.granted(), [1]);
}

#[test]
fn a_confirmed_renewal_extends_and_a_failed_one_ends_everything() {
    let mut bench = Bench::holding(&["a"]);
    bench.pass(Duration::from_secs(5));
    bench.confirm();
    assert!(matches!(bench.last_told(1), ToGuard::Extend { .. }));
    bench.pass(Duration::from_secs(5));
    bench.fail(LossReason::RenewalError);
    let now = bench.now;
    let ToGuard::End { reason, kill_at_ms, exit_code, .. } = bench.last_told(1) else { panic!("no end") };
    assert_eq!((reason, exit_code), (EndReason::Lost(LossReason::RenewalError), Some(195)));
    assert_eq!(kill_at_ms, (now + Duration::from_secs(2)).as_millis());
    assert!(bench.releases().is_empty(), "nothing is released before death is proven");
    bench.died(1);
    assert_eq!(bench.releases(), [false]);
}

#[test]
fn a_loss_that_redis_stated_kills_at_once() {
    let mut bench = Bench::holding(&["a"]);
    bench.pass(Duration::from_secs(5));
    bench.fail(LossReason::OtherOwner);
    let ToGuard::End { kill_at_ms, .. } = bench.last_told(1) else { panic!("no end") };
    assert_eq!(kill_at_ms, bench.now.as_millis());
}

#[test]
fn a_loss_that_is_proven_dead_after_the_deadline_is_not_released() {
    let mut bench = Bench::holding(&["a"]);
    bench.pass(Duration::from_secs(5));
    bench.fail(LossReason::RenewalError);
    bench.pass(Duration::from_secs(20));
    assert!(bench.facts.iter().any(|fact| matches!(fact, Fact::Lost { dead_after: None, .. })), "it is told");
    bench.died(1);
    assert!(bench.releases().is_empty());
}

#[test]
fn lateness_and_a_suspend_are_losses() {
    let mut bench = Bench::holding(&["a"]);
    let planned = bench.now;
    bench.pass_silently(Duration::from_millis(501));
    bench.feed(Event::Late { planned });
    assert_eq!(bench.lost(), Some(LossReason::WatchLate));
    let mut bench = Bench::holding(&["a"]);
    bench.feed(Event::Suspended { gained: Duration::from_millis(1) });
    assert_eq!(bench.lost(), Some(LossReason::Suspended));
}

#[test]
fn a_guard_may_lose_its_connection_for_a_second() {
    let mut bench = Bench::holding(&["a"]);
    bench.feed(Event::Disconnected { connection: ConnectionId(1), reason: String::new() });
    bench.pass(Duration::from_millis(900));
    bench.hello_again(2, "a");
    assert!(matches!(bench.last_told(2), ToGuard::Extend { .. }));
    bench.pass(Duration::from_millis(900));
    assert_eq!(bench.lost(), None);
    bench.feed(Event::Disconnected { connection: ConnectionId(2), reason: String::new() });
    bench.pass(GUARD_ABSENCE);
    assert_eq!(bench.lost(), Some(LossReason::GuardGone));
    bench.hello_again(3, "a");
    assert!(matches!(bench.last_told(3), ToGuard::End { .. }), "it is told when it is back");
}

#[test]
fn a_guard_that_acted_by_itself_is_a_loss() {
    let mut bench = Bench::holding(&["a"]);
    let holding = bench.holding_id();
    bench.say(1, FromGuard::Acted { holding, message: "late".to_owned() });
    assert_eq!(bench.lost(), Some(LossReason::GuardGone));
}

#[test]
fn words_about_another_holding_change_nothing() {
    let mut bench = Bench::holding(&["a"]);
    let other = HoldingId::from_random([9; 8]);
    bench.say(1, FromGuard::Acted { holding: other.clone(), message: String::new() });
    bench.say(1, FromGuard::Terminating { holding: other });
    assert!(matches!(bench.pod.published().state, State::Active { ending: None, .. }));
}

#[test]
fn a_wrong_secret_a_second_guard_and_an_unknown_container_change_nothing() {
    let mut bench = Bench::holding(&["a"]);
    bench.hello(2, "a");
    assert!(bench.closed.contains(&2), "a second guard of a live container");
    bench.feed(Event::Hello {
        connection: ConnectionId(3),
        hello: Hello {
            container: "a".into(),
            secret: Some("wrong".into()),
            holding: Some(bench.holding_id()),
            acted: true,
        },
    });
    assert!(bench.closed.contains(&3));
    bench.hello(4, "z");
    assert!(matches!(bench.last_told(4), ToGuard::Dismiss { exit_code: 197, .. }));
    assert!(matches!(bench.pod.published().state, State::Active { ending: None, .. }));
}

#[test]
fn a_cold_pod_holds_without_guards_and_grants_as_they_come() {
    let mut bench = Bench::new(&["a", "b"], |config| config.standby_mode = StandbyMode::Cold);
    assert_eq!(bench.acquire_calls(), 1);
    bench.acquired(41);
    bench.filed();
    assert!(bench.pod.published().not_started().is_none());
    bench.hello(1, "a");
    assert_eq!(bench.granted(), [1]);
    bench.hello(2, "b");
    assert_eq!(bench.granted(), [1, 2]);
    bench.died(1);
    bench.died(2);
    bench.hello(3, "a");
    bench.pass(Duration::from_mins(1));
    assert_eq!(bench.acquire_calls(), 1, "from now on it is a warm one, and b is missing");
}

#[test]
fn a_cold_holding_without_any_guard_is_released_after_five_minutes() {
    let mut bench = Bench::new(&["a"], |config| config.standby_mode = StandbyMode::Cold);
    bench.acquired(41);
    bench.filed();
    bench.pass_renewing(COLD_PATIENCE.saturating_sub(Duration::from_secs(1)));
    assert!(bench.releases().is_empty());
    bench.pass_renewing(Duration::from_secs(2));
    assert_eq!(bench.releases(), [true]);
}

#[test]
fn a_failed_attempt_backs_off_and_a_hint_does_not_shorten_that() {
    let mut bench = Bench::new(&["a"], |_| {});
    bench.hello(1, "a");
    let failed = AcquireAnswer::Failed { kind: RedisStandingKind::AuthFailed, message: "WRONGPASS".into() };
    bench.answer(failed);
    bench.feed(Event::ReleaseHeard { published: true });
    assert_eq!(bench.acquire_calls(), 1);
    assert!(bench.pod.published().not_ready(true, bench.now).is_some_and(|why| why.contains("WRONGPASS")));
    bench.pass(Duration::from_millis(200));
    assert_eq!(bench.acquire_calls(), 2);
}

#[test]
fn an_attempt_without_an_outcome_is_given_up_and_a_late_lease_given_back() {
    let mut bench = Bench::new(&["a"], |_| {});
    bench.hello(1, "a");
    bench.pass(Duration::from_millis(2200));
    assert_eq!(bench.acquire_calls(), 2);
    bench.answer_first_attempt(41);
    assert_eq!(bench.releases(), [true]);
    bench.acquired(42);
    bench.filed();
    assert_eq!(bench.granted(), [1], "the second one counts");
}

#[test]
fn a_standby_sleeps_until_the_release_and_tells_the_holder() {
    let mut bench = Bench::new(&["a"], |_| {});
    bench.hello(1, "a");
    bench.answer(AcquireAnswer::Held {
        remaining: Some(Duration::from_secs(9)),
        highest_fence: Fence::new(7).ok(),
        holder: Some("other".into()),
    });
    bench.pass(Duration::from_secs(8));
    assert_eq!(bench.acquire_calls(), 1);
    assert!(
        matches!(bench.pod.published().state, State::Waiting { holder: Some(holder), .. } if holder == "other")
    );
    bench.feed(Event::ReleaseHeard { published: true });
    bench.pass(Duration::from_millis(10));
    assert_eq!(bench.acquire_calls(), 2);
    assert_eq!(bench.last_floor(), Fence::new(7).ok());
}

#[test]
fn a_release_that_is_heard_while_an_attempt_is_under_way_is_not_forgotten() {
    let mut bench = Bench::new(&["a"], |_| {});
    bench.hello(1, "a");
    bench.feed(Event::ReleaseHeard { published: true });
    bench.answer(AcquireAnswer::Held {
        remaining: Some(Duration::from_secs(9)),
        highest_fence: None,
        holder: Some("other".into()),
    });
    bench.pass(Duration::from_millis(10));
    assert_eq!(bench.acquire_calls(), 2);
}

#[test]
fn after_a_loss_it_is_not_ready_until_its_guard_is_back() {
    let mut bench = Bench::holding(&["a"]);
    bench.pass(Duration::from_secs(5));
    bench.fail(LossReason::KeyGone);
    bench.died(1);
    assert!(bench.pod.published().not_ready(true, bench.now).is_some());
    bench.hello(2, "a");
    assert_eq!(bench.pod.published().not_ready(true, bench.now), None);
    assert!(bench.pod.published().not_ready(false, bench.now).is_some());
}

#[test]
fn a_confirmation_that_comes_after_the_loss_changes_nothing() {
    let mut bench = Bench::holding(&["a"]);
    bench.pass(Duration::from_secs(5));
    let call = bench.renewal.take().unwrap();
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.lost(), Some(LossReason::RenewalTimeout));
    bench.feed(Event::RenewAnswered { call, outcome: RenewalOutcome::Confirmed });
    assert_eq!(bench.lost(), Some(LossReason::RenewalTimeout));
    bench.pass(Duration::from_mins(1));
    assert!(bench.renewal.is_none(), "nothing is renewed after the end");
}
