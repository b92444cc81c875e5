//! Who writes the status? Whichever replica comes first: every write bears the resourceVersion that it was
//! made from, nothing is written that changes nothing, and what came in between is folded in again.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use fencedlease_crds::{ConditionType, FencedLease, FencedLeaseStatus};
use fencedlease_wire::endpoint::{RedisStanding, Report};
use k8s_openapi::jiff::Timestamp;
use kube::{Api, Client, ResourceExt as _};

use super::conditions::standing;
use super::fold::{Reporter, fold};
use super::order::Order;
use super::pods::{facts, summarize};
use super::settle::{Facts, settle};
use crate::admit::lease::resolve;
use crate::cache::Caches;
use crate::events::{Events, News, lease_reference, pod_reference};
use crate::unguarded::Unguarded;

/// How often another writer may come first.
const MOST_CONFLICTS: usize = 5;

/// What keeps the statuses of all FencedLeases.
pub struct Statuses {
    client: Client,
    caches: Caches,
    events: Events,
    unguarded: Unguarded,
    order: Mutex<Order>,
    installation_has_redis: bool,
}

/// Why a status was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The API server did not do what was asked.
    #[error("cannot write the status of FencedLease {lease}")]
    Kubernetes {
        /// `namespace/name`.
        lease: String,
        /// The API server's answer.
        #[source]
        source: kube::Error,
    },
    /// Others wrote again and again.
    #[error("the status of FencedLease {lease} was changed by others {MOST_CONFLICTS} times in a row")]
    Conflict {
        /// `namespace/name`.
        lease: String,
    },
}

/// What one change adds to what is known.
#[derive(Default)]
struct Change {
    status: FencedLeaseStatus,
    news: Vec<News>,
    redis: Option<RedisStanding>,
    refusal: Option<String>,
}

impl Statuses {
    /// Statuses written by `client` from what `caches` and reports say.
    pub fn new(client: Client, caches: Caches, events: Events, installation_has_redis: bool) -> Self {
        let unguarded = Unguarded::new(client.clone());
        let order = Mutex::default();
        Self { client, caches, events, unguarded, order, installation_has_redis }
    }

    /// Takes a sidecar's report in.
    pub async fn report(
        &self,
        lease: Arc<FencedLease>,
        report: &Report,
        from: &Reporter,
    ) -> Result<(), WriteError> {
        if !self.is_newest(report, from) {
            tracing::debug!(pod = report.pod_name, "a report that came too late is left out");
            return Ok(());
        }
        let pod = pod_reference(&report.namespace, &report.pod_name, &from.pod_uid);
        self.change(lease, Some(&pod), |status, now| {
            let folded = fold(status, report, from, now);
            Change { status: folded.status, news: folded.news, redis: folded.redis, refusal: None }
        })
        .await
    }

    /// Takes a refusal by the webhook in.
    pub async fn refused(&self, lease: Arc<FencedLease>, message: &str) -> Result<(), WriteError> {
        self.change(lease, None, |status, _| Change {
            status: status.clone(),
            news: vec![News::Refused { message: message.to_owned() }],
            refusal: Some(message.to_owned()),
            ..Change::default()
        })
        .await
    }

    /// Brings the status up to what the caches show.
    pub async fn refresh(&self, lease: Arc<FencedLease>) -> Result<(), WriteError> {
        self.change(lease, None, |status, _| Change { status: status.clone(), ..Change::default() }).await
    }

    async fn change(
        &self,
        mut lease: Arc<FencedLease>,
        pod: Option<&k8s_openapi::api::core::v1::ObjectReference>,
        change: impl Fn(&FencedLeaseStatus, Timestamp) -> Change,
    ) -> Result<(), WriteError> {
        let (namespace, name) = (lease.namespace().unwrap_or_default(), lease.name_any());
        let api: Api<FencedLease> = Api::namespaced(self.client.clone(), &namespace);
        let failed = |source| WriteError::Kubernetes { lease: format!("{namespace}/{name}"), source };
        let unguarded = self.unguarded.of(&namespace, &name).await;
        for _ in 0..MOST_CONFLICTS {
            let now = Timestamp::now();
            let old = lease.status.clone().unwrap_or_default();
            let Change { status, mut news, redis, refusal } = change(&old, now);
            let facts = self.facts(&lease, &status, unguarded.clone(), redis, refusal, now);
            let status = settle(&status, &facts, now);
            if lease.status.as_ref() == Some(&status) {
                self.tell(&news, &lease, pod);
                return Ok(());
            }
            news.extend(turned(&old, &status));
            let written = FencedLease { status: Some(status), ..FencedLease::clone(&lease) };
            match api.replace_status(&name, &crate::post_params(), &written).await {
                Ok(_) => {
                    self.tell(&news, &lease, pod);
                    return Ok(());
                }
                Err(kube::Error::Api(answer)) if answer.code == 409 => {
                    match api.get_opt(&name).await.map_err(failed)? {
                        Some(newer) => lease = Arc::new(newer),
                        // Deleted meanwhile: there is nothing left to write to.
                        None => return Ok(()),
                    }
                }
                Err(kube::Error::Api(answer)) if answer.code == 404 => return Ok(()),
                Err(source) => return Err(failed(source)),
            }
        }
        Err(WriteError::Conflict { lease: format!("{namespace}/{name}") })
    }

    fn facts(
        &self,
        lease: &FencedLease,
        status: &FencedLeaseStatus,
        unguarded: Vec<String>,
        redis: Option<RedisStanding>,
        refusal: Option<String>,
        now: Timestamp,
    ) -> Facts {
        let (namespace, name) = (lease.namespace().unwrap_or_default(), lease.name_any());
        let pods: Vec<_> = self.caches.pods_of(&namespace, &name).iter().map(|pod| facts(pod)).collect();
        let holder = status.holder.as_ref().map(|holder| holder.pod_uid.as_str());
        let timing = resolve(&lease.spec)
            .map(|resolved| resolved.timing)
            .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
        Facts {
            generation: lease.metadata.generation,
            timing,
            has_redis: lease.spec.redis.is_some() || self.installation_has_redis,
            redis,
            pods: summarize(&pods, lease.metadata.generation, holder, now),
            unguarded,
            refusal,
        }
    }

    fn tell(
        &self,
        news: &[News],
        lease: &FencedLease,
        pod: Option<&k8s_openapi::api::core::v1::ObjectReference>,
    ) {
        let lease = lease_reference(lease);
        for item in news {
            tracing::info!(namespace = lease.namespace, lease = lease.name, news = ?item, "event");
            self.events.publish(item, &lease, pod);
        }
    }

    fn is_newest(&self, report: &Report, from: &Reporter) -> bool {
        let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        // A pod that begins to speak is the occasion to forget those that never will again.
        if report.sequence == 1 {
            let pods = self.caches.pods.state();
            let uids: HashSet<&str> = pods.iter().filter_map(|pod| pod.metadata.uid.as_deref()).collect();
            order.retain(|uid| uid == from.pod_uid || uids.contains(uid));
        }
        order.accept(&from.pod_uid, &report.run, report.sequence)
    }
}

/// What users should hear of because a condition's reason has turned.
fn turned(old: &FencedLeaseStatus, new: &FencedLeaseStatus) -> Option<News> {
    let of = ConditionType::PodsCurrent;
    let condition = standing(new, of)?;
    if standing(old, of).is_some_and(|old| old.reason == condition.reason) {
        return None;
    }
    let message = condition.message.clone();
    match condition.reason.as_str() {
        "UnguardedPods" => Some(News::UnguardedPods { message }),
        "RolloutMayHang" => Some(News::RolloutMayHang { message }),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
