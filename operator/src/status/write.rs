//! Who writes the status? Whichever replica comes first: every write bears the resourceVersion that it was
//! made from, nothing is written that changes nothing, and what came in between is folded in again.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use fencedlease_crds::{ConditionType, FencedLease, FencedLeaseStatus};
use fencedlease_wire::endpoint::{GatesStanding, RedisStanding, Report};
use k8s_openapi::jiff::Timestamp;
use kube::{Api, Client, ResourceExt as _};

use super::conditions::standing;
use super::fold::{Folded, Reporter, fold};
use super::order::Order;
use super::pods::{facts, summarize};
use super::settle::{Facts, LastRefusal, settle};
use crate::admit::lease::resolve;
use crate::cache::Caches;
use crate::events::{Events, News, lease_reference, pod_reference};
use crate::gate_keys::GateKeys;
use crate::unguarded::Unguarded;

/// How often another writer may come first.
const MOST_CONFLICTS: usize = 5;

/// What keeps the statuses of all FencedLeases.
pub struct Statuses {
    client: Client,
    caches: Caches,
    events: Events,
    unguarded: Unguarded,
    gate_keys: Arc<GateKeys>,
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
    gates: Option<GatesStanding>,
    refusal: Option<LastRefusal>,
}

impl Statuses {
    /// Statuses written by `client` from what `caches` and reports say.
    pub fn new(
        client: Client,
        caches: Caches,
        events: Events,
        gate_keys: Arc<GateKeys>,
        installation_has_redis: bool,
    ) -> Self {
        let unguarded = Unguarded::new(client.clone());
        let order = Mutex::default();
        Self { client, caches, events, unguarded, gate_keys, order, installation_has_redis }
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
            let Folded { status, news, redis, gates } = folded;
            Change { status, news, redis, gates, refusal: None }
        })
        .await
    }

    /// Takes a refusal by the webhook in, which was given at that time.
    pub async fn refused(
        &self,
        lease: Arc<FencedLease>,
        message: &str,
        at: Timestamp,
    ) -> Result<(), WriteError> {
        self.change(lease, None, |status, _| Change {
            status: status.clone(),
            news: vec![News::Refused { message: message.to_owned() }],
            refusal: Some(LastRefusal { message: message.to_owned(), at }),
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
            let mut change = change(&old, now);
            let facts = self.facts(&lease, &mut change, unguarded.clone(), now);
            let status = settle(&change.status, &facts, now);
            let mut news = change.news;
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
        change: &mut Change,
        unguarded: Vec<String>,
        now: Timestamp,
    ) -> Facts {
        let (namespace, name) = (lease.namespace().unwrap_or_default(), lease.name_any());
        let pods: Vec<_> = self.caches.pods_of(&namespace, &name).iter().map(|pod| facts(pod)).collect();
        let holder = change.status.holder.as_ref().map(|holder| holder.pod_uid.as_str());
        let timing = resolve(&lease.spec)
            .map(|resolved| resolved.timing)
            .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
        Facts {
            generation: lease.metadata.generation,
            timing,
            has_redis: lease.spec.redis.is_some() || self.installation_has_redis,
            redis: change.redis.take(),
            has_gates: !lease.spec.gates.is_empty(),
            gates: change.gates.take(),
            gate_key_problem: self.gate_keys.problem_of(lease),
            pods: summarize(&pods, lease.metadata.generation, holder, now),
            unguarded,
            refusal: change.refusal.take(),
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

/// What users should hear of because conditions' reasons have turned.
fn turned(old: &FencedLeaseStatus, new: &FencedLeaseStatus) -> impl Iterator<Item = News> {
    [ConditionType::GatesReady, ConditionType::PodsCurrent].into_iter().filter_map(|of| turn(old, new, of))
}

fn turn(old: &FencedLeaseStatus, new: &FencedLeaseStatus, of: ConditionType) -> Option<News> {
    let condition = standing(new, of)?;
    if standing(old, of).is_some_and(|old| old.reason == condition.reason) {
        return None;
    }
    let message = condition.message.clone();
    match condition.reason.as_str() {
        "GateUnreachable" => Some(News::GateUnreachable { message }),
        "GateAhead" => Some(News::GateAhead { message }),
        "GateKeyMissing" => Some(News::GateKeyMissing { message }),
        "UnguardedPods" => Some(News::UnguardedPods { message }),
        "RolloutMayHang" => Some(News::RolloutMayHang { message }),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
