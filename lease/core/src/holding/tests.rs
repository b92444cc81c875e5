use fencedlease_wire::settings::TimingSettings;
use proptest::prelude::*;

use super::*;

fn timing() -> Timing {
    Timing::try_new(&TimingSettings {
        ttl_ms: 15_000,
        renew_interval_ms: None,
        renew_timeout_ms: 1_000,
        grace_period_ms: 2_000,
        kill_budget_ms: 2_000,
        commit_margin_ms: 2_000,
    })
    .unwrap()
}

fn at(milliseconds: u64) -> BootTime {
    BootTime::from_millis(1_000_000 + milliseconds)
}

fn acquired(sent: u64, answered: u64) -> Holding {
    let id = HoldingId::from_random([7; 8]);
    Holding::acquired(id, Fence::new(42).unwrap(), timing(), Duration::from_hours(1), at(sent), at(answered))
}

fn loss(holding: &Holding) -> &Loss {
    match holding.state() {
        HoldingState::Lost(loss) => loss,
        other => panic!("not lost but {other:?}"),
    }
}

fn failed(reason: LossReason) -> RenewalOutcome {
    RenewalOutcome::Failed { reason, message: String::new() }
}

#[test]
fn a_confirmed_renewal_counts_from_its_send_and_not_from_its_reply() {
    let mut holding = acquired(0, 10);
    assert_eq!(holding.next_instant(), Some(at(5000)));
    holding.on_time(at(5000));
    let call = holding.poll_renewal().unwrap();
    holding.on_renewal(call.call, RenewalOutcome::Confirmed, at(5900));
    assert_eq!(holding.confirmed_at(), at(5000));
    assert_eq!(holding.deadline(), at(17_000));
    assert_eq!(holding.next_instant(), Some(at(10_000)));
}

#[test]
fn a_renewal_without_an_answer_is_lost_at_its_timeout() {
    let mut holding = acquired(0, 10);
    holding.on_time(at(5000));
    assert_eq!(holding.poll_renewal().map(|call| call.timeout), Some(Duration::from_secs(1)));
    assert_eq!(holding.poll_renewal(), None, "a renewal is given out once");
    assert_eq!(holding.next_instant(), Some(at(6000)));
    holding.on_time(at(5999));
    assert_eq!(*holding.state(), HoldingState::Active);
    holding.on_time(at(6000));
    assert_eq!(loss(&holding).reason, LossReason::RenewalTimeout);
    assert_eq!(loss(&holding).kill_at, at(8000), "SIGKILL comes a grace later");
    assert_eq!(holding.next_instant(), None);
}

#[test]
fn a_confirmation_after_the_timeout_undoes_nothing() {
    let mut holding = acquired(0, 10);
    holding.on_time(at(5000));
    let call = holding.poll_renewal().unwrap();
    holding.on_renewal(call.call, RenewalOutcome::Confirmed, at(6000));
    assert_eq!(loss(&holding).reason, LossReason::RenewalTimeout);
    assert_eq!(holding.remaining(at(6000)), Duration::ZERO);
}

#[test]
fn what_redis_states_leaves_no_grace() {
    for reason in [LossReason::OtherOwner, LossReason::KeyGone, LossReason::SequenceLost] {
        let mut holding = acquired(0, 10);
        holding.on_time(at(5000));
        let call = holding.poll_renewal().unwrap();
        holding.on_renewal(call.call, failed(reason), at(5001));
        assert_eq!(loss(&holding).kill_at, at(5001), "{reason}");
    }
}

#[test]
fn the_grace_never_passes_the_kill_instant() {
    let mut holding = acquired(0, 10);
    holding.on_loss(LossReason::GuardGone, String::new(), at(6900));
    assert_eq!(loss(&holding).kill_at, at(8900));
    let mut late = acquired(0, 10);
    late.on_time(at(9000));
    assert_eq!(loss(&late).kill_at, at(9500));
}

#[test]
fn waking_more_than_a_stall_late_is_a_loss_and_half_a_second_is_not() {
    let mut holding = acquired(0, 10);
    holding.on_wake(at(5000), at(5500));
    assert_eq!(*holding.state(), HoldingState::Active);
    let mut late = acquired(0, 10);
    late.on_wake(at(5000), at(5501));
    assert_eq!(loss(&late).reason, LossReason::WatchLate);
}

#[test]
fn a_suspend_is_a_loss() {
    let mut holding = acquired(0, 10);
    holding.on_suspend(Duration::from_secs(2), at(100));
    assert_eq!(loss(&holding).reason, LossReason::Suspended);
}

#[test]
fn an_acquisition_answered_late_is_renewed_before_it_is_active() {
    let mut holding = acquired(0, 5500);
    assert_eq!(*holding.state(), HoldingState::Confirming);
    let call = holding.poll_renewal().unwrap();
    holding.on_renewal(call.call, RenewalOutcome::Confirmed, at(5510));
    assert_eq!(*holding.state(), HoldingState::Active);
    assert_eq!(holding.confirmed_at(), at(5500));
}

#[test]
fn an_acquisition_answered_after_the_term_instant_is_lost_at_once() {
    assert_eq!(loss(&acquired(0, 7000)).reason, LossReason::RenewalTimeout);
    assert_eq!(*acquired(0, 6999).state(), HoldingState::Confirming);
}

#[test]
fn max_hold_counts_from_the_moment_at_which_the_workload_may_start() {
    let mut holding = acquired(0, 10);
    holding.on_open(at(4000));
    assert_eq!(holding.ends_at(), at(4000) + Duration::from_hours(1));
    holding.on_end(PlannedEnd::StepDown, at(4500));
    holding.on_open(at(4800));
    assert_eq!(holding.ends_at(), at(4000) + Duration::from_hours(1), "an end is not put off");
}

#[test]
fn max_hold_ends_it_and_it_is_renewed_until_death_is_proven() {
    let id = HoldingId::from_random([7; 8]);
    let fence = Fence::new(1).unwrap();
    let mut holding = Holding::acquired(id, fence, timing(), Duration::from_secs(3), at(0), at(10));
    assert_eq!(holding.next_instant(), Some(at(3010)));
    holding.on_time(at(3010));
    assert_eq!(*holding.state(), HoldingState::Ending { reason: PlannedEnd::MaxHold, since: at(3010) });
    holding.on_time(at(5000));
    let call = holding.poll_renewal().expect("renewed while it ends");
    holding.on_renewal(call.call, RenewalOutcome::Confirmed, at(5001));
    holding.on_death_proven(at(6000));
    assert!(matches!(holding.state(), HoldingState::Released { dead_at, .. } if *dead_at == at(6000)));
    assert_eq!(holding.poll_renewal(), None);
}

#[test]
fn a_loss_while_ending_is_a_loss() {
    let mut holding = acquired(0, 10);
    holding.on_end(PlannedEnd::StepDown, at(100));
    holding.on_time(at(5000));
    let call = holding.poll_renewal().unwrap();
    holding.on_renewal(call.call, failed(LossReason::RenewalError), at(5002));
    assert_eq!(loss(&holding).reason, LossReason::RenewalError);
    holding.on_death_proven(at(5100));
    assert_eq!(loss(&holding).dead_at, Some(at(5100)));
}

#[test]
fn a_commit_may_not_start_when_too_little_remains() {
    let holding = acquired(0, 10);
    assert!(holding.may_commit(Duration::ZERO, at(6999)));
    assert!(!holding.may_commit(Duration::ZERO, at(7000)), "the term instant is too late");
    assert!(holding.may_commit(Duration::from_secs(5), at(4499)));
    assert!(!holding.may_commit(Duration::from_secs(5), at(4500)));
    let mut ending = acquired(0, 10);
    ending.on_end(PlannedEnd::StepDown, at(20));
    assert!(!ending.may_commit(Duration::ZERO, at(30)));
}

/// What can happen to a holding.
#[derive(Clone, Debug)]
enum Step {
    Time,
    Wake { late_ms: u64 },
    Reply { call: u64, confirmed: bool },
    End,
    Death,
    Loss,
}

fn step() -> impl Strategy<Value = (u64, Step)> {
    let step = prop_oneof![
        8 => Just(Step::Time),
        1 => (0_u64..800).prop_map(|late_ms| Step::Wake { late_ms }),
        8 => (1_u64..8, prop::bool::weighted(0.9)).prop_map(|(call, confirmed)| Step::Reply { call, confirmed }),
        1 => Just(Step::End),
        1 => Just(Step::Death),
        1 => Just(Step::Loss),
    ];
    (0_u64..1500, step)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    /// Whatever happens in whatever order: a final state is final, an ACTIVE holding is before its term
    /// instant, the deadline moves only by a confirmed call that was in flight, and the kill is never
    /// planned after the kill instant.
    #[test]
    fn no_order_of_events_breaks_the_promises(steps in prop::collection::vec(step(), 1..60)) {
        let mut holding = acquired(0, 10);
        let (mut now, mut sent) = (10, None);
        for (passed, step) in steps {
            now += passed;
            let before = holding.clone();
            match step {
                Step::Time => holding.on_time(at(now)),
                Step::Wake { late_ms } => holding.on_wake(at(now.saturating_sub(late_ms)), at(now)),
                Step::Reply { call, confirmed } => {
                    let outcome =
                        if confirmed { RenewalOutcome::Confirmed } else { failed(LossReason::RenewalError) };
                    holding.on_renewal(call, outcome, at(now));
                    if holding.confirmed_at() != before.confirmed_at() {
                        prop_assert_eq!(sent, Some((call, holding.confirmed_at())));
                        prop_assert!(confirmed && at(now) < before.term_at());
                    }
                }
                Step::End => holding.on_end(PlannedEnd::StepDown, at(now)),
                Step::Death => holding.on_death_proven(at(now)),
                Step::Loss => holding.on_loss(LossReason::GuardGone, String::new(), at(now)),
            }
            if before.is_over() {
                prop_assert_eq!(holding.end_reason(), before.end_reason());
                prop_assert_eq!(holding.deadline(), before.deadline());
                prop_assert_eq!(holding.poll_renewal(), None);
            }
            if let HoldingState::Lost(loss) = holding.state() {
                prop_assert!(loss.kill_at <= holding.kill_at());
                prop_assert!(loss.deadline == holding.deadline());
            } else if !holding.is_over() {
                prop_assert!(at(now) < holding.term_at());
            }
            if let Some(call) = holding.poll_renewal() {
                sent = Some((call.call, at(now)));
            }
        }
    }
}
