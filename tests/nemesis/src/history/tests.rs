use super::*;

fn acquired(at: Nanos, run: u64, fence: u64) -> Executed {
    Executed::Acquired { at, token: format!("token-{run}"), fence, run }
}

fn released(at: Nanos, run: u64) -> Executed {
    Executed::Released { at, token: format!("token-{run}") }
}

fn stamps(run: u64, fence: u64, first: Nanos, last: Nanos) -> Stamps {
    Stamps { run, fence, first, last }
}

/// One ends and releases, one is lost and runs out, and a third follows.
fn good() -> History {
    History {
        ttl: 100,
        redis: vec![
            acquired(10, 1, 1),
            Executed::Renewed { at: 40, token: "token-1".into() },
            released(60, 1),
            acquired(70, 2, 2),
            acquired(180, 3, 3),
        ],
        stamps: vec![stamps(1, 1, 15, 55), stamps(2, 2, 75, 120), stamps(3, 3, 185, 190)],
        ended: BTreeMap::from([(1, 58), (2, 125)]),
        said: BTreeMap::from([(
            2,
            vec![Said::Active { fence: 2 }, Said::Lost { fence: 2, at: 110 }, Said::Active { fence: 3 }],
        )]),
    }
}

fn found(change: impl FnOnce(&mut History)) -> Vec<Violation> {
    let mut history = good();
    change(&mut history);
    check(&history)
}

#[test]
fn a_good_history_has_nothing_in_it() {
    assert_eq!(found(|_| {}), []);
}

#[test]
fn two_workloads_at_a_time_are_found() {
    let found = found(|history| history.stamps[1].last = 186);
    assert!(found.contains(&Violation::Overlap(2, 3)), "{found:?}");
}

#[test]
fn a_workload_that_lives_at_the_next_acquisition_is_found() {
    let found = found(|history| {
        history.stamps[1].last = 181;
        history.ended.clear();
    });
    assert_eq!(found, [Violation::TakenOverAlive(2, 3)]);
}

#[test]
fn a_release_before_death_is_found() {
    let found = found(|history| {
        history.stamps[0].last = 62;
        history.ended.clear();
    });
    assert_eq!(found, [Violation::ReleasedAlive(1)]);
}

#[test]
fn a_workload_without_an_acquisition_is_found() {
    assert_eq!(found(|history| history.stamps[2].fence = 9), [Violation::RunWithoutLease(3)]);
    assert_eq!(found(|history| history.stamps[2].first = 179), [Violation::RunWithoutLease(3)]);
}

#[test]
fn a_workload_that_starts_after_the_next_acquisition_is_found() {
    let found = found(|history| {
        history.stamps.truncate(2);
        history.stamps[1] = stamps(2, 2, 182, 183);
        history.ended.clear();
    });
    assert_eq!(found, [Violation::RunWithoutLease(2)]);
}

#[test]
fn a_fence_that_does_not_grow_is_found() {
    let found = found(|history| {
        history.redis[4] = acquired(180, 3, 2);
        history.stamps[2].fence = 2;
    });
    assert_eq!(found, [Violation::FenceOrder(2, 3)]);
}

#[test]
fn a_token_that_is_used_twice_is_found() {
    let found = found(|history| {
        history.redis[4] = Executed::Acquired { at: 180, token: "token-2".into(), fence: 3, run: 3 };
    });
    assert_eq!(found, [Violation::TokenReused(2, 3)]);
}

#[test]
fn a_process_that_outlives_its_run_is_found() {
    assert_eq!(found(|history| history.stamps[0].last = 59), [Violation::StampAfterEnd(1)]);
}

#[test]
fn a_lost_holding_that_is_held_again_is_found() {
    let found = found(|history| history.said.entry(2).or_default().push(Said::Active { fence: 2 }));
    assert_eq!(found, [Violation::HeldAfterLoss(2)]);
}

#[test]
fn a_key_that_was_taken_away_excuses_an_overlap_until_its_grant_runs_out() {
    let taken = |last: Nanos| {
        found(|history| {
            history.redis.insert(4, Executed::TakenAway { at: 100 });
            history.redis[5] = acquired(105, 3, 3);
            history.stamps[1].last = last;
            history.stamps[2] = stamps(3, 3, 110, 200);
            history.ended.clear();
        })
    };
    assert_eq!(taken(160), []);
    assert_eq!(taken(171), [Violation::TakenOverAlive(2, 3), Violation::Overlap(2, 3)]);
}
