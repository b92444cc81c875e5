use super::*;

fn status(text: &str) -> FencedLeaseStatus {
    serde_json::from_str(text).unwrap()
}

const HELD: &str = r#"{"phase": "Held", "fence": 7, "holder": {"podName": "report-a", "podUID": "u",
    "holdingID": "h", "guard": "Entrypoint", "since": "2026-01-01T00:00:00Z"}}"#;

#[test]
fn a_holder_counts_only_while_held_and_above_the_fence() {
    assert_eq!(holder_name(&status(HELD), 0), Some("report-a"));
    assert_eq!(holder_name(&status(HELD), 6), Some("report-a"));
    assert_eq!(holder_name(&status(HELD), 7), None);
    assert_eq!(holder_name(&status(&HELD.replace("Held", "Unknown")), 0), None);
    assert_eq!(holder_name(&status("{}"), 0), None);
}

#[test]
fn a_lease_without_a_spec_has_an_empty_one() {
    assert_eq!(lease_manifest("report", &Value::Null)["spec"], json!({}));
    assert_eq!(lease_manifest("report", &json!({"ttl": "6s"}))["spec"]["ttl"], "6s");
}
