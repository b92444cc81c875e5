//! Who is asking? The pod that the token is bound to, and nobody else.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client};

use super::Endpoint;
use super::refusal::Refusal;
use super::reviews::Reviews;
use crate::cache::{Caches, INJECTED_LABEL, lease_of};
use crate::status::fold::Reporter;
use crate::status::pods::workload;

/// The pod that a token is bound to, as the API server says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Caller {
    /// The pod's namespace.
    pub namespace: String,
    /// Its name.
    pub pod_name: String,
    /// Its uid.
    pub pod_uid: String,
}

/// What tells callers.
pub struct Callers {
    client: Client,
    caches: Caches,
    reviews: Reviews,
}

impl Callers {
    /// Callers as the API server and the cache know them.
    pub fn new(client: Client, caches: Caches) -> Self {
        Self { reviews: Reviews::new(client.clone()), client, caches }
    }

    /// The caller's pod, if it was injected with the FencedLease that it speaks of.
    pub async fn reporter(&self, caller: &Caller, namespace: &str, lease: &str) -> Result<Reporter, Refusal> {
        if caller.namespace != namespace {
            return Err(Refusal::forbidden(
                "OtherNamespace",
                format!(
                    "the token is of a pod in namespace {}, and the request speaks of {namespace}",
                    caller.namespace
                ),
            ));
        }
        let pod = self.pod(caller).await?;
        entitled(&pod, lease)?;
        Ok(Reporter { pod_uid: caller.pod_uid.clone(), workload: workload(&pod) })
    }

    /// The pod from the cache, else from the API server: it may be younger than the cache.
    async fn pod(&self, caller: &Caller) -> Result<Arc<Pod>, Refusal> {
        let is_it = |pod: &Pod| pod.metadata.uid.as_deref() == Some(caller.pod_uid.as_str());
        let reference = ObjectRef::new(&caller.pod_name).within(&caller.namespace);
        if let Some(pod) = self.caches.pods.get(&reference).filter(|pod| is_it(pod)) {
            return Ok(pod);
        }
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &caller.namespace);
        let pod = api.get_opt(&caller.pod_name).await;
        let pod = pod.map_err(|error| Refusal::kubernetes("read the pod", &error))?;
        pod.filter(is_it).map(Arc::new).ok_or_else(|| {
            Refusal::forbidden(
                "NoSuchPod",
                format!("pod {} of the token's uid does not exist", caller.pod_name),
            )
        })
    }
}

/// Whether the pod may speak of this FencedLease.
pub fn entitled(pod: &Pod, lease: &str) -> Result<(), Refusal> {
    let label = pod.metadata.labels.as_ref().and_then(|labels| labels.get(INJECTED_LABEL));
    if label.is_none_or(|value| value != "true") {
        return Err(Refusal::forbidden(
            "NotInjected",
            format!(
                "the pod has no label {INJECTED_LABEL}=true: it was not injected, or the label was taken off"
            ),
        ));
    }
    match lease_of(pod) {
        Some(of_pod) if of_pod == lease => Ok(()),
        of_pod => Err(Refusal::forbidden(
            "OtherLease",
            format!(
                "the pod was injected for FencedLease {:?}, and the request speaks of {lease:?}",
                of_pod.unwrap_or_default()
            ),
        )),
    }
}

/// The bearer token of a request.
fn bearer(parts: &Parts) -> Option<&str> {
    let value = parts.headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty()).then(|| token.trim())
}

// === impl Caller ===

impl FromRequestParts<Arc<Endpoint>> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, endpoint: &Arc<Endpoint>) -> Result<Self, Refusal> {
        let token = bearer(parts).ok_or_else(|| {
            Refusal::unauthorized("NoToken", "send Authorization: Bearer with the projected token")
        })?;
        endpoint.callers.reviews.caller(token).await
    }
}

#[cfg(test)]
mod tests;
