//! What does the sidecar request, and what may it use?

use serde_json::Value;

use super::installation::Resources;
use crate::admit::annotations::PodAnnotations;
use crate::admit::quantity;

/// The installation's, with what the pod's annotations say instead. A request above its limit would be refused
/// by the API server, in words about a container that the user never wrote: the other side gives way.
pub(super) fn of(installation: &Resources, annotations: &PodAnnotations) -> Resources {
    let mut resources = installation.clone();
    let Resources { requests, limits } = &mut resources;
    let cpu = || "cpu".to_owned();
    if let Some(request) = &annotations.sidecar_cpu_request {
        requests.insert(cpu(), request.clone());
        if limits.get("cpu").is_some_and(|limit| is_above(request, limit)) {
            limits.insert(cpu(), request.clone());
        }
    }
    if let Some(limit) = &annotations.sidecar_cpu_limit {
        limits.insert(cpu(), limit.clone());
        if requests.get("cpu").is_some_and(|request| is_above(request, limit)) {
            requests.insert(cpu(), limit.clone());
        }
    }
    if let Some(memory) = &annotations.sidecar_memory {
        requests.insert("memory".to_owned(), memory.clone());
        limits.insert("memory".to_owned(), memory.clone());
    }
    resources
}

/// As JSON, with what a LimitRange added to the sidecar that was there before: without that the pod would
/// be refused.
pub(super) fn to_json(resources: &Resources, before: Option<&Value>) -> Value {
    let mut json = serde_json::Map::new();
    for (kind, ours) in [("requests", &resources.requests), ("limits", &resources.limits)] {
        let mut all = serde_json::Map::new();
        if let Some(before) = before.and_then(|sidecar| sidecar["resources"][kind].as_object()) {
            all.extend(before.clone());
        }
        all.extend(ours.iter().map(|(name, quantity)| (name.clone(), quantity.clone().into())));
        if !all.is_empty() {
            json.insert(kind.to_owned(), all.into());
        }
    }
    json.into()
}

fn is_above(one: &str, other: &str) -> bool {
    matches!((quantity::parse(one), quantity::parse(other)), (Some(one), Some(other)) if one > other)
}
