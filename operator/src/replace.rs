//! Which pods does the operator replace? After a loss, those whose containers a probe would kill while they
//! wait for the next lease; their sidecar was told so when it was injected.

use fencedlease_wire::settings::AfterLoss;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Client};

use crate::status::pods::after_loss;

/// Deletes the pod if it is to be replaced after a loss, and is still the pod of this uid. Its owner makes
/// a new one.
pub async fn after_proven_death(
    client: Client,
    namespace: &str,
    name: &str,
    uid: &str,
) -> Result<(), kube::Error> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let Some(pod) = pods.get_opt(name).await? else { return Ok(()) };
    let is_it = pod.metadata.uid.as_deref() == Some(uid) && pod.metadata.deletion_timestamp.is_none();
    if !is_it || after_loss(&pod) != Some(AfterLoss::Replace) {
        return Ok(());
    }
    if delete(client, namespace, name, uid).await? {
        tracing::info!(namespace, pod = name, "replaced after a loss");
    }
    Ok(())
}

/// Deletes the pod if it is still the pod of this uid; false if it was not.
pub(crate) async fn delete(
    client: Client,
    namespace: &str,
    name: &str,
    uid: &str,
) -> Result<bool, kube::Error> {
    let pods: Api<Pod> = Api::namespaced(client, namespace);
    let only_it = Preconditions { uid: Some(uid.to_owned()), ..Preconditions::default() };
    let params = DeleteParams { preconditions: Some(only_it), ..DeleteParams::default() };
    match pods.delete(name, &params).await {
        Ok(_) => Ok(true),
        // Another replica was first, or another pod has the name now.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(false),
        Err(error) => Err(error),
    }
}
