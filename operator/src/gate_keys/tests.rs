use fencedlease_crds::FencedLeaseSpec;
use fencedlease_wire::gate::GateKey;
use serde_json::{Value, json};

use super::*;
use crate::fake_api::FakeApi;

const PATH: &str = "/api/v1/namespaces/shop/secrets/report-gate-key";

fn lease(uid: &str, gates: &Value) -> FencedLease {
    let spec: FencedLeaseSpec = serde_json::from_value(json!({ "gates": gates })).unwrap();
    let mut lease = FencedLease::new("report", spec);
    lease.metadata.namespace = Some("shop".to_owned());
    lease.metadata.uid = Some(uid.to_owned());
    lease
}

fn with_gates(uid: &str) -> FencedLease {
    lease(uid, &json!([{"name": "reports", "url": "https://gate"}]))
}

fn key_in(secret: &Value) -> String {
    let secret: Secret = serde_json::from_value(secret.clone()).unwrap();
    String::from_utf8(secret.data.unwrap()[KEY].0.clone()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_lease_with_gates_gets_a_key_of_its_own_that_goes_with_it() {
    let api = FakeApi::default();
    let keys = GateKeys::new(api.client());
    keys.look(&with_gates("1")).await;
    let secret = api.get(PATH).unwrap();
    assert_eq!(secret["type"], "fencedlease.dev/gate-key");
    let owner = json!([{"apiVersion": "fencedlease.dev/v1alpha1", "kind": "FencedLease", "name": "report", "uid": "1"}]);
    assert_eq!(secret["metadata"]["ownerReferences"], owner);
    let key = key_in(&secret);
    assert_eq!(key.len(), 65);
    assert_eq!(GateKey::parse_file(&key).unwrap().len(), 1, "gates and sidecars read it");

    let other = FakeApi::default();
    GateKeys::new(other.client()).look(&with_gates("1")).await;
    assert_ne!(key_in(&other.get(PATH).unwrap()), key, "no two are alike");
}

#[tokio::test(start_paused = true)]
async fn without_gates_or_at_its_end_a_lease_gets_none() {
    let api = FakeApi::default();
    let keys = GateKeys::new(api.client());
    keys.look(&lease("1", &json!([]))).await;
    let mut going = with_gates("1");
    going.metadata.deletion_timestamp = Some(serde_json::from_str("\"2026-01-01T00:00:00Z\"").unwrap());
    keys.look(&going).await;
    assert_eq!(api.writes(), []);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_there_stays_and_one_that_was_deleted_is_made_anew() {
    let api = FakeApi::default();
    api.put(PATH, json!({"metadata": {"name": "report-gate-key"}, "data": {}}));
    let keys = GateKeys::new(api.client());
    let present = api.get(PATH);
    keys.look(&with_gates("1")).await;
    assert_eq!(api.get(PATH), present);
    assert_eq!(keys.problem_of(&with_gates("1")), None);

    api.remove(PATH);
    keys.look(&with_gates("1")).await;
    assert_eq!(api.get(PATH), None, "it was there just now, and nothing is asked");
    tokio::time::advance(TRUSTED).await;
    keys.look(&with_gates("1")).await;
    assert!(api.get(PATH).is_some());

    api.remove(PATH);
    keys.look(&with_gates("2")).await;
    assert!(api.get(PATH).is_some(), "another FencedLease of the name had the old one");
}

#[tokio::test(start_paused = true)]
async fn what_keeps_a_key_from_being_made_is_said_and_tried_again() {
    let refusing = refusing_api();
    let keys = GateKeys::new(Client::new(refusing, "default"));
    let lease = with_gates("1");
    keys.look(&lease).await;
    let problem = keys.problem_of(&lease).unwrap();
    assert!(problem.starts_with("The operator cannot make the Secret shop/report-gate-key"), "{problem}");
    assert!(problem.contains("denied by policy") && problem.contains("kubectl create secret"), "{problem}");
    let api = FakeApi::default();
    let keys = GateKeys { client: api.client(), known: keys.known };
    keys.look(&lease).await;
    assert!(api.get(PATH).is_some());
    assert_eq!(keys.problem_of(&lease), None);
}

/// An API server that refuses everything.
fn refusing_api() -> axum::Router {
    axum::Router::new().fallback(async |_: axum::http::Request<axum::body::Body>| {
        let status = json!({"kind": "Status", "status": "Failure", "message": "denied by policy", "reason": "Forbidden", "code": 403});
        (axum::http::StatusCode::FORBIDDEN, axum::Json(status))
    })
}
