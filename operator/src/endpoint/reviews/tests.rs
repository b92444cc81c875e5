use serde_json::{Value, json};

use super::*;

fn genuine() -> Value {
    json!({
        "authenticated": true,
        "audiences": [ENDPOINT_AUDIENCE],
        "user": {
            "username": "system:serviceaccount:shop:default",
            "extra": {POD_NAME: ["report-a"], POD_UID: ["uid-of-a"]},
        },
    })
}

fn judged(change: impl FnOnce(&mut Value)) -> Result<Caller, &'static str> {
    let mut status = genuine();
    change(&mut status);
    judge(serde_json::from_value(status).unwrap()).map_err(|refusal| refusal.code())
}

#[test]
fn a_token_names_its_pod() {
    let caller = judged(|_| {}).unwrap();
    assert_eq!(caller.namespace, "shop");
    assert_eq!((caller.pod_name.as_str(), caller.pod_uid.as_str()), ("report-a", "uid-of-a"));
}

#[test]
fn a_token_for_somebody_else_is_refused() {
    assert_eq!(judged(|status| status["authenticated"] = json!(false)), Err("TokenRefused"));
    assert_eq!(judged(|status| status["authenticated"] = Value::Null), Err("TokenRefused"));
    assert_eq!(
        judged(|status| status["audiences"] = json!(["https://kubernetes.default.svc"])),
        Err("TokenRefused")
    );
    assert_eq!(judged(|status| status["audiences"] = Value::Null), Err("TokenRefused"));
}

#[test]
fn a_token_of_no_pod_is_refused() {
    assert_eq!(judged(|status| status["user"]["extra"] = Value::Null), Err("NotAPodsToken"));
    assert_eq!(judged(|status| status["user"]["extra"][POD_UID] = json!(["a", "b"])), Err("NotAPodsToken"));
    assert_eq!(judged(|status| status["user"]["username"] = json!("jane")), Err("NotAPodsToken"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_kept_for_a_while_and_a_no_for_less() {
    let reviews = Reviews::new(crate::fake_api::FakeApi::default().client());
    let yes = judge(serde_json::from_value(genuine()).unwrap());
    let no = Err(Refusal::unauthorized("TokenRefused", "no"));
    reviews.keep([1; 32], yes.clone());
    reviews.keep([2; 32], no.clone());
    assert_eq!(reviews.kept(&[1; 32]), Some(yes.clone()));
    assert_eq!(reviews.kept(&[2; 32]), Some(no));
    tokio::time::advance(KEEP_NO).await;
    assert_eq!(reviews.kept(&[2; 32]), None);
    assert_eq!(reviews.kept(&[1; 32]), Some(yes));
    tokio::time::advance(KEEP_YES).await;
    assert_eq!(reviews.kept(&[1; 32]), None);
}

#[tokio::test]
async fn a_token_that_is_no_token_is_not_reviewed() {
    let api = crate::fake_api::FakeApi::default();
    let answer = Reviews::new(api.client()).caller(&"x".repeat(LONGEST_TOKEN + 1)).await;
    assert_eq!(answer.unwrap_err().code(), "NotAToken");
    assert!(api.writes().is_empty());
}
