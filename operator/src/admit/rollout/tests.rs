use fencedlease_wire::settings::{StandbyMode, StandbySettings};
use serde_json::{Value, json};

use super::warning;
use crate::admit::workload::WorkloadKind;

const WAITS_NOT_READY: StandbySettings = StandbySettings { mode: StandbyMode::Warm, ready: false };

fn hangs(kind: WorkloadKind, spec: &Value) -> bool {
    warning(kind, &json!({"spec": spec}), WAITS_NOT_READY).is_some()
}

#[test]
fn a_deployment_hangs_unless_it_may_be_without_any_ready_pod() {
    let hangs = |replicas: i64, unavailable: Value, surge: Value| {
        let rolling = json!({"maxUnavailable": unavailable, "maxSurge": surge});
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
        hangs(WorkloadKind::Deployment, &json!({"replicas": replicas, "strategy": strategy}))
    };
    let quarter = || json!("25%");
    assert!(hangs(1, quarter(), quarter()), "25 % of 1 rounds down to 0");
    assert!(hangs(2, quarter(), quarter()));
    assert!(hangs(2, json!(1), json!(0)), "the standby is replaced, the holder never");
    assert!(hangs(8, quarter(), quarter()));
    assert!(!hangs(1, json!(1), json!(0)));
    assert!(!hangs(2, json!("100%"), json!(0)));
    assert!(!hangs(1, json!(0), json!(0)), "Kubernetes takes 1 where both are 0");
    assert!(!hangs(0, quarter(), quarter()));
}

#[test]
fn the_defaults_of_kubernetes_count_where_nothing_is_set() {
    assert!(hangs(WorkloadKind::Deployment, &json!({})));
    assert!(!hangs(WorkloadKind::Deployment, &json!({"strategy": {"type": "Recreate"}})));
    assert!(!hangs(WorkloadKind::StatefulSet, &json!({})), "one pod is ended before the next has its name");
    assert!(hangs(WorkloadKind::StatefulSet, &json!({"replicas": 2})));
    assert!(!hangs(
        WorkloadKind::StatefulSet,
        &json!({"replicas": 2, "updateStrategy": {"type": "OnDelete"}})
    ));
    assert!(hangs(WorkloadKind::DaemonSet, &json!({})));
    assert!(!hangs(WorkloadKind::DaemonSet, &json!({"updateStrategy": {"type": "OnDelete"}})));
    let all = json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": "100%"}}});
    assert!(!hangs(WorkloadKind::DaemonSet, &all));
    assert!(!hangs(WorkloadKind::Job, &json!({})));
}

#[test]
fn standbys_that_are_ready_never_hang_a_rollout_and_the_remedy_is_named() {
    let ready = StandbySettings { ready: true, ..WAITS_NOT_READY };
    assert_eq!(warning(WorkloadKind::Deployment, &json!({}), ready), None);
    let text = warning(WorkloadKind::Deployment, &json!({}), WAITS_NOT_READY).unwrap();
    assert!(text.contains("Set spec.strategy to Recreate"), "{text}");
}
