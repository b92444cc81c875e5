//! What do the webhooks ask of the cluster? A trait, so that tests answer from a map.

use std::sync::Arc;
use std::time::Duration;

use fencedlease_crds::FencedLease;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::ListParams;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, Client};

use crate::inject::Installation;

/// How long a question may take. An answer asks twice at most, and the API server waits 5 s for it.
const DEADLINE: Duration = Duration::from_secs(2);

/// What the webhooks ask.
pub trait Cluster: Send + Sync + 'static {
    /// The installation as it is now.
    fn installation(&self) -> Installation;
    /// A FencedLease that is known without asking.
    fn cached_lease(&self, namespace: &str, name: &str) -> Option<Arc<FencedLease>>;
    /// A FencedLease as the API server has it now; `None` if there is none.
    fn live_lease<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<FencedLease>, LookUpError>>;
    /// How many pods with these labels have not ended yet, terminating ones included.
    fn count_pods<'a>(
        &'a self,
        namespace: &'a str,
        selector: &'a str,
    ) -> BoxFuture<'a, Result<usize, LookUpError>>;
    /// The PodDisruptionBudgets of a namespace.
    fn disruption_budgets<'a>(
        &'a self,
        namespace: &'a str,
    ) -> BoxFuture<'a, Result<Vec<PodDisruptionBudget>, LookUpError>>;
}

/// Why the cluster did not answer.
#[derive(Debug, thiserror::Error)]
pub enum LookUpError {
    /// The API server refused, or could not be reached.
    #[error("the Kubernetes API did not answer ({0})")]
    Kubernetes(#[from] kube::Error),
    /// It took too long.
    #[error("the Kubernetes API did not answer in {} s", DEADLINE.as_secs())]
    Timeout,
}

/// The real cluster.
pub struct LiveCluster<F> {
    client: Client,
    leases: Store<FencedLease>,
    installation: F,
}

impl<F> LiveCluster<F> {
    /// Answers from `leases` first, and by `client` where they do not know. `installation` is asked anew each
    /// time, since certificate authorities change while the operator runs.
    pub fn new(client: Client, leases: Store<FencedLease>, installation: F) -> Self
    where
        F: Fn() -> Installation,
    {
        Self { client, leases, installation }
    }
}

impl<F: Fn() -> Installation + Send + Sync + 'static> Cluster for LiveCluster<F> {
    fn installation(&self) -> Installation {
        (self.installation)()
    }

    fn cached_lease(&self, namespace: &str, name: &str) -> Option<Arc<FencedLease>> {
        self.leases.get(&ObjectRef::new(name).within(namespace))
    }

    fn live_lease<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<FencedLease>, LookUpError>> {
        Box::pin(async move {
            let leases: Api<FencedLease> = Api::namespaced(self.client.clone(), namespace);
            in_time(leases.get_opt(name)).await
        })
    }

    fn count_pods<'a>(
        &'a self,
        namespace: &'a str,
        selector: &'a str,
    ) -> BoxFuture<'a, Result<usize, LookUpError>> {
        Box::pin(async move {
            let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
            let found = in_time(pods.list(&ListParams::default().labels(selector))).await?;
            Ok(found.items.iter().filter(|pod| !has_ended(pod)).count())
        })
    }

    fn disruption_budgets<'a>(
        &'a self,
        namespace: &'a str,
    ) -> BoxFuture<'a, Result<Vec<PodDisruptionBudget>, LookUpError>> {
        Box::pin(async move {
            let budgets: Api<PodDisruptionBudget> = Api::namespaced(self.client.clone(), namespace);
            Ok(in_time(budgets.list(&ListParams::default())).await?.items)
        })
    }
}

async fn in_time<T>(call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, LookUpError> {
    tokio::time::timeout(DEADLINE, call)
        .await
        .map_err(|_| LookUpError::Timeout)?
        .map_err(LookUpError::Kubernetes)
}

fn has_ended(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

#[cfg(test)]
mod tests;
