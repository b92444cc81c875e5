//! Which failed pods are in the way? A pod that lost its lease fails so that its owner makes a new one, and only
//! Kubernetes' own collector, at 12,500 pods, would ever take it away. Its logs tell why: the newest few of a
//! workload stay for a while.

use std::collections::BTreeMap;
use std::sync::Arc;

use fencedlease_crds::Workload;
use fencedlease_wire::exit;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::Client;

use crate::cache::Caches;
use crate::replace;
use crate::status::pods::workload;

/// How many of a workload are kept.
const KEPT: usize = 3;
/// How long they are kept.
const KEPT_FOR: SignedDuration = SignedDuration::from_hours(1);
/// How many are deleted at a look, so that a wrong decision could not empty a cluster at once.
const AT_A_LOOK: usize = 10;

/// A pod that failed because its holding ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FailedPod {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The workload that it belongs to.
    pub workload: Workload,
    /// When it ended.
    pub ended: Timestamp,
}

/// Takes away what failed pods leave behind.
pub struct Tidy {
    client: Client,
    caches: Caches,
}

/// The pod, if it has failed because its lease was lost or its holding ended as planned, a controller owns it, and
/// nobody else waits for it. A pod that nobody makes anew is the user's to delete.
pub fn failed(pod: &Pod) -> Option<FailedPod> {
    let (metadata, status) = (&pod.metadata, pod.status.as_ref()?);
    let has_finalizers = metadata.finalizers.as_ref().is_some_and(|all| !all.is_empty());
    if status.phase.as_deref() != Some("Failed") || metadata.deletion_timestamp.is_some() || has_finalizers {
        return None;
    }
    let ends = status.container_statuses.iter().flatten();
    let ends = ends.filter_map(|container| container.state.as_ref()?.terminated.as_ref());
    let by_us = |code: i32| [exit::LOST, exit::PLANNED_END].iter().any(|ours| i32::from(*ours) == code);
    let ended = ends.filter(|end| by_us(end.exit_code)).map(|end| end.finished_at.as_ref()).max()?;
    Some(FailedPod {
        name: metadata.name.clone()?,
        uid: metadata.uid.clone()?,
        workload: workload(pod)?,
        ended: ended.or(metadata.creation_timestamp.as_ref())?.0,
    })
}

/// Those to be deleted: all but the newest three of each workload, and those too when an hour has passed.
pub fn to_delete(pods: Vec<FailedPod>, now: Timestamp) -> Vec<FailedPod> {
    let mut by_workload: BTreeMap<(String, String), Vec<FailedPod>> = BTreeMap::new();
    for pod in pods {
        let workload = (pod.workload.kind.clone(), pod.workload.name.clone());
        by_workload.entry(workload).or_default().push(pod);
    }
    let mut left_over = Vec::new();
    for mut pods in by_workload.into_values() {
        pods.sort_by(|one, other| (other.ended, &other.name).cmp(&(one.ended, &one.name)));
        let old = |pod: &FailedPod| pod.ended + KEPT_FOR <= now;
        left_over.extend(
            pods.into_iter()
                .enumerate()
                .filter(|(index, pod)| *index >= KEPT || old(pod))
                .map(|(_, pod)| pod),
        );
    }
    left_over.sort_by(|one, other| (one.ended, &one.name).cmp(&(other.ended, &other.name)));
    left_over
}

impl Tidy {
    /// Deletes by `client` what `caches` show.
    pub fn new(client: Client, caches: Caches) -> Self {
        Self { client, caches }
    }

    /// Deletes what is left over of the pods of this FencedLease, oldest first, a few at a time. What fails is tried
    /// again at the next look.
    pub async fn look(&self, namespace: &str, lease: &str, now: Timestamp) {
        let pods: Vec<Arc<Pod>> = self.caches.pods_of(namespace, lease);
        let failed = pods.iter().filter_map(|pod| failed(pod)).collect();
        for pod in to_delete(failed, now).into_iter().take(AT_A_LOOK) {
            match replace::delete(self.client.clone(), namespace, &pod.name, &pod.uid).await {
                Ok(true) => tracing::info!(namespace, pod = pod.name, "a failed pod is taken away"),
                Ok(false) => {}
                Err(error) => {
                    tracing::warn!(namespace, pod = pod.name, %error, "cannot take a failed pod away");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
