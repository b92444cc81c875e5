use serde_json::json;

use super::*;
use crate::fake_api::FakeApi;

const PATH: &str = "/api/v1/namespaces/system/configmaps/fencedlease-installation";

async fn found(api: &FakeApi, configured: &str) -> Result<String, InstallationError> {
    id(api.client(), "system", configured).await
}

#[tokio::test]
async fn an_id_is_made_once_and_kept() {
    let api = FakeApi::default();
    let first = found(&api, "").await.unwrap();
    assert_eq!(first.len(), 12);
    assert_eq!(found(&api, "").await.unwrap(), first);
    assert_eq!(api.writes().len(), 1);
}

#[tokio::test]
async fn two_replicas_that_start_together_agree() {
    let api = FakeApi::default();
    api.interfere(PATH, json!({"metadata": {"name": CONFIG_MAP}, "data": {KEY: "theirs"}}));
    assert_eq!(found(&api, "").await.unwrap(), "theirs");
}

#[tokio::test]
async fn a_configured_id_asks_nobody() {
    let api = FakeApi::default();
    assert_eq!(found(&api, "blue").await.unwrap(), "blue");
    assert_eq!(api.get(PATH), None);
}

#[tokio::test]
async fn an_id_that_would_break_out_of_a_key_is_refused() {
    let error = found(&FakeApi::default(), "a}b").await.unwrap_err();
    assert!(error.to_string().contains("installationID"), "{error}");
}

#[tokio::test]
async fn a_config_map_without_the_id_is_not_filled_anew() {
    let api = FakeApi::default();
    api.put(PATH, json!({"metadata": {"name": CONFIG_MAP}}));
    assert!(matches!(found(&api, "").await, Err(InstallationError::NoKey)));
}
