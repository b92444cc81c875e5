use fencedlease_crds::FencedLeaseSpec;
use serde_json::json;

use super::*;

fn lease(name: &str, status: serde_json::Value) -> FencedLease {
    let mut lease = FencedLease::new(name, FencedLeaseSpec::default());
    lease.metadata.namespace = Some("shop".to_owned());
    lease.status = Some(serde_json::from_value(status).unwrap());
    lease
}

fn condition(of: &str, status: &str, reason: &str) -> serde_json::Value {
    json!({"type": of, "status": status, "reason": reason, "message": "", "lastTransitionTime": "2027-01-15T08:00:00Z"})
}

#[test]
fn every_family_is_named_as_documented() {
    let metrics = Metrics::new().unwrap();
    metrics.admission("Pod", "allowed", Duration::from_millis(3));
    metrics.refused("Pod");
    metrics.certificate_expires(Timestamp::from_second(1_800_000_000).unwrap());
    let waiting = json!({"phase": "Waiting", "conditions": [condition("Held", "False", "AllWaiting"), condition("Ready", "False", "Timeout")]});
    let text = metrics.render([lease("report", waiting)].iter()).unwrap();
    for line in [
        "fencedlease_operator_admission_seconds_count{kind=\"Pod\",result=\"allowed\"} 1",
        "fencedlease_operator_refusals_total{cause=\"Pod\"} 1",
        "fencedlease_operator_leases{phase=\"Waiting\"} 1",
        "fencedlease_operator_leases{phase=\"Held\"} 0",
        "fencedlease_operator_certificate_expiry_timestamp_seconds 1800000000",
        "fencedlease_operator_lease_unheld_since_seconds{name=\"report\",namespace=\"shop\"} 1800000000",
        "fencedlease_operator_lease_condition{name=\"report\",namespace=\"shop\",reason=\"Timeout\",type=\"Ready\"} 1",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn series_with_names_are_for_trouble_and_go_with_it() {
    let metrics = Metrics::new().unwrap();
    let trouble = json!({"phase": "Held", "conditions": [condition("Ready", "False", "Timeout")]});
    assert!(metrics.render([lease("report", trouble)].iter()).unwrap().contains("name=\"report\""));
    let well = json!({"phase": "Held", "conditions": [
        condition("Ready", "True", "AsSpecified"),
        condition("Held", "True", "HolderActive"),
        condition("FenceDurable", "False", "BestEffort"),
        condition("RedisReachable", "Unknown", "NoReport"),
    ]});
    assert!(!metrics.render([lease("report", well)].iter()).unwrap().contains("name=\"report\""));
    let idle = json!({"phase": "Idle", "conditions": [condition("Held", "False", "NoPods")]});
    assert!(!metrics.render([lease("report", idle)].iter()).unwrap().contains("name=\"report\""));
}
