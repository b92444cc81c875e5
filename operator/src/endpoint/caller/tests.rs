use axum::http::Request;
use serde_json::json;

use super::*;

fn pod(labels: &serde_json::Value, annotations: &serde_json::Value) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": "a", "labels": labels, "annotations": annotations}}))
        .unwrap()
}

fn injected(lease: &str) -> Pod {
    pod(&json!({"fencedlease.dev/injected": "true"}), &json!({"fencedlease.dev/lease": lease}))
}

fn token_in(value: &str) -> Option<String> {
    let request = Request::builder().header("authorization", value).body(()).unwrap();
    bearer(&request.into_parts().0).map(str::to_owned)
}

#[test]
fn an_injected_pod_speaks_of_its_own_lease_only() {
    assert_eq!(entitled(&injected("report"), "report"), Ok(()));
    assert_eq!(entitled(&injected("report"), "ledger").unwrap_err().code(), "OtherLease");
}

#[test]
fn a_pod_that_was_not_injected_speaks_of_none() {
    for labels in [json!({}), json!({"fencedlease.dev/injected": "yes"})] {
        let pod = pod(&labels, &json!({"fencedlease.dev/lease": "report"}));
        assert_eq!(entitled(&pod, "report").unwrap_err().code(), "NotInjected");
    }
    let without_lease = pod(&json!({"fencedlease.dev/injected": "true"}), &json!({}));
    assert_eq!(entitled(&without_lease, "").unwrap_err().code(), "OtherLease");
}

#[test]
fn a_bearer_token_is_read_in_any_case_and_nothing_else_is() {
    assert_eq!(token_in("Bearer abc").as_deref(), Some("abc"));
    assert_eq!(token_in("bearer  abc ").as_deref(), Some("abc"));
    for wrong in ["Basic abc", "Bearer", "Bearer ", "abc"] {
        assert_eq!(token_in(wrong), None, "{wrong:?}");
    }
}
