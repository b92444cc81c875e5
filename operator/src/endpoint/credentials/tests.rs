use serde_json::json;

use super::*;
use crate::fake_api::FakeApi;

const PATH: &str = "/api/v1/namespaces/system/secrets/redis";

/// A Secret whose values are base64 already.
fn secret(data: &serde_json::Value) -> serde_json::Value {
    json!({"metadata": {"name": "redis"}, "data": data})
}

async fn read(api: &FakeApi) -> Result<(Option<String>, Option<String>), &'static str> {
    let secret = InstallationSecret::new(api.client(), "system", Some("redis".to_owned()));
    secret.read().await.map_err(|refusal| refusal.code())
}

#[tokio::test]
async fn user_and_password_are_read_anew_each_time() {
    let api = FakeApi::default();
    api.put(PATH, secret(&json!({"password": "b2xk"})));
    assert_eq!(read(&api).await, Ok((None, Some("old".to_owned()))));
    api.put(PATH, secret(&json!({"password": "bmV3", "username": "am8="})));
    assert_eq!(read(&api).await, Ok((Some("jo".to_owned()), Some("new".to_owned()))));
}

#[tokio::test]
async fn what_is_missing_is_told() {
    let api = FakeApi::default();
    assert_eq!(read(&api).await, Err("SecretNotFound"));
    for data in [json!({}), json!({"password": ""}), json!({"username": "am8="})] {
        api.put(PATH, secret(&data));
        assert_eq!(read(&api).await, Err("SecretNotFound"));
    }
    api.put(PATH, secret(&json!({"password": "/w=="})));
    assert_eq!(read(&api).await, Err("SecretNotText"));
}

#[tokio::test]
async fn a_redis_without_password_has_no_secret_to_ask_for() {
    let api = FakeApi::default();
    let none = InstallationSecret::new(api.client(), "system", None);
    assert_eq!(none.read().await, Ok((None, None)));
}
