//! What will become of the pods of a workload? Asked where a person is listening: a refusal of the pod itself
//! reaches only the controller that makes it.

use fencedlease_crds::FencedLease;
use serde_json::{Value, json};

use super::{Injected, Installation, inject};
use crate::admit::Refusal;

/// The injection of a pod that a controller named `owner` would make from `template`, guarded by `lease`.
pub fn preview(
    template: &Value,
    owner: &str,
    lease: &FencedLease,
    namespace: &str,
    installation: &Installation,
) -> Result<Injected, Refusal> {
    let mut metadata = template["metadata"].as_object().cloned().unwrap_or_default();
    metadata.insert("generateName".to_owned(), format!("{owner}-").into());
    let owner =
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": "-", "controller": true});
    metadata.insert("ownerReferences".to_owned(), json!([owner]));
    let pod = json!({"metadata": metadata, "spec": template["spec"]});
    inject(&pod, lease, namespace, installation)
}
