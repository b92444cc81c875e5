//! What is answered to each kind of request? Look-ups and the pure decisions, put together.

use std::sync::Arc;

use fencedlease_crds::FencedLease;
use fencedlease_wire::settings::StandbySettings;
use json_patch::Patch;
use serde_json::Value;

use super::cluster::{Cluster, LookUpError};
use super::review::{Answer, Request};
use crate::admit::annotations::{self, LEASE};
use crate::admit::workload::{self, Admitted, Decision, WorkloadChange, WorkloadKind, keys};
use crate::admit::{Cause, Problem, Refusal, disruption, lease, rollout};
use crate::inject::{Injected, inject, preview};

/// Answers about a pod: injected at creation, and left as it was decided then.
pub(super) async fn pod(cluster: &dyn Cluster, request: &Request) -> Answer {
    if !is_kind(request, "", "Pod") {
        return other_kind(request, "Pod of v1");
    }
    let metadata = &request.object["metadata"];
    let notes = keys(metadata, "annotations");
    let refused = |refusal| Answer::Refused { refusal, lease: notes.get(LEASE).cloned() };
    if let Some(old) = request.old() {
        return live_pod(request, old).map_or_else(Answer::allowed, refused);
    }
    match new_pod(cluster, request).await {
        Ok(Some(Injected { patch, warnings, .. })) => Answer::Allowed { patch, warnings },
        Ok(None) => Answer::allowed(),
        Err(refusal) => refused(refusal),
    }
}

async fn new_pod(cluster: &dyn Cluster, request: &Request) -> Result<Option<Injected>, Refusal> {
    let (metadata, namespace) = (&request.object["metadata"], request.namespace.as_str());
    let (notes, labels) = (keys(metadata, "annotations"), keys(metadata, "labels"));
    let subject = || format!("Pod {namespace}/{} cannot be guarded", name(&request.object));
    let mut problems = annotations::of_labels("metadata", &labels);
    let parsed = match annotations::of_pod("metadata", &notes) {
        Ok(parsed) if problems.is_empty() => parsed,
        parsed => {
            problems.extend(parsed.err().into_iter().flatten());
            return Err(Refusal::new(Cause::Annotation, subject(), problems));
        }
    };
    let Some(wanted) = parsed.lease else {
        return match annotations::ours(&notes).chain(annotations::ours(&labels)).next() {
            None => Ok(None),
            Some((key, _)) => {
                let found = format!("not set, while {key} is");
                let next = format!("Add {LEASE} with the name of a FencedLease, or remove {key}.");
                let field = format!("metadata.annotations[{LEASE}]");
                let problem =
                    Problem::new(field, &found, "the name of a FencedLease of the same namespace", &next);
                Err(Refusal::new(Cause::Annotation, subject(), vec![problem]))
            }
        };
    };
    let lease = find(cluster, namespace, &wanted)
        .await
        .map_err(|problem| Refusal::new(Cause::LeaseUnknown, subject(), vec![problem]))?;
    inject(&request.object, &lease, namespace, &cluster.installation()).map(Some)
}

/// What is wrong with a change to a pod that runs.
fn live_pod(request: &Request, old: &Value) -> Option<Refusal> {
    let asked = |pod: &Value| {
        let mut notes = keys(&pod["metadata"], "annotations");
        notes.retain(|key, _| key.starts_with(annotations::PREFIX) && key != annotations::STATUS);
        notes
    };
    let (before, after) = (asked(old), asked(&request.object));
    let changed =
        before.iter().chain(&after).map(|(key, _)| key).find(|key| before.get(*key) != after.get(*key))?;
    let problem = Problem::new(
        format!("metadata.annotations[{changed}]"),
        "changed on a pod that exists",
        "these annotations at the pod's creation, since what runs in it cannot change",
        "Set the annotation in the pod template of its workload, or delete the pod and create it with the annotation.",
    );
    let subject = format!("Pod {}/{} cannot be changed so", request.namespace, name(old));
    Some(Refusal::new(Cause::Immutable, subject, vec![problem]))
}

/// Answers about a FencedLease.
pub(super) fn fenced_lease(cluster: &dyn Cluster, request: &Request) -> Answer {
    if !is_kind(request, "fencedlease.dev", "FencedLease") {
        return other_kind(request, "FencedLease of fencedlease.dev");
    }
    let parse = |object: &Value| serde_json::from_value::<FencedLease>(object.clone());
    let mut lease = match parse(&request.object) {
        Ok(lease) => lease,
        Err(error) => {
            let subject =
                format!("FencedLease {}/{} cannot be read", request.namespace, name(&request.object));
            let text = format!("{error}. See kubectl explain fencedlease.spec.");
            let refusal = Refusal::new(Cause::Lease, subject, vec![Problem::said(text)]);
            return Answer::Refused { refusal, lease: None };
        }
    };
    lease.metadata.namespace.get_or_insert_with(|| request.namespace.clone());
    // What cannot be read any more was admitted by another version, and is judged as if it were new.
    let old = request.old().and_then(|old| parse(old).ok());
    match lease::review(&lease, old.as_ref(), cluster.installation().redis.is_some()) {
        Ok(warnings) => Answer::Allowed { patch: Patch::default(), warnings },
        Err(refusal) => Answer::Refused { refusal, lease: lease.metadata.name },
    }
}

/// Answers about a workload.
pub(super) async fn workload(cluster: &dyn Cluster, request: &Request) -> Answer {
    let kind = WorkloadKind::from_name(&request.kind.kind)
        .filter(|_| matches!(request.kind.group.as_str(), "apps" | "batch"));
    let Some(kind) = kind else {
        return other_kind(request, "Deployment, StatefulSet, DaemonSet, ReplicaSet, Job or CronJob");
    };
    let (new, old) = (&request.object, request.old());
    let change = WorkloadChange { kind, namespace: &request.namespace, new, old };
    match admitted(cluster, change).await {
        Ok(Admitted { patch, mut warnings, lease }) => {
            if let Some(lease) = lease {
                warnings.extend(foresee(cluster, change, &patch, &lease).await);
            }
            Answer::Allowed { patch, warnings }
        }
        Err(refusal) => {
            let own = keys(&new["metadata"], "annotations").remove(LEASE);
            let lease = own.or_else(|| keys(&kind.template(new)["metadata"], "annotations").remove(LEASE));
            Answer::Refused { refusal, lease }
        }
    }
}

async fn admitted(cluster: &dyn Cluster, change: WorkloadChange<'_>) -> Result<Admitted, Refusal> {
    match workload::decide(change)? {
        Decision::Settled(admitted) => Ok(admitted),
        Decision::IfNoPodIsLeft(pending) => {
            let pods = cluster.count_pods(change.namespace, &pending.selector).await.map_err(|error| {
                let subject = format!("{} {}/{}", change.kind.as_str(), change.namespace, change.name());
                let text = format!("it is not known whether pods of it are left: {error}. Try again.");
                Refusal::new(Cause::Overlap, subject, vec![Problem::said(text)])
            })?;
            pending.with_pods_left(pods)
        }
    }
}

/// What a person should know before the controller makes pods, whose refusals it would keep to itself.
async fn foresee(
    cluster: &dyn Cluster,
    change: WorkloadChange<'_>,
    patch: &Patch,
    lease: &str,
) -> Vec<String> {
    let found = match find(cluster, change.namespace, lease).await {
        Ok(found) => found,
        Err(problem) => {
            return vec![format!(
                "Its pods will be refused until this is mended (a FencedLease of the same apply or chart does so in a moment): {problem}"
            )];
        }
    };
    let mut object = change.new.clone();
    if let Err(error) = json_patch::patch(&mut object, patch) {
        tracing::error!(%error, "a patch of ours does not apply");
        return Vec::new();
    }
    let template = change.kind.template(&object);
    match preview(template, change.name(), &found, change.namespace, &cluster.installation()) {
        Ok(Injected { mut warnings, standby, .. }) => {
            warnings.extend(rollout::warning(change.kind, &object, standby));
            if !standby.ready {
                warnings.extend(never_evicted(cluster, change, &object, standby).await);
            }
            warnings
        }
        Err(refusal) => {
            let problems: Vec<String> = refusal.problems.iter().map(ToString::to_string).collect();
            vec![format!("Its pods will be refused: {}", problems.join(" "))]
        }
    }
}

/// What a person should know who has a PodDisruptionBudget. Not to know it harms nobody.
async fn never_evicted(
    cluster: &dyn Cluster,
    change: WorkloadChange<'_>,
    object: &Value,
    standby: StandbySettings,
) -> Option<String> {
    match cluster.disruption_budgets(change.namespace).await {
        Ok(budgets) => disruption::warning(change.kind, object, standby, &budgets),
        Err(error) => {
            tracing::warn!(namespace = change.namespace, %error, "cannot look for PodDisruptionBudgets");
            None
        }
    }
}

/// The FencedLease from the cache, else asked for once.
async fn find(cluster: &dyn Cluster, namespace: &str, name: &str) -> Result<Arc<FencedLease>, Problem> {
    if let Some(lease) = cluster.cached_lease(namespace, name) {
        return Ok(lease);
    }
    match cluster.live_lease(namespace, name).await {
        Ok(Some(lease)) => Ok(Arc::new(lease)),
        Ok(None) => Err(Problem::new(
            format!("metadata.annotations[{LEASE}]"),
            &format!("{name}, and namespace {namespace} has no FencedLease of that name"),
            "the name of a FencedLease of the same namespace",
            &format!(
                "See the names with kubectl get fencedleases -n {namespace}, or create it: {{apiVersion: fencedlease.dev/v1alpha1, kind: FencedLease, metadata: {{name: {name}}}, spec: {{}}}}."
            ),
        )),
        Err(error) => Err(not_looked_up(namespace, name, &error)),
    }
}

fn not_looked_up(namespace: &str, name: &str, error: &LookUpError) -> Problem {
    Problem::said(format!(
        "FencedLease {namespace}/{name} could not be looked up: {error}. Try again; a controller does so by itself."
    ))
}

fn is_kind(request: &Request, group: &str, kind: &str) -> bool {
    request.kind.group == group && request.kind.kind == kind
}

fn other_kind(request: &Request, accepted: &str) -> Answer {
    let kind = &request.kind;
    let found = format!("{} of {}/{}", kind.kind, kind.group, kind.version);
    let next = "Correct the rules of the webhook configuration; helm upgrade puts the chart's own back.";
    let problem = Problem::new("request.kind", &found, accepted, next);
    let refusal = Refusal::new(Cause::Request, "This webhook does not know the object", vec![problem]);
    Answer::Refused { refusal, lease: None }
}

/// The object's name, as messages have it.
pub(super) fn name(object: &Value) -> String {
    let metadata = &object["metadata"];
    let generated = || metadata["generateName"].as_str().map(|prefix| format!("{prefix}…"));
    metadata["name"].as_str().map(str::to_owned).or_else(generated).unwrap_or_else(|| "…".to_owned())
}
