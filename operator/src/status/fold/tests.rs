use fencedlease_wire::{EndReason, LossReason, PlannedEnd};

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn fence(number: u64) -> Fence {
    Fence::new(number).unwrap()
}

fn holding(number: u8) -> HoldingId {
    HoldingId::from_random([number; 8])
}

fn report(pod: &str, fact: Fact) -> Report {
    Report {
        namespace: "shop".to_owned(),
        lease: "report".to_owned(),
        pod_name: pod.to_owned(),
        node_name: "node-1".to_owned(),
        lease_generation: 1,
        run: holding(99),
        sequence: 1,
        fact,
    }
}

fn from(pod: &str) -> Reporter {
    Reporter { pod_uid: format!("uid-of-{pod}"), workload: None }
}

fn take(status: &FencedLeaseStatus, pod: &str, fact: Fact, seconds: i64) -> Folded {
    fold(status, &report(pod, fact), &from(pod), at(seconds))
}

fn acquired(number: u64) -> Fact {
    Fact::Acquired {
        fence: fence(number),
        holding: holding(1),
        waited_ms: 400,
        previous_holder: None,
        handover_ms: None,
    }
}

fn lost(number: u64, dead_after_ms: Option<u64>) -> Fact {
    Fact::Lost {
        fence: fence(number),
        holding: holding(1),
        reason: LossReason::RenewalTimeout,
        message: "no answer".to_owned(),
        dead_after_ms,
        before_deadline_ms: dead_after_ms.map(|_| 5000),
    }
}

fn released(number: u64) -> Fact {
    Fact::Released {
        fence: fence(number),
        holding: holding(1),
        reason: EndReason::Planned(PlannedEnd::WorkloadEnded),
        held_ms: 60_000,
        dead_after_ms: 12,
    }
}

fn standing(standing: Standing, kind: RedisStandingKind) -> Fact {
    let redis = RedisStanding { kind, message: String::new() };
    Fact::Standing { standing, highest_fence: None, redis, gates: None }
}

fn holds_with(number: u64) -> Fact {
    let standing_now = Standing::Holding { fence: fence(number), holding: holding(1) };
    standing(standing_now, RedisStandingKind::Connected)
}

fn held_by(pod: &str, number: u64) -> FencedLeaseStatus {
    take(&FencedLeaseStatus::default(), pod, acquired(number), 0).status
}

fn holder(status: &FencedLeaseStatus) -> Option<&str> {
    status.holder.as_ref().map(|holder| holder.pod_name.as_str())
}

#[test]
fn an_acquisition_makes_a_holder() {
    let folded = take(&FencedLeaseStatus::default(), "a", acquired(7), 0);
    let status = folded.status;
    let kept = status.holder.unwrap();
    assert_eq!((kept.pod_name.as_str(), kept.pod_uid.as_str()), ("a", "uid-of-a"));
    assert_eq!(kept.since, Time(at(0)));
    assert_eq!((status.fence, status.highest_fence, status.transitions), (Some(7), Some(7), 1));
    assert_eq!(folded.news.len(), 1);
    assert_eq!(folded.redis.unwrap().kind, RedisStandingKind::Connected);
}

#[test]
fn a_repeated_report_changes_nothing_and_is_no_news() {
    for fact in [acquired(7), lost(7, Some(34)), released(7)] {
        let once = take(&held_by("a", 6), "a", fact.clone(), 1);
        let twice = take(&once.status, "a", fact, 2);
        assert_eq!(twice.status, once.status);
        assert_eq!(twice.news, []);
    }
}

#[test]
fn the_greater_fence_wins_whatever_comes_first() {
    let new_first = take(&held_by("b", 8), "a", acquired(7), 1);
    assert_eq!(holder(&new_first.status), Some("b"));
    assert_eq!(new_first.news, []);
    let late_release = take(&held_by("b", 8), "a", released(7), 1);
    assert_eq!(holder(&late_release.status), Some("b"));
    assert!(matches!(late_release.news[..], [News::Released { .. }]), "{:?}", late_release.news);
    let late_loss = take(&held_by("b", 8), "a", lost(7, Some(34)), 1);
    assert_eq!(holder(&late_loss.status), Some("b"));
    assert_eq!(late_loss.status.last_loss.unwrap().fence, 7);
    assert_eq!(late_loss.news.len(), 1);
}

#[test]
fn what_ended_with_a_fence_stays_ended() {
    let ended = take(&held_by("a", 7), "a", lost(7, Some(34)), 1).status;
    assert_eq!(holder(&ended), None);
    assert_eq!(ended.fence, Some(7));
    let late = take(&ended, "a", holds_with(7), 2);
    assert_eq!(holder(&late.status), None);
}

#[test]
fn a_loss_without_proof_of_death_keeps_the_holder_and_says_so() {
    let pending = take(&held_by("a", 7), "a", lost(7, None), 1);
    assert!(pending.status.holder.as_ref().unwrap().kill_pending);
    assert!(matches!(pending.news[..], [News::Lost { dead_after_ms: None, .. }]));
    let proven = take(&pending.status, "a", lost(7, Some(9000)), 10);
    assert_eq!(holder(&proven.status), None);
    assert_eq!(proven.status.last_loss.unwrap().dead_after_milliseconds, Some(9000));
    assert!(matches!(proven.news[..], [News::Lost { dead_after_ms: Some(9000), .. }]));
}

#[test]
fn a_handover_is_told_with_both_fences() {
    let fact = Fact::Acquired {
        fence: fence(8),
        holding: holding(2),
        waited_ms: 900,
        previous_holder: Some("a".to_owned()),
        handover_ms: Some(8),
    };
    let news = take(&held_by("a", 7), "b", fact, 1).news;
    assert_eq!(news[1], News::HandedOver { from: 7, to: fence(8), milliseconds: 8 });
}

#[test]
fn a_holder_that_is_met_by_its_standing_is_a_holder() {
    let folded = take(&held_by("a", 7), "b", holds_with(8), 1);
    assert_eq!(holder(&folded.status), Some("b"));
    assert_eq!(folded.status.transitions, 2);
}

#[test]
fn a_heartbeat_is_written_every_fifteen_seconds() {
    let status = held_by("a", 7);
    assert_eq!(take(&status, "a", holds_with(7), 10).status, status);
    let later = take(&status, "a", holds_with(7), 15).status;
    assert_eq!(later.holder.unwrap().last_report, Some(Time(at(15))));
}

#[test]
fn a_holder_that_says_that_it_does_not_hold_is_believed() {
    for fact in [
        standing(Standing::Waiting, RedisStandingKind::Connected),
        standing(Standing::Ended, RedisStandingKind::Connected),
        Fact::Gone,
    ] {
        assert_eq!(holder(&take(&held_by("a", 7), "a", fact.clone(), 1).status), None);
        assert_eq!(holder(&take(&held_by("a", 7), "b", fact, 1).status), Some("a"));
    }
}

#[test]
fn while_there_is_a_holder_only_its_word_on_redis_counts() {
    let status = held_by("a", 7);
    let of_standby = take(&status, "b", standing(Standing::Waiting, RedisStandingKind::Timeout), 1);
    assert_eq!(of_standby.redis, None);
    let of_nobody =
        take(&FencedLeaseStatus::default(), "b", standing(Standing::Waiting, RedisStandingKind::Timeout), 1);
    assert_eq!(of_nobody.redis.unwrap().kind, RedisStandingKind::Timeout);
    let not_asked =
        take(&FencedLeaseStatus::default(), "b", standing(Standing::Waiting, RedisStandingKind::NotAsked), 1);
    assert_eq!(not_asked.redis, None);
}

fn raised_at(standing: Standing, kind: GatesStandingKind) -> Fact {
    let gates = GatesStanding { kind, message: "reports said so".to_owned() };
    Fact::Standing { standing, highest_fence: None, redis: connected(), gates: Some(gates) }
}

#[test]
fn while_there_is_a_holder_only_its_word_on_gates_counts() {
    let status = held_by("a", 7);
    let down = GatesStandingKind::GateUnreachable;
    assert_eq!(take(&status, "b", raised_at(Standing::Waiting, down), 1).gates, None);
    let holding = Standing::Holding { fence: fence(7), holding: holding(1) };
    assert_eq!(take(&status, "a", raised_at(holding, down), 1).gates.unwrap().kind, down);
    let nobody = FencedLeaseStatus::default();
    assert_eq!(take(&nobody, "b", raised_at(Standing::Waiting, down), 1).gates.unwrap().kind, down);
    let not_asked = take(&nobody, "b", raised_at(Standing::Waiting, GatesStandingKind::NotAsked), 1);
    assert_eq!(not_asked.gates, None, "a standby that has not tried knows nothing");
}

#[test]
fn a_pod_that_knows_of_the_present_gates_has_raised_its_fence_when_it_holds() {
    let seen = |generation| FencedLeaseStatus {
        observed_generation: Some(generation),
        ..FencedLeaseStatus::default()
    };
    let gates = take(&seen(1), "a", acquired(7), 0).gates.unwrap();
    assert_eq!(gates.kind, GatesStandingKind::Raised);
    assert_eq!(take(&seen(2), "a", acquired(7), 0).gates, None, "it was made before the gates were changed");
}

#[test]
fn the_highest_fence_never_falls() {
    let known = Fact::Standing {
        standing: Standing::Waiting,
        highest_fence: Some(fence(9)),
        redis: connected(),
        gates: None,
    };
    let status = take(&held_by("a", 12), "b", known, 1).status;
    assert_eq!(status.highest_fence, Some(12));
    assert_eq!(status.fence, Some(12));
}
