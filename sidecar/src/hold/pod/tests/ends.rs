//! How holdings end on purpose, and how the sidecar itself does.

use super::*;

#[test]
fn a_guard_whose_end_is_expected_is_not_missed() {
    let mut bench = Bench::holding(&["a"]);
    let holding = bench.holding_id();
    bench.say(1, FromGuard::Ended { holding, exit_code: 0 });
    bench.feed(Event::Disconnected { connection: ConnectionId(1), reason: String::new() });
    bench.pass(Duration::from_secs(3));
    assert_eq!(bench.lost(), None, "a big container takes a while to be torn down");
    bench.died(1);
    assert_eq!(bench.releases(), [true]);
}

#[test]
fn with_always_the_end_of_one_container_ends_the_others() {
    let mut bench = Bench::holding(&["a", "b"]);
    bench.died(1);
    let ToGuard::End { reason, exit_code, kill_at_ms, .. } = bench.last_told(2) else { panic!("no end") };
    assert_eq!((reason, exit_code), (EndReason::Planned(PlannedEnd::WorkloadEnded), Some(194)));
    assert_eq!(kill_at_ms, (bench.now + Duration::from_secs(27)).as_millis());
    bench.died(2);
    assert_eq!(bench.releases(), [true]);
}

#[test]
fn with_on_failure_only_a_failure_ends_the_others_and_an_untold_end_is_one() {
    for (told, goes_on) in [(Some(0), true), (Some(1), false), (None, false)] {
        let mut bench = Bench::holding_with(&["a", "b"], |c| c.restart_policy = RestartPolicy::OnFailure);
        let holding = bench.holding_id();
        if let Some(exit_code) = told {
            bench.say(1, FromGuard::Ended { holding, exit_code });
        }
        bench.died(1);
        assert_eq!(matches!(bench.last_told(2), ToGuard::End { .. }), !goes_on, "{told:?}");
    }
}

#[test]
fn with_never_the_last_ones_end_releases_and_nobody_competes_any_more() {
    let mut bench = Bench::holding_with(&["a", "b"], |config| config.restart_policy = RestartPolicy::Never);
    bench.died(1);
    assert!(bench.releases().is_empty());
    bench.died(2);
    assert_eq!(bench.releases(), [true]);
    bench.pass(Duration::from_mins(1));
    assert_eq!(bench.acquire_calls(), 1);
    assert!(matches!(bench.pod.published().state, State::Released { .. }));
}

#[test]
fn max_hold_warns_and_then_ends() {
    let mut bench = Bench::holding_with(&["a"], |config| {
        config.max_hold = Duration::from_mins(2);
        config.max_hold_warning = Duration::from_secs(30);
    });
    bench.pass_renewing(Duration::from_secs(75));
    assert!(!bench.facts.iter().any(|fact| matches!(fact, Fact::MaxHoldNear { .. })));
    bench.pass_renewing(Duration::from_secs(10));
    assert!(bench.facts.iter().any(|fact| matches!(fact, Fact::MaxHoldNear { .. })));
    bench.pass_renewing(Duration::from_secs(30));
    assert!(matches!(bench.last_told_end(1), Some((EndReason::Planned(PlannedEnd::MaxHold), Some(196)))));
}

#[test]
fn a_deletion_keeps_the_workloads_own_exit_code_and_hurries_an_end_under_way() {
    let mut bench = Bench::holding(&["a"]);
    bench.feed(Event::StepDown);
    bench.pass_renewing(Duration::from_secs(1));
    let planned = bench.last_end_kill_at(1);
    bench.feed(Event::Terminate);
    assert_eq!(bench.last_end_kill_at(1), planned, "the earlier instant counts");
    let mut bench = Bench::holding(&["a"]);
    let holding = bench.holding_id();
    bench.say(1, FromGuard::Terminating { holding });
    assert_eq!(bench.last_told_end(1), Some((EndReason::Planned(PlannedEnd::PodDeleted), None)));
}

#[test]
fn sigterm_exits_at_once_without_a_lease_and_after_the_release_with_one() {
    let mut bench = Bench::new(&["a"], |_| {});
    bench.feed(Event::Terminate);
    assert!(bench.exit);
    let mut bench = Bench::holding(&["a"]);
    bench.feed(Event::Terminate);
    bench.pass_renewing(Duration::from_secs(8));
    assert!(!bench.exit && bench.lost().is_none(), "it renews while the workload ends");
    bench.died(1);
    assert!(!bench.exit, "the release is under way");
    bench.answer_release();
    assert!(bench.exit);
}

#[test]
fn sigterm_does_not_wait_for_ever_for_a_release() {
    let mut bench = Bench::holding(&["a"]);
    bench.feed(Event::Terminate);
    bench.died(1);
    bench.pass(Duration::from_millis(1500));
    assert!(bench.exit);
}

#[test]
fn an_acquisition_under_way_at_sigterm_is_given_back() {
    let mut bench = Bench::new(&["a"], |_| {});
    bench.hello(1, "a");
    bench.feed(Event::Terminate);
    assert!(!bench.exit, "it may have the lease");
    bench.acquired(41);
    assert_eq!(bench.releases(), [true]);
    bench.answer_release();
    assert!(bench.exit);
}

#[test]
fn a_workload_that_could_not_be_started_ends_the_holding() {
    let mut bench = Bench::holding_with(&["a", "b"], |c| c.restart_policy = RestartPolicy::OnFailure);
    let holding = bench.holding_id();
    bench.say(1, FromGuard::StartFailed { holding, exit_code: 127, message: "not found".into() });
    bench.died(1);
    assert!(matches!(bench.last_told(2), ToGuard::End { .. }));
}

#[test]
fn who_says_to_be_a_container_that_has_completed_is_turned_away_whatever_it_claims() {
    let mut bench = Bench::holding_with(&["a", "b"], |config| config.restart_policy = RestartPolicy::Never);
    bench.died(1);
    let holding = Some(bench.holding_id());
    for (connection, holding) in [(8, None), (9, holding)] {
        let hello = Hello { container: "a".into(), secret: None, holding, acted: false };
        bench.feed(Event::Hello { connection: ConnectionId(connection), hello });
        assert_eq!(bench.closed.last(), Some(&connection));
    }
    bench.died(2);
    assert_eq!(bench.releases(), [true], "a claim does not keep the lease from being given back");
}
