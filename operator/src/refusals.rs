//! Who hears of a refusal besides the one who was refused? A ReplicaSet keeps to itself why it can make no
//! pod, so the FencedLease's condition and an Event on the owner tell.

use std::sync::Arc;

use fencedlease_crds::FencedLease;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::reflector::{ObjectRef, Store};
use tokio::sync::{mpsc, watch};

use crate::events::{Events, News};
use crate::status::write::Statuses;
use crate::webhook::{ObjectName, Refused};

/// Passes on what the webhooks refuse, until `stop`.
pub async fn run(
    mut refusals: mpsc::Receiver<Refused>,
    leases: Store<FencedLease>,
    statuses: Arc<Statuses>,
    events: Events,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        let refused = tokio::select! {
            Some(refused) = refusals.recv() => refused,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        let news = News::Refused { message: refused.message.clone() };
        for reference in told(&refused) {
            events.publish_on(&news, &reference);
        }
        // A workload's user is answered directly; only pods are made by somebody else.
        let Some(name) = refused.lease.as_deref().filter(|_| refused.object.kind == "Pod") else { continue };
        let Some(lease) = leases.get(&ObjectRef::new(name).within(&refused.namespace)) else { continue };
        if let Err(error) = statuses.refused(lease, &refused.message, refused.at).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "a refusal is not in the status");
        }
    }
}

/// The existing objects that a refusal is about: the owner, and the object itself if it has a uid.
pub fn told(refused: &Refused) -> Vec<ObjectReference> {
    let reference = |object: &ObjectName| {
        let uid = object.uid.clone()?;
        Some(ObjectReference {
            api_version: Some(object.api_version.clone()),
            kind: Some(object.kind.clone()),
            namespace: Some(refused.namespace.clone()),
            name: Some(object.name.clone()),
            uid: Some(uid),
            ..ObjectReference::default()
        })
    };
    // A pod that was refused has got no uid yet, or one that nothing will ever have.
    let object = Some(&refused.object).filter(|object| object.kind != "Pod");
    refused.owner.iter().chain(object).filter_map(reference).collect()
}

#[cfg(test)]
mod tests;
