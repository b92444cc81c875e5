use fencedlease_crds::{FencedLeaseSpec, GuardKind, Holder};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::admit::lease::resolve;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn facts(alive: &[&str], standbys: &[&str]) -> Facts {
    let pods = PodsSummary {
        alive: alive.iter().map(|uid| (*uid).to_owned()).collect(),
        standbys: standbys.iter().map(|name| (*name).to_owned()).collect(),
        ..PodsSummary::default()
    };
    Facts {
        generation: Some(3),
        timing: Ok(resolve(&FencedLeaseSpec::default()).unwrap().timing),
        has_redis: true,
        redis: None,
        has_gates: false,
        gates: None,
        gate_key_problem: None,
        pods,
        unguarded: Vec::new(),
        refusal: None,
    }
}

fn held(last_report: i64) -> FencedLeaseStatus {
    let holder = Holder {
        pod_name: "a".to_owned(),
        pod_uid: "uid-of-a".to_owned(),
        node_name: None,
        workload: None,
        holding_id: "00".repeat(8),
        guard: GuardKind::Entrypoint,
        since: Time(at(0)),
        last_report: Some(Time(at(last_report))),
        kill_pending: false,
    };
    FencedLeaseStatus { holder: Some(holder), fence: Some(7), ..FencedLeaseStatus::default() }
}

fn phase_of(status: &FencedLeaseStatus, facts: &Facts, seconds: i64) -> Option<Phase> {
    settle(status, facts, at(seconds)).phase
}

#[test]
fn each_phase_has_its_cause() {
    let nobody = FencedLeaseStatus::default();
    assert_eq!(phase_of(&nobody, &facts(&[], &[]), 0), Some(Phase::Idle));
    assert_eq!(phase_of(&nobody, &facts(&["b"], &["b"]), 0), Some(Phase::Waiting));
    assert_eq!(phase_of(&held(0), &facts(&["uid-of-a"], &[]), 30), Some(Phase::Held));
    assert_eq!(phase_of(&held(0), &facts(&["uid-of-a"], &[]), 31), Some(Phase::Unknown));
    let invalid = Facts { timing: Err("spec.ttl is wrong".to_owned()), ..facts(&[], &[]) };
    assert_eq!(phase_of(&held(0), &invalid, 0), Some(Phase::Invalid));
}

#[test]
fn a_silent_holder_whose_pod_is_gone_is_over_after_ttl_and_silence() {
    let gone = facts(&["b"], &["b"]);
    assert_eq!(phase_of(&held(0), &gone, 45), Some(Phase::Unknown));
    let over = settle(&held(0), &gone, at(46));
    assert_eq!((over.phase, over.holder), (Some(Phase::Waiting), None));
    assert_eq!(over.fence, Some(7), "the fence stays known");
}

#[test]
fn a_silent_holder_whose_pod_exists_stays_unknown() {
    assert_eq!(phase_of(&held(0), &facts(&["uid-of-a"], &[]), 100_000), Some(Phase::Unknown));
}

#[test]
fn a_holder_that_reports_stays_even_if_the_cache_lacks_its_pod() {
    assert_eq!(phase_of(&held(90), &facts(&[], &[]), 100), Some(Phase::Held));
}

#[test]
fn timing_and_counts_are_shown_as_resolved() {
    let mut facts = facts(&["b", "c"], &["b", "c"]);
    facts.pods.outdated = vec!["b".to_owned()];
    let status = settle(&FencedLeaseStatus::default(), &facts, at(0));
    let timing = status.timing.unwrap();
    assert_eq!((timing.validity.as_str(), timing.renew_interval.as_str()), ("12s", "5s"));
    assert_eq!((timing.term_after.as_str(), timing.kill_after.as_str()), ("7s", "9s500ms"));
    assert_eq!((status.standbys, status.outdated_pods, status.observed_generation), (2, 1, Some(3)));
}

#[test]
fn settling_again_changes_nothing() {
    let facts = facts(&["uid-of-a", "b"], &["b"]);
    let once = settle(&held(0), &facts, at(10));
    assert_eq!(settle(&once, &facts, at(29)), once);
}
