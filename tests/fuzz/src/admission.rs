//! What the API server asks: the body of an admission review, given to each webhook.

mod cluster;
mod guarded;

use std::cell::RefCell;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, StatusCode};
use fencedlease_operator::metrics::Metrics;
use fencedlease_operator::webhook::{LEASES_PATH, PODS_PATH, Refused, WORKLOADS_PATH, Webhooks};
use http_body_util::BodyExt as _;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Receiver, channel};

use crate::is_one_line;

pub(crate) const WORDS: &[&str] = &[
    "\"fencedlease.dev/lease\":\"report\"",
    "\"fencedlease.dev/lease\":\"gated\"",
    "\"fencedlease.dev/lease\":\"cold\"",
    "\"fencedlease.dev/lease\":\"new\"",
    "\"fencedlease.dev/lease\":\"silent\"",
    "\"fencedlease.dev/containers\":\"app\"",
    "\"annotations\":{",
    "\"labels\":{",
    "\"operation\":\"UPDATE\"",
    "\"operation\":\"CREATE\"",
    "\"subResource\":\"status\"",
    "\"restartPolicy\":\"Always\"",
    "\"restartPolicy\":\"Never\"",
    "\"initContainers\":[",
    "\"containers\":[",
    "\"command\":[\"/bin/app\"]",
    "\"args\":[",
    "\"name\":\"fencedlease\"",
    "\"volumes\":[",
    "\"volumeMounts\":[",
    "\"exec\":{\"command\":[\"check\"]}",
    "\"livenessProbe\":{",
    "\"lifecycle\":{\"preStop\":{",
    "\"hostPID\":true",
    "\"resources\":{\"limits\":{\"memory\":\"8Gi\",\"cpu\":\"50m\"}}",
    "\"replicas\":0",
    "\"strategy\":{\"type\":\"Recreate\"}",
    "\"/run/fencedlease/fencedlease\",\"guard\",\"--\"",
    "\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"",
    "\"terminationGracePeriodSeconds\":-1",
    "\"spec\":{\"ttl\":\"15s\"}",
    "\"maxHold\":\"1h\"",
    "\"gates\":[{\"name\":\"g\"",
];

/// The longest text of a refusal with one reason, in characters; each reason more may have as many.
const MOST_TEXT: usize = 4000;

/// The webhooks, which cost far more to make than to ask.
struct Desk {
    runtime: Runtime,
    router: Router,
    told: RefCell<Receiver<Refused>>,
}

thread_local! {
    static DESK: Desk = Desk::new();
}

pub(crate) fn run(bytes: &[u8]) {
    DESK.with(|desk| {
        for path in [PODS_PATH, WORKLOADS_PATH, LEASES_PATH] {
            desk.check(path, bytes);
        }
    });
}

/// What was answered to a review, and what was told of it besides.
#[derive(Debug, PartialEq)]
struct Answer {
    status: StatusCode,
    body: Bytes,
    told: Vec<String>,
}

impl Desk {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (refusals, told) = channel(4);
        let metrics = Arc::new(Metrics::new().unwrap());
        let router = Webhooks::new(Arc::new(cluster::Known), refusals, metrics).router();
        Self { runtime, router, told: RefCell::new(told) }
    }

    fn ask(&self, path: &str, bytes: &[u8]) -> Answer {
        let request = Request::post(path).body(Body::from(bytes.to_vec())).unwrap();
        self.runtime.block_on(async {
            let answer = TowerToHyperService::new(self.router.clone()).call(request).await.unwrap();
            let status = answer.status();
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            let mut told = self.told.borrow_mut();
            let told = std::iter::from_fn(|| Some(told.try_recv().ok()?.message)).collect();
            Answer { status, body, told }
        })
    }

    fn check(&self, path: &str, bytes: &[u8]) {
        let answer = self.ask(path, bytes);
        assert_eq!(self.ask(path, bytes), answer, "{path} has two answers");
        let review = serde_json::from_slice::<Value>(bytes);
        if answer.status != StatusCode::OK {
            let text = str::from_utf8(&answer.body).unwrap();
            assert!(
                answer.status == StatusCode::BAD_REQUEST && !text.is_empty(),
                "{}: {text}",
                answer.status
            );
            assert!(is_one_line(text), "{text:?}");
            return;
        }
        let request = &review.expect("what is no JSON was answered")["request"];
        let answered: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answered["kind"], "AdmissionReview");
        let response = &answered["response"];
        assert_eq!(response["uid"], request["uid"], "another request was answered");
        for warning in response["warnings"].as_array().into_iter().flatten() {
            let warning = warning.as_str().unwrap();
            assert!(!warning.is_empty() && is_one_line(warning), "{warning:?}");
        }
        if response["allowed"] == true {
            assert!(answer.told.is_empty(), "a refusal was told of what was allowed");
            self.check_allowed(path, request, response);
        } else {
            assert_eq!(response["allowed"], false);
            check_refusal(path, request, response, &answer.told);
        }
    }

    fn check_allowed(&self, path: &str, request: &Value, response: &Value) {
        let object = &request["object"];
        let admitted = patched(object, response);
        let is_asked = matches!(request["operation"].as_str(), Some("CREATE" | "UPDATE"))
            && request["subResource"].as_str().is_none_or(str::is_empty);
        if path == LEASES_PATH || !is_asked {
            assert_eq!(&admitted, object, "what is only looked at was changed");
            return;
        }
        if path == PODS_PATH {
            let is_new = request["oldObject"].is_null();
            if is_new {
                guarded::check(object, &admitted, response);
            } else {
                assert_eq!(&admitted, object, "a pod that runs was changed");
            }
        }
        let again = self.ask(path, review(request, &admitted).to_string().as_bytes());
        let again: Value = serde_json::from_slice(&again.body).unwrap();
        assert_eq!(again["response"]["allowed"], true, "what was allowed is refused: {again}");
        assert_eq!(again["response"].get("patch"), None, "what was allowed is changed again");
    }
}

fn check_refusal(path: &str, request: &Value, response: &Value, told: &[String]) {
    let status = &response["status"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(403), &json!("Forbidden")));
    let message = status["message"].as_str().unwrap();
    assert!(is_one_line(message) && message.contains(": "), "{message:?}");
    let reasons = message.matches(" (").count() + 1;
    assert!(message.chars().count() <= MOST_TEXT * reasons, "{} bytes: {message:.300}", message.len());
    assert_eq!(response.get("patch"), None);
    let is_told =
        path != LEASES_PATH && request["dryRun"] != true && !message.contains("too large to be looked at");
    assert_eq!(told.len(), usize::from(is_told), "{told:?}");
    for text in told {
        assert_eq!(text, message);
    }
}

/// The object as the API server has it afterwards.
fn patched(object: &Value, response: &Value) -> Value {
    let mut object = object.clone();
    if let Some(patch) = response.get("patch") {
        assert_eq!(response["patchType"], "JSONPatch");
        let ByteString(bytes) = serde_json::from_value(patch.clone()).unwrap();
        let patch: json_patch::Patch = serde_json::from_slice(&bytes).unwrap();
        assert!(!patch.0.is_empty(), "an empty patch");
        json_patch::patch(&mut object, &patch).expect("our patch does not apply");
    }
    object
}

fn review(request: &Value, object: &Value) -> Value {
    let mut request = request.clone();
    request["object"] = object.clone();
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
}
