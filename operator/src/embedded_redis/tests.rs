use serde_json::json;

use super::*;
use crate::fake_api::FakeApi;

const PATH: &str = "/api/v1/namespaces/system/secrets/redis";

#[tokio::test]
async fn the_charts_empty_secret_gets_a_password_and_stays_the_charts() {
    let api = FakeApi::default();
    api.put(PATH, json!({"metadata": {"name": "redis", "labels": {"a": "b"}}}));
    ensure_password(api.client(), "system", "redis").await.unwrap();
    let secret = api.get(PATH).unwrap();
    assert_eq!(secret["metadata"]["labels"]["a"], "b");
    assert_eq!(secret["stringData"]["password"].as_str().map(str::len), Some(32));
}

#[tokio::test]
async fn a_password_that_is_there_stays() {
    let api = FakeApi::default();
    api.put(PATH, json!({"metadata": {"name": "redis"}, "data": {"password": "b2xk"}}));
    ensure_password(api.client(), "system", "redis").await.unwrap();
    assert_eq!(api.writes(), []);
}

#[tokio::test]
async fn a_deleted_secret_is_made_again() {
    let api = FakeApi::default();
    ensure_password(api.client(), "system", "redis").await.unwrap();
    assert!(api.get(PATH).is_some());
}
