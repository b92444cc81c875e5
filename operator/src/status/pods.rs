//! What do a FencedLease's pods look like? Plain facts, read from the cache.

use std::collections::BTreeSet;

use fencedlease_crds::Workload;
use fencedlease_wire::settings::AfterLoss;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

/// How long a new pod may wait unready beside an older one before its rollout counts as hanging.
const HANGS_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// What counts about one pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PodFacts {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Whether it is being deleted.
    pub terminating: bool,
    /// Whether it has ended: it failed or succeeded.
    pub ended: bool,
    /// Whether it is Ready.
    pub ready: bool,
    /// The revision of its workload: pods that differ belong to different states of a rollout.
    pub revision: Option<String>,
    /// The workload that it belongs to.
    pub workload: Option<Workload>,
    /// The FencedLease's generation that it was injected with.
    pub lease_generation: Option<i64>,
    /// Whether it is Ready while it waits, as it was injected.
    pub ready_while_waiting: Option<bool>,
}

/// What a FencedLease's pods come to.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PodsSummary {
    /// The uids of pods that could hold the lease or wait for it, with those that are being deleted.
    pub alive: BTreeSet<String>,
    /// Pods that wait: alive, not being deleted, and not the holder.
    pub standbys: Vec<String>,
    /// Pods that run with an older generation of the spec.
    pub outdated: Vec<String>,
    /// A pod whose rollout waits for what cannot come.
    pub hanging: Option<Hanging>,
    /// When the newest pod was made.
    pub newest: Option<Timestamp>,
}

/// A rollout that waits for a pod to be ready which waits for the lease.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hanging {
    /// The new pod.
    pub pod: String,
    /// The old pod, which holds the lease.
    pub holder: String,
    /// Whose rollout it is.
    pub workload: Option<Workload>,
}

/// The part of the annotation `fencedlease.dev/status` that is read here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InjectionNote {
    lease_generation: Option<i64>,
    standby: Option<StandbyNote>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StandbyNote {
    ready: Option<bool>,
}

/// What counts about `pod`.
pub fn facts(pod: &Pod) -> PodFacts {
    let metadata = &pod.metadata;
    let label = |name: &str| metadata.labels.as_ref()?.get(name).cloned();
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let note = metadata.annotations.as_ref().and_then(|all| all.get(crate::admit::annotations::STATUS));
    let note: Option<InjectionNote> = note.and_then(|note| serde_json::from_str(note).ok());
    PodFacts {
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
        created: metadata.creation_timestamp.as_ref().map(|time| time.0),
        terminating: metadata.deletion_timestamp.is_some(),
        ended: matches!(phase, Some("Succeeded" | "Failed")),
        ready: conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"),
        revision: label("pod-template-hash").or_else(|| label("controller-revision-hash")),
        workload: workload(pod),
        lease_generation: note.as_ref().and_then(|note| note.lease_generation),
        ready_while_waiting: note.and_then(|note| note.standby).and_then(|standby| standby.ready),
    }
}

/// What `pods` come to, for a FencedLease of this generation whose holder has this uid.
pub fn summarize(
    pods: &[PodFacts],
    generation: Option<i64>,
    holder: Option<&str>,
    now: Timestamp,
) -> PodsSummary {
    let alive = || pods.iter().filter(|pod| !pod.ended);
    let is_holder = |pod: &&PodFacts| Some(pod.uid.as_str()) == holder;
    let outdated = |pod: &&PodFacts| match (pod.lease_generation, generation) {
        (Some(of_pod), Some(present)) => of_pod < present,
        _ => false,
    };
    let names = |pods: &mut dyn Iterator<Item = &PodFacts>| {
        let mut names: Vec<String> = pods.map(|pod| pod.name.clone()).collect();
        names.sort_unstable();
        names
    };
    PodsSummary {
        alive: alive().map(|pod| pod.uid.clone()).collect(),
        standbys: names(&mut alive().filter(|pod| !pod.terminating && !is_holder(pod))),
        outdated: names(&mut alive().filter(|pod| !pod.terminating).filter(outdated)),
        hanging: alive().find(is_holder).and_then(|holder| hanging(alive(), holder, now)),
        newest: pods.iter().filter_map(|pod| pod.created).max(),
    }
}

/// The workload that a pod belongs to, as its labels and owner tell without asking for the owner.
pub fn workload(pod: &Pod) -> Option<Workload> {
    let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
    let owner = owners.iter().find(|owner| owner.controller == Some(true))?;
    let hash = pod.metadata.labels.as_ref().and_then(|labels| labels.get("pod-template-hash"));
    let deployment = hash
        .filter(|_| owner.kind == "ReplicaSet")
        .and_then(|hash| owner.name.strip_suffix(hash.as_str())?.strip_suffix('-'));
    Some(match deployment {
        Some(name) => Workload { kind: "Deployment".to_owned(), name: name.to_owned() },
        None => Workload { kind: owner.kind.clone(), name: owner.name.clone() },
    })
}

/// What becomes of `pod` after a loss, as its sidecar was told. Needs the pod's spec.
pub fn after_loss(pod: &Pod) -> Option<AfterLoss> {
    let sidecars = pod.spec.as_ref()?.init_containers.as_ref()?;
    let sidecar = sidecars.iter().find(|container| container.name == "fencedlease")?;
    let settings =
        sidecar.env.as_ref()?.iter().find(|env| env.name == fencedlease_wire::paths::ENV_SETTINGS)?;
    let settings: fencedlease_wire::SidecarSettings = serde_json::from_str(settings.value.as_ref()?).ok()?;
    Some(settings.after_loss)
}

/// A pod of another revision than the holder's that has waited unready for so long that the rollout which
/// made it will not end the holder: a controller that ends old pods first would have done it by now.
fn hanging<'a>(
    mut alive: impl Iterator<Item = &'a PodFacts>,
    holder: &PodFacts,
    now: Timestamp,
) -> Option<Hanging> {
    if holder.terminating {
        return None;
    }
    let waits_in_vain = |pod: &&PodFacts| {
        pod.workload.is_some()
            && pod.workload == holder.workload
            && pod.revision.is_some()
            && pod.revision != holder.revision
            && pod.created > holder.created
            && pod.created.is_some_and(|created| created + HANGS_AFTER <= now)
            && pod.ready_while_waiting == Some(false)
            && !pod.ready
            && !pod.terminating
    };
    let pod = alive.find(waits_in_vain)?;
    Some(Hanging { pod: pod.name.clone(), holder: holder.name.clone(), workload: pod.workload.clone() })
}

#[cfg(test)]
mod tests;
