use fencedlease_crds::{FencedLeaseSpec, Workload};
use fencedlease_wire::endpoint::{GatesStanding, RedisStanding};

use super::*;
use crate::admit::lease::resolve;
use crate::status::pods::{Hanging, PodsSummary};
use crate::status::settle::{LastRefusal, settle};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn facts() -> Facts {
    Facts {
        generation: Some(1),
        timing: Ok(resolve(&FencedLeaseSpec::default()).unwrap().timing),
        has_redis: true,
        redis: None,
        has_gates: false,
        gates: None,
        gate_key_problem: None,
        pods: PodsSummary {
            alive: ["uid-of-a".to_owned()].into(),
            standbys: vec!["a".to_owned()],
            ..PodsSummary::default()
        },
        unguarded: Vec::new(),
        refusal: None,
    }
}

fn redis(kind: RedisStandingKind, message: &str) -> Facts {
    Facts { redis: Some(RedisStanding { kind, message: message.to_owned() }), ..facts() }
}

/// Status, reason and message of a condition after settling.
fn shown(status: &FencedLeaseStatus, of: ConditionType) -> (String, String, String) {
    let condition = standing(status, of).unwrap();
    (condition.status.clone(), condition.reason.clone(), condition.message.clone())
}

fn reason(status: &FencedLeaseStatus, of: ConditionType) -> String {
    let (status, reason, _) = shown(status, of);
    format!("{status}/{reason}")
}

#[test]
fn a_fresh_lease_is_ready_best_effort_and_has_asked_nobody() {
    let status = settle(&FencedLeaseStatus::default(), &facts(), at(0));
    assert_eq!(reason(&status, ConditionType::Ready), "True/AsSpecified");
    assert_eq!(reason(&status, ConditionType::Held), "False/AllWaiting");
    assert_eq!(reason(&status, ConditionType::RedisReachable), "Unknown/NoReport");
    assert_eq!(reason(&status, ConditionType::FenceDurable), "False/BestEffort");
    assert_eq!(reason(&status, ConditionType::PodsCurrent), "True/UpToDate");
    assert_eq!(reason(&status, ConditionType::AdmissionOk), "True/Admitted");
    assert_eq!(status.conditions.len(), 6, "what there is no gate for has no condition");
}

fn gates(kind: GatesStandingKind, message: &str) -> Facts {
    let gates = Some(GatesStanding { kind, message: message.to_owned() });
    Facts { has_gates: true, gates, ..facts() }
}

#[test]
fn a_gate_that_cannot_be_told_makes_the_lease_unready_in_the_sidecars_words() {
    let of = ConditionType::GatesReady;
    let fresh = settle(&FencedLeaseStatus::default(), &Facts { has_gates: true, ..facts() }, at(0));
    assert_eq!(reason(&fresh, of), "Unknown/NoReport");
    assert_eq!(reason(&fresh, ConditionType::Ready), "True/AsSpecified");
    for (kind, word) in
        [(GatesStandingKind::GateUnreachable, "GateUnreachable"), (GatesStandingKind::GateAhead, "GateAhead")]
    {
        let said = "gate reports (https://gate:8443) does not answer: see that it runs";
        let down = settle(&fresh, &gates(kind, said), at(0));
        assert_eq!(shown(&down, of), ("False".into(), word.into(), said.into()));
        assert_eq!(shown(&down, ConditionType::Ready), ("False".into(), word.into(), said.into()));
        let silent = Facts { has_gates: true, ..facts() };
        assert_eq!(
            reason(&settle(&down, &silent, at(10)), of),
            format!("False/{word}"),
            "until it is told anew"
        );
        let up = settle(&down, &gates(GatesStandingKind::Raised, ""), at(20));
        assert_eq!(reason(&up, of), "True/Raised");
        assert_eq!(reason(&up, ConditionType::Ready), "True/AsSpecified");
        let alone = Facts { pods: PodsSummary::default(), ..silent };
        assert_eq!(reason(&settle(&down, &alone, at(10)), of), "Unknown/NoReport");
        let removed = settle(&down, &facts(), at(30));
        assert!(standing(&removed, of).is_none(), "the spec names no gates any more");
        assert_eq!(reason(&removed, ConditionType::Ready), "True/AsSpecified");
    }
}

#[test]
fn a_key_that_could_not_be_made_is_said_until_it_is_there() {
    let of = ConditionType::GatesReady;
    let problem = Some("The operator cannot make the Secret".to_owned());
    let missing = Facts { gate_key_problem: problem, ..gates(GatesStandingKind::Raised, "") };
    let status = settle(&FencedLeaseStatus::default(), &missing, at(0));
    assert_eq!(reason(&status, of), "False/GateKeyMissing");
    assert_eq!(reason(&status, ConditionType::Ready), "False/GateKeyMissing");
    let made = settle(&status, &Facts { has_gates: true, ..facts() }, at(5));
    assert_eq!(reason(&made, of), "Unknown/NoReport");
}

#[test]
fn every_trouble_of_redis_is_its_reason_and_makes_the_lease_unready() {
    for (kind, word) in [
        (RedisStandingKind::Timeout, "Timeout"),
        (RedisStandingKind::AuthFailed, "AuthFailed"),
        (RedisStandingKind::PermissionDenied, "PermissionDenied"),
        (RedisStandingKind::NotMaster, "NotMaster"),
        (RedisStandingKind::TlsFailed, "TLSFailed"),
        (RedisStandingKind::SecretNotFound, "SecretNotFound"),
        (RedisStandingKind::Failed, "Failed"),
    ] {
        let status = settle(&FencedLeaseStatus::default(), &redis(kind, "what it said"), at(0));
        assert_eq!(reason(&status, ConditionType::RedisReachable), format!("False/{word}"));
        assert_eq!(reason(&status, ConditionType::Ready), format!("False/{word}"));
        let (.., message) = shown(&status, ConditionType::RedisReachable);
        assert!(message.starts_with("what it said. ") && message.len() > 30, "{message}");
    }
}

#[test]
fn what_redis_said_stays_until_it_says_something_else_or_nobody_asks() {
    let down = settle(&FencedLeaseStatus::default(), &redis(RedisStandingKind::Timeout, "late"), at(0));
    let later = settle(&down, &facts(), at(10));
    assert_eq!(reason(&later, ConditionType::RedisReachable), "False/Timeout");
    let up = settle(&later, &redis(RedisStandingKind::Connected, ""), at(20));
    assert_eq!(reason(&up, ConditionType::RedisReachable), "True/Connected");
    assert_eq!(standing(&up, ConditionType::RedisReachable).unwrap().last_transition_time, Time(at(20)));
    let alone = settle(&down, &Facts { pods: PodsSummary::default(), ..facts() }, at(10));
    assert_eq!(reason(&alone, ConditionType::RedisReachable), "Unknown/NoReport");
    assert_eq!(reason(&alone, ConditionType::Ready), "True/AsSpecified");
}

#[test]
fn without_any_redis_the_two_ways_to_mend_it_are_told() {
    let none = settle(&FencedLeaseStatus::default(), &Facts { has_redis: false, ..facts() }, at(0));
    let (status, reason_shown, message) = shown(&none, ConditionType::RedisReachable);
    assert_eq!((status.as_str(), reason_shown.as_str()), ("False", "NotConfigured"));
    assert!(message.contains("spec.redis.addresses") && message.contains("chart"), "{message}");
    let mended = settle(&none, &facts(), at(1));
    assert_eq!(reason(&mended, ConditionType::RedisReachable), "Unknown/NoReport");
}

#[test]
fn an_invalid_spec_says_why() {
    let invalid = Facts { timing: Err("spec.ttl 8s is too short".to_owned()), ..facts() };
    let status = settle(&FencedLeaseStatus::default(), &invalid, at(0));
    let (state, reason, message) = shown(&status, ConditionType::Ready);
    assert_eq!(
        (state.as_str(), reason.as_str(), message.as_str()),
        ("False", "Invalid", "spec.ttl 8s is too short")
    );
}

fn refused(seconds: i64) -> Facts {
    let message = "Pod x cannot be guarded".to_owned();
    Facts { refusal: Some(LastRefusal { message, at: at(seconds) }), ..facts() }
}

/// Of a pod that was admitted in this second.
fn newest(mut facts: Facts, seconds: i64) -> Facts {
    facts.pods.newest = Some(at(seconds));
    facts
}

#[test]
fn a_refusal_is_shown_until_a_pod_is_admitted_or_for_twenty_minutes() {
    let status = settle(&FencedLeaseStatus::default(), &refused(0), at(3));
    assert_eq!(reason(&status, ConditionType::AdmissionOk), "False/PodsRefused");
    assert_eq!(reason(&status, ConditionType::Ready), "False/PodsRefused");
    let still = settle(&status, &facts(), at(1199));
    assert_eq!(reason(&still, ConditionType::AdmissionOk), "False/PodsRefused");
    assert_eq!(reason(&settle(&still, &facts(), at(1200)), ConditionType::AdmissionOk), "True/Admitted");
    let after = |pod| reason(&settle(&status, &newest(facts(), pod), at(6)), ConditionType::AdmissionOk);
    assert_eq!(after(5), "True/Admitted");
    assert_eq!(after(1), "True/Admitted", "though the refusal was heard of later");
    assert_eq!(after(0), "True/Admitted", "the controller may try again within the second");
    assert_eq!(after(-5), "False/PodsRefused");
}

#[test]
fn a_refusal_that_is_heard_of_after_the_next_pod_is_over() {
    let status = settle(&FencedLeaseStatus::default(), &newest(refused(0), 1), at(3));
    assert_eq!(reason(&status, ConditionType::AdmissionOk), "True/Admitted");
}

#[test]
fn a_refusal_that_goes_on_is_shown_on() {
    let first = settle(&FencedLeaseStatus::default(), &refused(0), at(0));
    assert_eq!(settle(&first, &refused(599), at(599)), first, "no write for each");
    let again = settle(&first, &refused(600), at(600));
    assert_eq!(reason(&settle(&again, &facts(), at(1700)), ConditionType::AdmissionOk), "False/PodsRefused");
}

#[test]
fn a_refusal_beside_a_pod_of_its_second_comes_back_with_the_next_try() {
    let first = settle(&FencedLeaseStatus::default(), &newest(refused(0), 0), at(0));
    assert_eq!(reason(&first, ConditionType::AdmissionOk), "False/PodsRefused");
    let next = settle(&first, &newest(refused(2), 0), at(2));
    let still = settle(&next, &newest(facts(), 0), at(500));
    assert_eq!(reason(&still, ConditionType::AdmissionOk), "False/PodsRefused");
}

#[test]
fn pods_that_are_not_as_they_should_be_are_named() {
    let mut all = facts();
    all.pods.outdated = (1..=7).map(|number| format!("report-{number}")).collect();
    let status = settle(&FencedLeaseStatus::default(), &all, at(0));
    let (_, reason_shown, message) = shown(&status, ConditionType::PodsCurrent);
    assert_eq!(reason_shown, "OutdatedPods");
    assert!(
        message.starts_with("report-1, report-2, report-3, report-4, report-5 and 2 more run"),
        "{message}"
    );

    all.pods.hanging = Some(Hanging {
        pod: "report-new".to_owned(),
        holder: "report-old".to_owned(),
        workload: Some(Workload { kind: "Deployment".to_owned(), name: "report".to_owned() }),
    });
    let status = settle(&FencedLeaseStatus::default(), &all, at(0));
    let (_, reason_shown, message) = shown(&status, ConditionType::PodsCurrent);
    assert_eq!(reason_shown, "RolloutMayHang");
    assert!(message.contains("Deployment report") && message.contains("Recreate"), "{message}");
    // One less than all would keep the holder, the one Ready pod, for ever.
    assert!(message.contains("maxUnavailable 100%"), "{message}");

    all.unguarded = vec!["report-old".to_owned()];
    let status = settle(&FencedLeaseStatus::default(), &all, at(0));
    assert_eq!(reason(&status, ConditionType::PodsCurrent), "False/UnguardedPods");
}

#[test]
fn a_rollout_that_hangs_is_helped_by_what_can_still_be_changed() {
    // podManagementPolicy cannot: it stands from the StatefulSet's creation.
    for (kind, help) in [("StatefulSet", "updateStrategy to OnDelete"), ("DaemonSet", "maxUnavailable 100%")]
    {
        let hanging = Hanging {
            pod: "report-1".to_owned(),
            holder: "report-0".to_owned(),
            workload: Some(Workload { kind: kind.to_owned(), name: "report".to_owned() }),
        };
        let message = rollout_may_hang(&hanging);
        assert!(message.contains(help), "{message}");
        assert!(!message.contains("podManagementPolicy"), "{message}");
    }
}

#[test]
fn held_tells_who_and_what_is_wrong() {
    use fencedlease_crds::{GuardKind, Holder};
    let holder = Holder {
        pod_name: "a".to_owned(),
        pod_uid: "uid-of-a".to_owned(),
        node_name: None,
        workload: None,
        holding_id: "00".repeat(8),
        guard: GuardKind::Entrypoint,
        since: Time(at(0)),
        last_report: Some(Time(at(0))),
        kill_pending: false,
    };
    let mut status =
        FencedLeaseStatus { holder: Some(holder), fence: Some(7), ..FencedLeaseStatus::default() };
    let held = settle(&status, &facts(), at(0));
    assert_eq!(
        shown(&held, ConditionType::Held),
        ("True".into(), "HolderActive".into(), "a holds fence 7.".into())
    );
    let silent = settle(&held, &facts(), at(31));
    assert_eq!(reason(&silent, ConditionType::Held), "Unknown/NoReport");
    status.holder.as_mut().unwrap().kill_pending = true;
    assert_eq!(reason(&settle(&status, &facts(), at(0)), ConditionType::Held), "False/KillPending");
    let nobody = Facts { pods: PodsSummary::default(), ..facts() };
    assert_eq!(
        reason(&settle(&FencedLeaseStatus::default(), &nobody, at(0)), ConditionType::Held),
        "False/NoPods"
    );
}

#[test]
fn a_condition_keeps_the_time_of_its_last_change() {
    let first = settle(&FencedLeaseStatus::default(), &facts(), at(0));
    let later = settle(&first, &Facts { generation: Some(2), ..facts() }, at(50));
    let ready = standing(&later, ConditionType::Ready).unwrap();
    assert_eq!((ready.last_transition_time.clone(), ready.observed_generation), (Time(at(0)), Some(2)));
}
