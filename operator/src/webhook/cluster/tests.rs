//! The real cluster's answers, over an API server that knows two paths.

use axum::Router;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::routing::get;
use kube::Client;
use kube::runtime::reflector;
use serde_json::{Value, json};

use super::{Cluster, LiveCluster, LookUpError};
use crate::inject::Installation;
use crate::inject::tests::installation;

fn cluster(router: Router) -> LiveCluster<impl Fn() -> Installation + Send + Sync + 'static> {
    let (leases, mut writer) = reflector::store();
    let known = json!({
        "apiVersion": "fencedlease.dev/v1alpha1",
        "kind": "FencedLease",
        "metadata": {"name": "report", "namespace": "shop"},
        "spec": {},
    });
    writer.apply_watcher_event(&kube::runtime::watcher::Event::Apply(serde_json::from_value(known).unwrap()));
    LiveCluster::new(Client::new(router, "default"), leases, installation)
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(test);
}

fn pod(name: &str, phase: &str, ends: bool) -> Value {
    let mut pod = json!({"metadata": {"name": name}, "status": {"phase": phase}});
    if ends {
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    pod
}

#[test]
fn a_pod_that_is_ending_is_left_and_one_that_has_ended_is_not() {
    let pods = get(|Query(query): Query<Vec<(String, String)>>| async move {
        assert!(
            query.contains(&("labelSelector".to_owned(), "app=report,tier in (a,b)".to_owned())),
            "{query:?}"
        );
        let items = [
            pod("runs", "Running", false),
            pod("ends", "Running", true),
            pod("waits", "Pending", false),
            pod("done", "Succeeded", false),
            pod("failed", "Failed", false),
        ];
        json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items}).to_string()
    });
    run(async {
        let cluster = cluster(Router::new().route("/api/v1/namespaces/shop/pods", pods));
        assert_eq!(cluster.count_pods("shop", "app=report,tier in (a,b)").await.unwrap(), 3);
    });
}

#[test]
fn a_lease_is_known_from_the_cache_of_its_namespace_alone() {
    run(async {
        let cluster = cluster(Router::new());
        assert!(cluster.cached_lease("shop", "report").is_some());
        assert!(cluster.cached_lease("other", "report").is_none());
    });
}

#[test]
fn a_lease_is_asked_for_live_and_none_is_no_error() {
    let missing = get(|| async {
        let status = json!({
            "apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404,
            "message": "not found", "metadata": {}, "details": {},
        });
        (StatusCode::NOT_FOUND, status.to_string()).into_response()
    });
    let there = get(|| async {
        json!({
            "apiVersion": "fencedlease.dev/v1alpha1", "kind": "FencedLease",
            "metadata": {"name": "new", "namespace": "shop"}, "spec": {"ttl": "20s"},
        })
        .to_string()
    });
    let path = |name: &str| format!("/apis/fencedlease.dev/v1alpha1/namespaces/shop/fencedleases/{name}");
    run(async {
        let cluster = cluster(Router::new().route(&path("gone"), missing).route(&path("new"), there));
        assert_eq!(cluster.live_lease("shop", "gone").await.unwrap(), None);
        assert_eq!(cluster.live_lease("shop", "new").await.unwrap().unwrap().spec.ttl, "20s");
    });
}

#[test]
fn an_api_server_that_never_answers_is_not_waited_for() {
    let never = get(std::future::pending::<&'static str>);
    run(async {
        let cluster = cluster(Router::new().route("/api/v1/namespaces/shop/pods", never));
        let error = cluster.count_pods("shop", "app=report").await.unwrap_err();
        assert!(matches!(error, LookUpError::Timeout), "{error}");
        assert_eq!(error.to_string(), "the Kubernetes API did not answer in 2 s");
    });
}
