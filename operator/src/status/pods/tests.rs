use serde_json::json;

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn pod(name: &str) -> PodFacts {
    PodFacts {
        name: name.to_owned(),
        uid: format!("uid-of-{name}"),
        created: Some(at(0)),
        terminating: false,
        ended: false,
        ready: true,
        revision: Some("old".to_owned()),
        workload: Some(Workload { kind: "Deployment".to_owned(), name: "report".to_owned() }),
        lease_generation: Some(1),
        ready_while_waiting: Some(false),
    }
}

fn new_pod() -> PodFacts {
    PodFacts { revision: Some("new".to_owned()), created: Some(at(100)), ready: false, ..pod("new") }
}

fn hanging_at(pods: &[PodFacts], seconds: i64) -> Option<Hanging> {
    summarize(pods, Some(1), Some("uid-of-old"), at(seconds)).hanging
}

#[test]
fn facts_are_read_from_labels_owner_and_note() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {
            "name": "report-7c9-x2k", "namespace": "shop", "uid": "u",
            "creationTimestamp": "2026-12-02T09:00:00Z",
            "labels": {"pod-template-hash": "7c9", "fencedlease.dev/injected": "true"},
            "annotations": {"fencedlease.dev/status": "{\"leaseGeneration\":3,\"standby\":{\"mode\":\"warm\",\"ready\":true}}"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "report-7c9", "uid": "r", "controller": true}],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }))
    .unwrap();
    let facts = facts(&pod);
    assert_eq!(facts.workload, Some(Workload { kind: "Deployment".to_owned(), name: "report".to_owned() }));
    assert_eq!((facts.lease_generation, facts.ready_while_waiting), (Some(3), Some(true)));
    assert_eq!((facts.ready, facts.ended, facts.terminating), (true, false, false));
    assert_eq!(facts.revision.as_deref(), Some("7c9"));
}

#[test]
fn a_note_that_cannot_be_read_is_no_note() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "p", "annotations": {"fencedlease.dev/status": "nonsense"}},
    }))
    .unwrap();
    assert_eq!(facts(&pod).lease_generation, None);
}

#[test]
fn a_pod_of_another_owner_belongs_to_that() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "ledger-0", "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "ledger", "uid": "s", "controller": true},
        ]},
    }))
    .unwrap();
    assert_eq!(workload(&pod), Some(Workload { kind: "StatefulSet".to_owned(), name: "ledger".to_owned() }));
    assert_eq!(workload(&Pod::default()), None);
}

#[test]
fn standbys_are_alive_and_neither_holder_nor_leaving() {
    let pods = [
        pod("old"),
        pod("waits"),
        PodFacts { terminating: true, ..pod("leaves") },
        PodFacts { ended: true, ..pod("failed") },
    ];
    let summary = summarize(&pods, Some(2), Some("uid-of-old"), at(0));
    assert_eq!(summary.standbys, ["waits"]);
    assert_eq!(summary.outdated, ["old", "waits"]);
    assert_eq!(summary.alive.len(), 3);
    assert!(!summary.alive.contains("uid-of-failed"));
}

#[test]
fn pods_of_the_present_generation_are_not_outdated() {
    assert_eq!(summarize(&[pod("a")], Some(1), None, at(0)).outdated, Vec::<String>::new());
}

#[test]
fn a_new_pod_that_waits_unready_for_a_minute_hangs_its_rollout() {
    let pods = [pod("old"), new_pod()];
    assert_eq!(hanging_at(&pods, 159), None);
    let hanging = hanging_at(&pods, 160).unwrap();
    assert_eq!((hanging.pod.as_str(), hanging.holder.as_str()), ("new", "old"));
}

#[test]
fn what_ends_by_itself_does_not_hang() {
    let all = [
        PodFacts { ready_while_waiting: Some(true), ..new_pod() },
        PodFacts { ready: true, ..new_pod() },
        PodFacts { revision: Some("old".to_owned()), ..new_pod() },
        PodFacts { workload: None, ..new_pod() },
        PodFacts { created: Some(at(-100)), ..new_pod() },
        PodFacts { terminating: true, ..new_pod() },
        PodFacts { ended: true, ..new_pod() },
    ];
    for other in all {
        assert_eq!(hanging_at(&[pod("old"), other.clone()], 1000), None, "{other:?}");
    }
    assert_eq!(hanging_at(&[PodFacts { terminating: true, ..pod("old") }, new_pod()], 1000), None);
    assert_eq!(summarize(&[pod("old"), new_pod()], Some(1), None, at(1000)).hanging, None);
}
