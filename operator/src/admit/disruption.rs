//! Would a PodDisruptionBudget keep the holder from ever being evicted? It does where pods that wait are not Ready:
//! then one pod is, and a budget that asks for one or more lets no drain go on.

use std::collections::BTreeMap;

use fencedlease_wire::settings::StandbySettings;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;

use super::overlap::replicas;
use super::workload::{WorkloadKind, keys};

/// The warning with what to set, if one of the namespace's budgets never lets the holder of this workload go.
pub fn warning(
    kind: WorkloadKind,
    workload: &Value,
    standby: StandbySettings,
    budgets: &[PodDisruptionBudget],
) -> Option<String> {
    if standby.ready {
        return None;
    }
    let labels = keys(&kind.template(workload)["metadata"], "labels");
    let pods = match kind {
        WorkloadKind::DaemonSet => workload["status"]["desiredNumberScheduled"].as_i64().unwrap_or(1).max(1),
        WorkloadKind::Job | WorkloadKind::CronJob => 1,
        _ => replicas(workload),
    };
    budgets.iter().find_map(|budget| {
        let spec = budget.spec.as_ref()?;
        let found = asks(spec, pods)?;
        if !selects(spec.selector.as_ref()?, &labels) {
            return None;
        }
        let name = budget.metadata.name.as_deref().unwrap_or_default();
        Some(format!(
            "PodDisruptionBudget {name} will refuse every eviction of the pod that holds the lease, and with it kubectl drain: pods that wait are not Ready, so 1 of {pods} is, and {found}. Give the budget maxUnavailable: 100% instead, or set spec.standby.readiness of the FencedLease to Ready."
        ))
    })
}

/// What the budget says, if it asks for one Ready pod or more.
fn asks(spec: &PodDisruptionBudgetSpec, pods: i64) -> Option<String> {
    let (field, value, healthy) = match (&spec.min_available, &spec.max_unavailable) {
        (Some(least), _) => ("minAvailable", least, rounded_up(least, pods)),
        (None, Some(most)) => ("maxUnavailable", most, pods - rounded_up(most, pods)),
        // Such a budget lets no pod go at all.
        (None, None) => return Some("neither minAvailable nor maxUnavailable is set".to_owned()),
    };
    let value = match value {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(text) => text.clone(),
    };
    (healthy >= 1).then(|| format!("{field} is {value}"))
}

/// A number, or a percentage of the pods, of which Kubernetes takes the next whole one.
fn rounded_up(value: &IntOrString, pods: i64) -> i64 {
    match value {
        IntOrString::Int(number) => i64::from(*number),
        IntOrString::String(text) => {
            let percent = text.strip_suffix('%').and_then(|text| text.parse::<i64>().ok()).unwrap_or(100);
            pods.saturating_mul(percent).saturating_add(99) / 100
        }
    }
}

fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let equal = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    equal && selector.match_expressions.iter().flatten().all(|expression| meets(expression, labels))
}

fn meets(expression: &LabelSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let label = labels.get(&expression.key);
    let named = || label.is_some_and(|label| expression.values.iter().flatten().any(|value| value == label));
    match expression.operator.as_str() {
        "In" => named(),
        "NotIn" => !named(),
        "Exists" => label.is_some(),
        "DoesNotExist" => label.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
