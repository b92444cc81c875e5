//! What does the operator know of the cluster without asking? FencedLeases, and the pods that were injected.

use std::pin::pin;

use fencedlease_crds::FencedLease;
use futures::channel::mpsc;
use futures::{SinkExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus, Pod, PodStatus};
use kube::runtime::reflector::{self, ObjectRef, Store, store::Writer};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use tokio::sync::watch;

use crate::admin::Readiness;

/// The label that the webhook writes on a pod that it injected.
pub const INJECTED_LABEL: &str = "fencedlease.dev/injected";
/// The annotation that asks for a lease.
pub const LEASE_ANNOTATION: &str = "fencedlease.dev/lease";

/// What stands between the operator and being ready, by name.
pub const LEASES: &str = "the list of FencedLeases";
/// What stands between the operator and being ready, by name.
pub const PODS: &str = "the list of pods";

/// What is kept, as other parts read it.
#[derive(Clone)]
pub struct Caches {
    /// Every FencedLease.
    pub leases: Store<FencedLease>,
    /// Every injected pod, without its spec and most of its status.
    pub pods: Store<Pod>,
}

/// What fills the caches.
pub struct Feeds {
    leases: Writer<FencedLease>,
    pods: Writer<Pod>,
}

/// Which FencedLease should be looked at.
pub type Touched = ObjectRef<FencedLease>;

/// Empty caches, and what fills them.
pub fn caches() -> (Caches, Feeds) {
    let (leases, leases_writer) = reflector::store();
    let (pods, pods_writer) = reflector::store();
    (Caches { leases, pods }, Feeds { leases: leases_writer, pods: pods_writer })
}

impl Caches {
    /// The pods that were injected for this FencedLease.
    pub fn pods_of(&self, namespace: &str, lease: &str) -> Vec<std::sync::Arc<Pod>> {
        self.pods.state_filter(|pod| {
            pod.metadata.namespace.as_deref() == Some(namespace) && lease_of(pod) == Some(lease)
        })
    }
}

impl Feeds {
    /// Watches until `stop`, and tells `touched` which FencedLease each change is about. Not ready before
    /// both lists are complete.
    ///
    /// That is seen in the watches themselves: of several that wait for one store, kube wakes only the last.
    pub async fn run(
        self,
        client: Client,
        touched: mpsc::Sender<Touched>,
        readiness: Readiness,
        mut stop: watch::Receiver<bool>,
    ) {
        let leases = feed(
            Api::<FencedLease>::all(client.clone()),
            watcher::Config::default(),
            self.leases,
            |lease| lease.metadata.managed_fields = None,
            |lease| Some(ObjectRef::from_obj(lease)),
            touched.clone(),
            || readiness.done(LEASES),
        );
        let pods = feed(
            Api::<Pod>::all(client),
            watcher::Config::default().labels(&format!("{INJECTED_LABEL}=true")),
            self.pods,
            trim,
            |pod| Some(ObjectRef::new(lease_of(pod)?).within(pod.namespace()?.as_str())),
            touched,
            || readiness.done(PODS),
        );
        tokio::select! {
            () = leases => {}
            () = pods => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }
}

/// The FencedLease that a pod asks for.
pub fn lease_of(pod: &Pod) -> Option<&str> {
    pod.metadata.annotations.as_ref()?.get(LEASE_ANNOTATION).map(String::as_str)
}

/// Thousands of pods fit into little memory when only what is looked at is kept.
fn trim(pod: &mut Pod) {
    pod.metadata.managed_fields = None;
    pod.spec = None;
    pod.status = pod.status.take().map(|status| PodStatus {
        phase: status.phase,
        conditions: status.conditions,
        container_statuses: status.container_statuses.map(ends),
        ..PodStatus::default()
    });
}

/// How containers ended: exit code and time, without texts that users wrote.
fn ends(statuses: Vec<ContainerStatus>) -> Vec<ContainerStatus> {
    let end = |status: ContainerStatus| {
        let ended = status.state?.terminated?;
        let terminated = ContainerStateTerminated {
            exit_code: ended.exit_code,
            finished_at: ended.finished_at,
            ..ContainerStateTerminated::default()
        };
        let state = ContainerState { terminated: Some(terminated), ..ContainerState::default() };
        Some(ContainerStatus { name: status.name, state: Some(state), ..ContainerStatus::default() })
    };
    statuses.into_iter().filter_map(end).collect()
}

async fn feed<K>(
    api: Api<K>,
    config: watcher::Config,
    writer: Writer<K>,
    trim: impl Fn(&mut K) + Send + 'static,
    lease: impl Fn(&K) -> Option<Touched>,
    mut touched: mpsc::Sender<Touched>,
    complete: impl Fn(),
) where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    K: Send + Sync + 'static,
{
    let stream = watcher(api, config).default_backoff().modify(trim).reflect(writer);
    let stream = stream.inspect(|event| {
        if matches!(event, Ok(watcher::Event::InitDone)) {
            complete();
        }
    });
    let mut stream = pin!(stream.touched_objects());
    while let Some(item) = stream.next().await {
        match item {
            Ok(object) => {
                let Some(lease) = lease(&object) else { continue };
                if touched.send(lease).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(kind = %K::kind(&()), %error, "the watch broke off; it is begun again");
            }
        }
    }
}
