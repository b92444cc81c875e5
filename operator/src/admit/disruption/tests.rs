use fencedlease_wire::settings::StandbyMode;
use serde_json::json;

use super::*;

fn workload(replicas: i64) -> Value {
    json!({"spec": {"replicas": replicas, "template": {"metadata": {"labels": {"app": "report", "tier": "back"}}}}})
}

fn budget(spec: Value) -> PodDisruptionBudget {
    let mut spec = spec;
    if spec.get("selector").is_none() {
        spec["selector"] = json!({"matchLabels": {"app": "report"}});
    }
    serde_json::from_value(json!({"metadata": {"name": "keep"}, "spec": spec})).unwrap()
}

fn warned(kind: WorkloadKind, replicas: i64, ready: bool, spec: Value) -> Option<String> {
    let standby = StandbySettings { mode: StandbyMode::Warm, ready };
    warning(kind, &workload(replicas), standby, &[budget(spec)])
}

#[test]
fn a_budget_that_asks_for_a_ready_pod_never_lets_the_holder_go() {
    let warned = |replicas, spec| warned(WorkloadKind::Deployment, replicas, false, spec);
    let text = warned(2, json!({"minAvailable": 1})).unwrap();
    for part in ["PodDisruptionBudget keep", "1 of 2 is, and minAvailable is 1", "maxUnavailable: 100%"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(warned(2, json!({"minAvailable": "1%"})).is_some());
    assert!(warned(2, json!({"maxUnavailable": 1})).is_some());
    assert!(warned(3, json!({"maxUnavailable": "50%"})).is_some());
    assert!(warned(1, json!({})).is_some());
    assert_eq!(warned(1, json!({"maxUnavailable": 1})), None);
    assert_eq!(warned(2, json!({"maxUnavailable": "100%"})), None);
    assert_eq!(warned(2, json!({"minAvailable": 0})), None);
}

#[test]
fn ready_standbys_and_other_pods_are_not_concerned() {
    assert_eq!(warned(WorkloadKind::Deployment, 2, true, json!({"minAvailable": 1})), None);
    let selects = |selector: Value| {
        let spec = json!({"minAvailable": 1, "selector": selector});
        warned(WorkloadKind::StatefulSet, 2, false, spec).is_some()
    };
    assert!(selects(json!({})));
    assert!(!selects(json!({"matchLabels": {"app": "other"}})));
    let expression = |operator: &str, values: Value| {
        selects(json!({"matchExpressions": [{"key": "tier", "operator": operator, "values": values}]}))
    };
    assert!(expression("In", json!(["back", "front"])) && !expression("In", json!(["front"])));
    assert!(expression("NotIn", json!(["front"])) && !expression("NotIn", json!(["back"])));
    assert!(expression("Exists", json!(null)) && !expression("DoesNotExist", json!(null)));
}

#[test]
fn kinds_without_replicas_are_counted_by_their_pods() {
    let three = json!({
        "spec": {"template": {"metadata": {"labels": {"app": "report"}}}}, "status": {"desiredNumberScheduled": 3},
    });
    let standby = StandbySettings { mode: StandbyMode::Cold, ready: false };
    let budgets = [budget(json!({"minAvailable": 1}))];
    let text = warning(WorkloadKind::DaemonSet, &three, standby, &budgets).unwrap();
    assert!(text.contains("1 of 3 is"), "{text}");
    assert!(warned(WorkloadKind::Job, 5, false, json!({"minAvailable": 1})).unwrap().contains("1 of 1 is"));
}
