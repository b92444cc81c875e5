use axum::body::to_bytes;
use axum::http::StatusCode;
use fencedlease_crds::{FencedLeaseSpec, RedisSpec};
use fencedlease_wire::paths::ENDPOINT_AUDIENCE;
use kube::runtime::events::Recorder;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::cache::caches;
use crate::events::events;
use crate::fake_api::FakeApi;
use crate::gate_keys::GateKeys;
use crate::serve::Server;

const LEASE: &str = "/apis/fencedlease.dev/v1alpha1/namespaces/shop/fencedleases/report";
const POD: &str = "/api/v1/namespaces/shop/pods/report-a";

/// An API server that knows one pod, one FencedLease, and one token.
fn api() -> FakeApi {
    let api = FakeApi::default();
    api.put(LEASE, serde_json::to_value(lease(None)).unwrap());
    api.put(POD, pod("wait"));
    api.put(
        "/api/v1/namespaces/system/secrets/redis",
        json!({"metadata": {"name": "redis"}, "data": {"password": "czNjcmV0"}}),
    );
    api.review(json!({
        "authenticated": true,
        "audiences": [ENDPOINT_AUDIENCE],
        "user": {"username": "system:serviceaccount:shop:default", "extra": {
            "authentication.kubernetes.io/pod-name": ["report-a"],
            "authentication.kubernetes.io/pod-uid": ["uid-of-a"],
        }},
    }));
    api
}

fn lease(redis: Option<RedisSpec>) -> FencedLease {
    let mut lease = FencedLease::new("report", FencedLeaseSpec { redis, ..FencedLeaseSpec::default() });
    lease.metadata.namespace = Some("shop".to_owned());
    lease
}

fn pod(after_loss: &str) -> Value {
    let settings = json!({
        "resource": {"installation": "i", "namespace": "shop", "name": "report"},
        "timing": {"ttlMs": 15000, "renewTimeoutMs": 1000, "gracePeriodMs": 2000, "killBudgetMs": 2000, "commitMarginMs": 2000},
        "maxHoldMs": 1, "maxHoldWarningMs": 1,
        "redis": {"addresses": ["redis:6379"], "database": 0, "credentials": "endpoint"},
        "containers": ["app"], "restartPolicy": "Always",
        "standby": {"mode": "warm", "ready": true}, "afterLoss": after_loss,
        "terminationGracePeriodMs": 30000, "leaseGeneration": 1, "adminPort": 7475, "logLevel": "info",
    });
    json!({
        "metadata": {
            "name": "report-a", "namespace": "shop", "uid": "uid-of-a",
            "labels": {"fencedlease.dev/injected": "true"},
            "annotations": {"fencedlease.dev/lease": "report"},
        },
        "spec": {"containers": [], "initContainers": [
            {"name": "fencedlease", "env": [{"name": "FENCEDLEASE_SETTINGS", "value": settings.to_string()}]},
        ]},
    })
}

struct Answer {
    status: u16,
    body: Value,
}

impl Answer {
    fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }
}

/// Asks over a real connection, as a sidecar does.
async fn ask(api: &FakeApi, head: &str, body: &str) -> Answer {
    let (stop, stopped) = watch::channel(false);
    let (caches, _) = caches();
    let (events, _) = events(Recorder::new(api.client(), "test".into()), stopped.clone());
    let gate_keys = Arc::new(GateKeys::new(api.client()));
    let statuses = Arc::new(Statuses::new(api.client(), caches.clone(), events, gate_keys, true));
    let (_, bundle) = watch::channel("the bundle".to_owned());
    let endpoint = Endpoint::new(
        api.client(),
        Callers::new(api.client(), caches.clone()),
        caches.leases,
        statuses,
        InstallationSecret::new(api.client(), "system", Some("redis".to_owned())),
        bundle,
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server { name: "test", listener, tls: None, router: endpoint.router() };
    let server = tokio::spawn(server.run(stopped));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let request = format!("{head}\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    stop.send_replace(true);
    server.await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, body: serde_json::from_str(body).unwrap() }
}

async fn credentials(api: &FakeApi) -> Answer {
    let head = "GET /v1/credentials?namespace=shop&lease=report HTTP/1.1\r\nauthorization: Bearer t";
    ask(api, head, "").await
}

async fn report(api: &FakeApi, pod: &str, fact: Value) -> Answer {
    let body = json!({
        "namespace": "shop", "lease": "report", "podName": pod, "nodeName": "n", "leaseGeneration": 1,
        "run": "00000000000000aa", "sequence": 1, "fact": fact,
    });
    ask(api, "POST /v1/report HTTP/1.1\r\nauthorization: Bearer t", &body.to_string()).await
}

fn lost(dead_after_ms: Option<u64>) -> Value {
    json!({
        "type": "lost", "fence": 7, "holding": "00000000000000bb", "reason": "RenewalTimeout",
        "message": "no answer", "deadAfterMs": dead_after_ms,
    })
}

#[tokio::test]
async fn credentials_come_with_the_bundle() {
    let answer = credentials(&api()).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body, json!({"password": "s3cret", "caPem": "the bundle"}));
}

#[tokio::test]
async fn without_a_token_nothing_is_given() {
    let answer = ask(&api(), "GET /v1/credentials?namespace=shop&lease=report HTTP/1.1", "").await;
    assert_eq!((answer.status, answer.code()), (401, "NoToken"));
}

#[tokio::test]
async fn the_installations_password_is_not_for_a_lease_with_its_own_redis() {
    let api = api();
    let redis = RedisSpec { addresses: vec!["own:6379".to_owned()], database: 0, auth: None, tls: None };
    api.put(LEASE, serde_json::to_value(lease(Some(redis))).unwrap());
    let answer = credentials(&api).await;
    assert_eq!((answer.status, answer.code()), (403, "OwnRedis"));
}

#[tokio::test]
async fn a_pod_of_the_same_name_and_another_uid_is_somebody_else() {
    let api = api();
    let mut other = pod("wait");
    other["metadata"]["uid"] = json!("uid-of-another");
    api.put(POD, other);
    assert_eq!(credentials(&api).await.code(), "NoSuchPod");
}

#[tokio::test]
async fn a_report_of_another_pod_is_refused() {
    let answer = report(&api(), "report-b", json!({"type": "gone"})).await;
    assert_eq!((answer.status, answer.code()), (403, "OtherPod"));
}

#[tokio::test]
async fn what_cannot_be_read_is_answered_in_words() {
    let api = api();
    let head = "POST /v1/report HTTP/1.1\r\nauthorization: Bearer t";
    let answer = ask(&api, head, "nonsense").await;
    assert_eq!((answer.status, answer.code()), (400, "NotAReport"));
    let answer = ask(&api, head, &"x".repeat(LONGEST_BODY + 1)).await;
    assert_eq!((answer.status, answer.code()), (413, "BodyUnread"));
    let answer = ask(&api, "GET /v1/credentials HTTP/1.1\r\nauthorization: Bearer t", "").await;
    assert_eq!((answer.status, answer.code()), (400, "NotAQuery"));
    let answer = ask(&api, "GET /else HTTP/1.1\r\nauthorization: Bearer t", "").await;
    assert_eq!((answer.status, answer.code()), (404, "NoSuchPath"));
}

#[tokio::test]
async fn a_report_is_in_the_status() {
    let api = api();
    let answer = report(&api, "report-a", lost(Some(34))).await;
    assert_eq!((answer.status, answer.body), (200, json!({"caPem": "the bundle"})));
    assert_eq!(api.get(LEASE).unwrap()["status"]["lastLoss"]["reason"], "RenewalTimeout");
    assert!(api.get(POD).is_some(), "this pod waits by itself");
}

#[tokio::test]
async fn a_pod_that_cannot_wait_is_replaced_once_its_death_is_proven() {
    let api = api();
    api.put(POD, pod("replace"));
    assert_eq!(report(&api, "report-a", lost(None)).await.status, 200);
    assert!(api.get(POD).is_some(), "not while its processes may live");
    assert_eq!(report(&api, "report-a", lost(Some(34))).await.status, 200);
    assert_eq!(api.get(POD), None);
}

#[tokio::test]
async fn more_than_the_endpoint_can_answer_are_told_to_come_back() {
    let refusal = axum::response::IntoResponse::into_response(Refusal::busy());
    assert_eq!(refusal.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refusal.headers()["retry-after"], "1");
    let body = to_bytes(refusal.into_body(), 1024).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["error"]["code"], "Busy");
}
