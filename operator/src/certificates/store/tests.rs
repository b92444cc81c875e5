use super::*;
use crate::fake_api::FakeApi;

const PATH: &str = "/api/v1/namespaces/system/secrets/certificates";

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn store(api: &FakeApi) -> CertificateStore {
    let names = vec!["fencedlease-operator.system.svc".to_owned()];
    CertificateStore::new(api.client(), "system", "certificates".to_owned(), names)
}

#[tokio::test]
async fn what_was_made_is_found_again() {
    let api = FakeApi::default();
    let first = store(&api).bring_up_to_date(now()).await.unwrap();
    assert_eq!(store(&api).bring_up_to_date(now()).await.unwrap(), first);
    assert_eq!(api.writes().len(), 1);
    let secret: Secret = serde_json::from_value(api.get(PATH).unwrap()).unwrap();
    assert_eq!(secret.data.unwrap()[BUNDLE_KEY].0, first.bundle_pem().into_bytes());
}

#[tokio::test]
async fn of_two_replicas_that_start_together_one_makes_them() {
    let other = FakeApi::default();
    let made = store(&other).bring_up_to_date(now()).await.unwrap();
    let api = FakeApi::default();
    api.interfere(PATH, other.get(PATH).unwrap());
    assert_eq!(store(&api).bring_up_to_date(now()).await.unwrap(), made);
}

#[tokio::test]
async fn a_secret_that_cannot_be_read_is_mended() {
    let api = FakeApi::default();
    let broken = serde_json::json!({
        "metadata": {"name": "certificates", "namespace": "system"},
        "data": {"certificates.json": "bm9uc2Vuc2U="},
    });
    api.put(PATH, broken);
    let made = store(&api).bring_up_to_date(now()).await.unwrap();
    assert_eq!(store(&api).bring_up_to_date(now()).await.unwrap(), made);
}

#[tokio::test]
async fn a_rotation_is_written_step_by_step() {
    let api = FakeApi::default();
    let first = store(&api).bring_up_to_date(now()).await.unwrap();
    let later = now() + k8s_openapi::jiff::SignedDuration::from_hours(24 * 560);
    let second = store(&api).bring_up_to_date(later).await.unwrap();
    assert_eq!(second.authorities[0], first.authorities[0]);
    assert_eq!(second.authorities.len(), 2);
    assert_eq!(second.leaf.signed_by, first.authorities[0].name, "the new one has not settled");
}

#[tokio::test]
async fn a_deleted_secret_gets_back_what_a_replica_still_serves() {
    let api = FakeApi::default();
    let running = store(&api);
    let made = running.bring_up_to_date(now()).await.unwrap();
    api.remove(PATH);
    assert_eq!(running.bring_up_to_date(now()).await.unwrap(), made);
    assert_eq!(store(&api).bring_up_to_date(now()).await.unwrap(), made, "it is in the Secret again");
}

#[tokio::test]
async fn a_secret_without_data_is_filled() {
    let api = FakeApi::default();
    api.put(PATH, serde_json::json!({"metadata": {"name": "certificates", "labels": {"a": "b"}}}));
    store(&api).bring_up_to_date(now()).await.unwrap();
    let secret: Secret = serde_json::from_value(api.get(PATH).unwrap()).unwrap();
    assert!(secret.data.unwrap().contains_key(BUNDLE_KEY));
    assert_eq!(secret.metadata.labels.unwrap()["a"], "b");
}
