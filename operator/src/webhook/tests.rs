//! The webhooks as the API server meets them: bodies in, bodies out, over a cluster that is a map.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use fencedlease_crds::{FencedLease, FencedLeaseSpec};
use futures::future::BoxFuture;
use http_body_util::BodyExt as _;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use k8s_openapi::ByteString;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Cluster, LookUpError, Refused, Webhooks};
use crate::inject::Installation;
use crate::inject::tests::{installation, pod};
use crate::metrics::Metrics;

/// A cluster that is a map.
#[derive(Default)]
struct Known {
    cached: BTreeMap<String, FencedLease>,
    live: BTreeMap<String, FencedLease>,
    pods: usize,
    budgets: Vec<PodDisruptionBudget>,
    silent: bool,
    without_redis: bool,
}

impl Cluster for Known {
    fn installation(&self) -> Installation {
        let mut installation = installation();
        if self.without_redis {
            installation.redis = None;
        }
        installation
    }

    fn cached_lease(&self, _namespace: &str, name: &str) -> Option<Arc<FencedLease>> {
        self.cached.get(name).cloned().map(Arc::new)
    }

    fn live_lease<'a>(
        &'a self,
        _namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<FencedLease>, LookUpError>> {
        Box::pin(async move {
            if self.silent { Err(LookUpError::Timeout) } else { Ok(self.live.get(name).cloned()) }
        })
    }

    fn count_pods<'a>(&'a self, _: &'a str, selector: &'a str) -> BoxFuture<'a, Result<usize, LookUpError>> {
        assert_eq!(selector, "app=report");
        Box::pin(async move { if self.silent { Err(LookUpError::Timeout) } else { Ok(self.pods) } })
    }

    fn disruption_budgets<'a>(
        &'a self,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Vec<PodDisruptionBudget>, LookUpError>> {
        Box::pin(async move { Ok(self.budgets.clone()) })
    }
}

fn lease() -> FencedLease {
    FencedLease::new("report", FencedLeaseSpec::default())
}

fn cached() -> Known {
    Known { cached: BTreeMap::from([("report".to_owned(), lease())]), ..Known::default() }
}

struct Answered {
    status: StatusCode,
    body: String,
    told: Vec<Refused>,
}

impl Answered {
    fn response(&self) -> Value {
        let review: Value = serde_json::from_str(&self.body).unwrap();
        assert_eq!(
            (&review["kind"], &review["apiVersion"]),
            (&json!("AdmissionReview"), &json!("admission.k8s.io/v1"))
        );
        assert_eq!(review["response"]["uid"], "u-1");
        review["response"].clone()
    }

    fn refusal(&self) -> String {
        let response = self.response();
        assert_eq!(response["allowed"], false, "{response}");
        response["status"]["message"].as_str().unwrap().to_owned()
    }

    /// The object as the API server has it afterwards.
    fn admitted(&self, object: &Value) -> Value {
        let response = self.response();
        assert_eq!(response["allowed"], true, "{response}");
        let mut object = object.clone();
        if let Some(patch) = response.get("patch") {
            assert_eq!(response["patchType"], "JSONPatch");
            let ByteString(bytes) = serde_json::from_value(patch.clone()).unwrap();
            json_patch::patch(&mut object, &serde_json::from_slice::<json_patch::Patch>(&bytes).unwrap())
                .unwrap();
        }
        object
    }
}

fn send(cluster: Known, path: &str, body: String) -> Answered {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (refusals, mut told) = mpsc::channel(4);
        let router = Webhooks::new(Arc::new(cluster), refusals, Arc::new(Metrics::new().unwrap())).router();
        let request = Request::post(path).body(Body::from(body)).unwrap();
        let response = TowerToHyperService::new(router).call(request).await.unwrap();
        let status = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let body = String::from_utf8(bytes.to_vec()).unwrap();
        Answered { status, body, told: std::iter::from_fn(|| told.try_recv().ok()).collect() }
    })
}

fn review(kind: (&str, &str, &str), object: &Value, old: &Value) -> Value {
    let (group, version, kind) = kind;
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": group, "version": version, "kind": kind},
            "namespace": "shop",
            "operation": if old.is_null() { "CREATE" } else { "UPDATE" },
            "object": object,
            "oldObject": old,
            "dryRun": false,
        },
    })
}

fn ask_pod(cluster: Known, pod: &Value) -> Answered {
    send(cluster, "/mutate/pods", review(("", "v1", "Pod"), pod, &Value::Null).to_string())
}

fn ask_deployment(cluster: Known, new: &Value, old: &Value) -> Answered {
    send(cluster, "/mutate/workloads", review(("apps", "v1", "Deployment"), new, old).to_string())
}

fn deployment(annotations: &Value) -> Value {
    json!({
        "metadata": {"name": "report", "annotations": annotations},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "report"}},
            "template": {"metadata": {}, "spec": {"containers": [{"name": "app", "command": ["/bin/app"]}]}},
        },
    })
}

#[test]
fn an_annotated_pod_is_injected() {
    let answered = ask_pod(cached(), &pod());
    let pod = answered.admitted(&pod());
    assert_eq!(pod["spec"]["initContainers"][0]["name"], "fencedlease");
    assert_eq!(answered.told, []);
}

#[test]
fn a_pod_that_is_injected_already_needs_no_patch() {
    let injected = ask_pod(cached(), &pod()).admitted(&pod());
    assert_eq!(ask_pod(cached(), &injected).response().get("patch"), None);
}

#[test]
fn a_pod_that_would_cost_the_operator_its_memory_is_refused_with_its_weight() {
    let mut pod = pod();
    pod["spec"]["containers"] = (0..25_000).map(|_| json!({})).collect();
    let text = ask_pod(cached(), &pod).refusal();
    assert!(text.contains("JSON objects; accepted: 24000 at most"), "{text}");
}

#[test]
fn a_lease_that_is_not_cached_is_looked_up_once_and_then_refused() {
    let live = Known { live: BTreeMap::from([("report".to_owned(), lease())]), ..Known::default() };
    ask_pod(live, &pod()).admitted(&pod());
    let unknown = ask_pod(Known::default(), &pod()).refusal();
    assert!(unknown.contains("namespace shop has no FencedLease of that name"), "{unknown}");
    assert!(unknown.contains("kubectl get fencedleases -n shop"), "{unknown}");
    let silent = ask_pod(Known { silent: true, ..Known::default() }, &pod()).refusal();
    assert!(silent.contains("could not be looked up") && silent.contains("Try again"), "{silent}");
}

#[test]
fn a_refused_pod_is_told_of_with_its_owner_but_not_in_a_dry_run() {
    let mut pod = pod();
    pod["spec"]["hostPID"] = true.into();
    let answered = ask_pod(cached(), &pod);
    let message = answered.refusal();
    assert!(message.contains("spec.hostPID"), "{message}");
    let told = &answered.told[0];
    assert_eq!((told.namespace.as_str(), told.lease.as_deref()), ("shop", Some("report")));
    assert_eq!((told.object.kind.as_str(), told.object.name.as_str()), ("Pod", "report-7c9-…"));
    let owner = told.owner.as_ref().unwrap();
    assert_eq!(
        (owner.api_version.as_str(), owner.kind.as_str(), owner.name.as_str()),
        ("apps/v1", "ReplicaSet", "report-7c9")
    );
    assert_eq!(told.message, message);

    let mut review = review(("", "v1", "Pod"), &pod, &Value::Null);
    review["request"]["dryRun"] = true.into();
    let answered = send(cached(), "/mutate/pods", review.to_string());
    answered.refusal();
    assert_eq!(answered.told, []);
}

#[test]
fn a_typo_never_means_an_unguarded_pod() {
    for key in ["fencedlease.dev/leas", "fencedlease.dev/containers"] {
        let mut pod = pod();
        pod["metadata"]["annotations"] = json!({key: "app"});
        let message = ask_pod(cached(), &pod).refusal();
        assert!(message.contains("fencedlease.dev/lease"), "{message}");
    }
    let mut labelled = pod();
    labelled["metadata"]["annotations"] = json!({});
    labelled["metadata"]["labels"] = json!({"fencedlease.dev/lease": "report"});
    assert!(ask_pod(cached(), &labelled).refusal().contains("as an annotation, not as a label"));
    labelled["metadata"]["labels"] = json!({"fencedlease.dev/injected": "true"});
    assert!(ask_pod(cached(), &labelled).refusal().contains("not set, while fencedlease.dev/injected is"));
}

#[test]
fn a_pod_that_asks_for_nothing_is_left_alone() {
    let plain = json!({"metadata": {"name": "p"}, "spec": {"hostPID": true}});
    let answered = ask_pod(Known { silent: true, ..Known::default() }, &plain);
    assert_eq!(answered.admitted(&plain), plain);
}

#[test]
fn a_pod_that_runs_keeps_its_annotations() {
    let ask =
        |new: &Value| send(cached(), "/mutate/pods", review(("", "v1", "Pod"), new, &pod()).to_string());
    let mut changed = pod();
    changed["metadata"]["labels"] = json!({"fencedlease.dev/role": "holder"});
    ask(&changed).admitted(&changed);
    changed["metadata"]["annotations"]["fencedlease.dev/lease"] = "other".into();
    let message = ask(&changed).refusal();
    assert!(
        message.contains("metadata.annotations[fencedlease.dev/lease] is changed on a pod that exists"),
        "{message}"
    );
    changed["metadata"]["annotations"] = json!({});
    assert!(ask(&changed).refusal().contains("changed on a pod that exists"));
}

#[test]
fn a_lease_is_admitted_or_refused_with_the_remedy() {
    let ask = |cluster: Known, spec: Value| {
        let kind = ("fencedlease.dev", "v1alpha1", "FencedLease");
        let object = json!({
            "apiVersion": "fencedlease.dev/v1alpha1", "kind": kind.2, "metadata": {"name": "report"}, "spec": spec
        });
        send(cluster, "/validate/fencedleases", review(kind, &object, &Value::Null).to_string())
    };
    assert_eq!(ask(cached(), json!({})).response()["allowed"], true);
    let short = ask(cached(), json!({"ttl": "8s"})).refusal();
    assert!(short.contains("FencedLease shop/report cannot be used: spec.ttl 8s is too short"), "{short}");
    let without = ask(Known { without_redis: true, ..Known::default() }, json!({})).refusal();
    assert!(without.contains("Either set spec.redis.addresses"), "{without}");
    let unreadable = ask(cached(), json!({"ttl": 15})).refusal();
    assert!(unreadable.contains("cannot be read"), "{unreadable}");
}

#[test]
fn a_deployment_gets_the_copy_and_hears_what_its_pods_will_meet() {
    let mut new = deployment(&json!({"fencedlease.dev/lease": "report"}));
    let answered = ask_deployment(cached(), &new, &Value::Null);
    let after = answered.admitted(&new);
    assert_eq!(after["spec"]["template"]["metadata"]["annotations"]["fencedlease.dev/lease"], "report");
    assert_eq!(answered.response()["warnings"].as_array().unwrap().len(), 1, "{}", answered.body);

    new["spec"]["template"]["spec"]["containers"][0]["ports"] = json!([{"containerPort": 80}]);
    let warnings = ask_deployment(cached(), &new, &Value::Null).response()["warnings"].to_string();
    assert!(warnings.contains("A rollout will hang") && warnings.contains("Recreate"), "{warnings}");
    let budget = json!({"metadata": {"name": "keep"}, "spec": {"minAvailable": 1, "selector": {}}});
    let budgets = vec![serde_json::from_value(budget).unwrap()];
    let answered = ask_deployment(Known { budgets, ..cached() }, &new, &Value::Null);
    assert!(
        answered.body.contains("PodDisruptionBudget keep will refuse every eviction"),
        "{}",
        answered.body
    );
    new["spec"]["template"]["spec"]["hostPID"] = true.into();
    let warnings = ask_deployment(cached(), &new, &Value::Null).response()["warnings"].to_string();
    assert!(warnings.contains("Its pods will be refused: spec.hostPID is true"), "{warnings}");
    let warnings = ask_deployment(Known::default(), &new, &Value::Null).response()["warnings"].to_string();
    assert!(warnings.contains("no FencedLease of that name"), "{warnings}");
    // Of one chart or apply, the Deployment may be first.
    assert!(warnings.contains("a FencedLease of the same apply or chart does so"), "{warnings}");
}

#[test]
fn guarding_is_turned_on_from_zero_once_no_pod_is_left() {
    let (mut old, mut new) =
        (deployment(&json!({})), deployment(&json!({"fencedlease.dev/lease": "report"})));
    let message = ask_deployment(cached(), &new, &old).refusal();
    assert!(message.contains("kubectl patch deployment report -n shop"), "{message}");
    old["spec"]["replicas"] = 0.into();
    new["spec"]["replicas"] = 0.into();
    let left = ask_deployment(Known { pods: 1, ..cached() }, &new, &old).refusal();
    assert!(left.contains("1 of its pods are still there"), "{left}");
    let silent = ask_deployment(Known { silent: true, ..cached() }, &new, &old).refusal();
    assert!(silent.contains("it is not known whether pods of it are left"), "{silent}");
    ask_deployment(cached(), &new, &old).admitted(&new);
}

#[test]
fn whatever_is_no_request_is_answered_with_what_is_wrong() {
    let deep = "[".repeat(100_000);
    let cases = [
        ("", "no AdmissionReview"),
        ("{", "no AdmissionReview"),
        (deep.as_str(), "no AdmissionReview"),
        ("[1]", "no AdmissionReview"),
        (r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}"#, "v1beta1; accepted"),
        (r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#, "has no request"),
        (
            r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u"}}"#,
            "missing field",
        ),
    ];
    for path in ["/mutate/pods", "/mutate/workloads", "/validate/fencedleases"] {
        for (body, text) in cases {
            let answered = send(cached(), path, body.to_owned());
            assert_eq!(answered.status, StatusCode::BAD_REQUEST);
            assert!(answered.body.contains(text), "{}", answered.body);
        }
        let long = send(cached(), path, " ".repeat(4 * 1024 * 1024 + 1));
        assert_eq!(long.status, StatusCode::PAYLOAD_TOO_LARGE);
        let other = send(cached(), path, review(("", "v1", "Secret"), &json!({}), &Value::Null).to_string());
        assert!(other.refusal().contains("request.kind is Secret of /v1; accepted: "), "{}", other.body);
        for object in [json!(null), json!([1]), json!("x"), json!({"metadata": 1, "spec": 2})] {
            for kind in [
                ("", "v1", "Pod"),
                ("apps", "v1", "Deployment"),
                ("fencedlease.dev", "v1alpha1", "FencedLease"),
            ] {
                let answered = send(cached(), path, review(kind, &object, &object).to_string());
                assert_eq!(answered.status, StatusCode::OK, "{}", answered.body);
            }
        }
    }
}

#[test]
fn deletions_and_subresources_are_of_no_concern() {
    let mut review = review(("", "v1", "Pod"), &pod(), &Value::Null);
    review["request"]["operation"] = "DELETE".into();
    assert_eq!(send(Known::default(), "/mutate/pods", review.to_string()).response()["allowed"], true);
    review["request"]["operation"] = "UPDATE".into();
    review["request"]["subResource"] = "ephemeralcontainers".into();
    assert_eq!(send(Known::default(), "/mutate/pods", review.to_string()).response()["allowed"], true);
}
