//! Would a rollout of this workload hang? It does where Kubernetes waits for pods to be Ready that are Ready
//! only once they hold the lease, and keeps the one that holds it until then.

use fencedlease_wire::settings::StandbySettings;
use serde_json::Value;

use super::overlap::replicas;
use super::workload::WorkloadKind;

/// The warning with the strategy to set, if a rollout would hang.
pub fn warning(kind: WorkloadKind, workload: &Value, standby: StandbySettings) -> Option<String> {
    if standby.ready {
        return None;
    }
    let remedy = match kind {
        WorkloadKind::Deployment if deployment_hangs(workload) => {
            "Set spec.strategy to Recreate, or to RollingUpdate with maxSurge 0 and maxUnavailable 100%"
        }
        WorkloadKind::StatefulSet if rolls(workload) && replicas(workload) > 1 => {
            "Set spec.updateStrategy to OnDelete (a StatefulSet of more than two needs podManagementPolicy Parallel too, from its creation)"
        }
        WorkloadKind::DaemonSet if rolls(workload) && !daemon_set_replaces_all(workload) => {
            "Set spec.updateStrategy to OnDelete, or to RollingUpdate with maxUnavailable 100%"
        }
        _ => return None,
    };
    Some(format!(
        "A rollout will hang: pods that wait for the lease are not Ready, and the {} keeps the pod that holds it until they are. {remedy}; or set spec.standby.readiness of the FencedLease to Ready.",
        kind.as_str()
    ))
}

/// New pods are Ready only when the old holder, the one Ready pod, is gone. It goes only where the Deployment
/// may be without any Ready pod at all.
fn deployment_hangs(workload: &Value) -> bool {
    let strategy = &workload["spec"]["strategy"];
    if strategy["type"] == "Recreate" {
        return false;
    }
    let replicas = replicas(workload);
    let rolling = &strategy["rollingUpdate"];
    let unavailable = resolved(&rolling["maxUnavailable"], replicas, Rounding::Down);
    let surge = resolved(&rolling["maxSurge"], replicas, Rounding::Up);
    // Kubernetes lets one be missing where both come to 0, or nothing could ever be replaced.
    let unavailable = if unavailable == 0 && surge == 0 { 1 } else { unavailable };
    replicas > 0 && unavailable < replicas
}

fn rolls(workload: &Value) -> bool {
    workload["spec"]["updateStrategy"]["type"] != "OnDelete"
}

fn daemon_set_replaces_all(workload: &Value) -> bool {
    workload["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == "100%"
}

#[derive(Clone, Copy)]
enum Rounding {
    Down,
    Up,
}

/// A number or a percentage of `replicas`; unset is Kubernetes' default of 25 %.
fn resolved(value: &Value, replicas: i64, rounding: Rounding) -> i64 {
    if let Some(number) = value.as_i64() {
        return number;
    }
    let percent = value.as_str().and_then(|text| text.strip_suffix('%')?.parse::<i64>().ok()).unwrap_or(25);
    let hundredths = replicas.saturating_mul(percent);
    match rounding {
        Rounding::Down => hundredths / 100,
        Rounding::Up => hundredths.saturating_add(99) / 100,
    }
}

#[cfg(test)]
mod tests;
