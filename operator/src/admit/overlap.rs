//! Would guarded and unguarded pods, or pods of two leases, run side by side while a workload changes over?

use serde_json::Value;

use super::annotations::ALLOW_OVERLAP;
use super::workload::{WorkloadChange, WorkloadKind};

/// Whether pods of both kinds would run side by side.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Overlap {
    /// Never: the old ones are gone before the first new one starts.
    None,
    /// If the user deletes the old ones one by one.
    AsTheUserDeletes,
    /// If pods with these labels are left, for the workload is scaled to 0.
    IfPodsAreLeft(String),
    /// Yes; the text is the next step.
    Some(String),
}

pub(super) fn overlap(kind: WorkloadKind, new: &Value, old: &Value) -> Overlap {
    let gone = || match selector(&old["spec"]["selector"]) {
        Some(selector) if wants_no_pods(kind, old) => Overlap::IfPodsAreLeft(selector),
        _ => Overlap::Some(next_step(kind)),
    };
    match kind {
        WorkloadKind::Deployment if new["spec"]["strategy"]["type"] == "Recreate" => Overlap::None,
        WorkloadKind::StatefulSet | WorkloadKind::DaemonSet
            if new["spec"]["updateStrategy"]["type"] == "OnDelete" =>
        {
            Overlap::AsTheUserDeletes
        }
        // A StatefulSet's pod is gone before another one has its name.
        WorkloadKind::StatefulSet if replicas(new) <= 1 && replicas(old) <= 1 => Overlap::None,
        WorkloadKind::CronJob => cron_job(new, old),
        // Its template cannot change.
        WorkloadKind::Job => Overlap::None,
        _ => gone(),
    }
}

/// Why the change is refused, and how it can be made.
pub(super) fn refusal_text(
    change: WorkloadChange<'_>,
    before: Option<&str>,
    after: Option<&str>,
    next: &str,
) -> String {
    let what = match (before, after) {
        (None, Some(after)) => format!("guarding by FencedLease {after} is turned on"),
        (Some(before), None) => format!("guarding by FencedLease {before} is turned off"),
        (before, after) => {
            format!(
                "the FencedLease is changed from {} to {}",
                before.unwrap_or("none"),
                after.unwrap_or("none")
            )
        }
    };
    let (strategy, accepted) = match change.kind {
        WorkloadKind::Deployment => ("spec.strategy is RollingUpdate", "strategy Recreate, "),
        WorkloadKind::StatefulSet | WorkloadKind::DaemonSet => {
            ("spec.updateStrategy is RollingUpdate", "updateStrategy OnDelete, ")
        }
        WorkloadKind::CronJob => {
            ("Jobs may overlap", "concurrencyPolicy Forbid, suspend: true without active Jobs, ")
        }
        WorkloadKind::ReplicaSet | WorkloadKind::Job => ("its old pods stay", ""),
    };
    let zero = match change.kind {
        WorkloadKind::Deployment | WorkloadKind::StatefulSet | WorkloadKind::ReplicaSet => {
            "replicas 0 with no pod left, "
        }
        WorkloadKind::DaemonSet => "no pod left, ",
        WorkloadKind::Job | WorkloadKind::CronJob => "",
    };
    let command = next.replace("{name}", change.name()).replace("{namespace}", change.namespace);
    let text = format!(
        "{what} while {strategy}, so that pods of both kinds would run side by side and write at once; accepted: {accepted}{zero}or the annotation {ALLOW_OVERLAP}: \"true\" on the {} if the overlap is meant.",
        change.kind.as_str()
    );
    if command.is_empty() { text } else { format!("{text} {command}") }
}

fn next_step(kind: WorkloadKind) -> String {
    match kind {
        WorkloadKind::Deployment => {
            r#"Set the strategy in the same change, or before it: kubectl patch deployment {name} -n {namespace} --type merge -p '{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}'"#
        }
        WorkloadKind::StatefulSet => {
            r#"Scale to 0 first, or set the strategy in the same change or before it: kubectl patch statefulset {name} -n {namespace} --type merge -p '{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}'"#
        }
        WorkloadKind::DaemonSet => {
            r#"Set the strategy in the same change, or before it, and delete the old pods together: kubectl patch daemonset {name} -n {namespace} --type merge -p '{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}'"#
        }
        WorkloadKind::ReplicaSet => {
            "Scale to 0, wait until its pods are gone, and repeat the change: kubectl scale replicaset {name} -n {namespace} --replicas 0"
        }
        WorkloadKind::Job | WorkloadKind::CronJob => {
            r#"Set it in the same change, or before it: kubectl patch cronjob {name} -n {namespace} --type merge -p '{"spec":{"concurrencyPolicy":"Forbid"}}'"#
        }
    }
    .to_owned()
}

/// Whether the workload has no pods and makes none, and its controller has seen that it is to be so.
fn wants_no_pods(kind: WorkloadKind, old: &Value) -> bool {
    let status = |field: &str| old["status"][field].as_i64().unwrap_or_default();
    if status("observedGeneration") < old["metadata"]["generation"].as_i64().unwrap_or_default() {
        return false;
    }
    match kind {
        WorkloadKind::DaemonSet => {
            status("desiredNumberScheduled") == 0
                && status("currentNumberScheduled") == 0
                && status("numberMisscheduled") == 0
        }
        _ => replicas(old) == 0 && status("replicas") == 0,
    }
}

fn cron_job(new: &Value, old: &Value) -> Overlap {
    let none_active = old["status"]["active"].as_array().is_none_or(Vec::is_empty);
    let suspended = new["spec"]["suspend"] == true && old["spec"]["suspend"] == true;
    if new["spec"]["concurrencyPolicy"] == "Forbid" || (suspended && none_active) {
        Overlap::None
    } else {
        Overlap::Some(next_step(WorkloadKind::CronJob))
    }
}

/// How many pods the object asks for; the API server fills in 1.
pub(super) fn replicas(object: &Value) -> i64 {
    object["spec"]["replicas"].as_i64().unwrap_or(1)
}

/// A label selector as the API takes it in a query; `None` where it is empty or not understood.
fn selector(selector: &Value) -> Option<String> {
    let mut parts = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        parts.push(format!("{key}={}", value.as_str()?));
    }
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str()?;
        let values = expression["values"].as_array().into_iter().flatten().map(Value::as_str);
        let values = values.collect::<Option<Vec<_>>>()?.join(",");
        parts.push(match expression["operator"].as_str()? {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        });
    }
    (!parts.is_empty()).then(|| parts.join(","))
}
