//! What does a report change? A pure function: the greater fence wins, and what ended with a fence stays ended.

use fencedlease_crds::{FencedLeaseStatus, GuardKind, Holder, LastLoss, Workload};
use fencedlease_wire::endpoint::{
    Fact, GatesStanding, GatesStandingKind, RedisStanding, RedisStandingKind, Report, Standing,
};
use fencedlease_wire::{Fence, HoldingId};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use crate::events::News;

/// How old the written sign of life may be before a heartbeat alone is written again: with reports every ten
/// seconds that makes one write in twenty.
pub const HEARTBEAT: SignedDuration = SignedDuration::from_secs(15);

/// The pod that a report speaks of, as the token and the cache tell.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reporter {
    /// The pod's uid.
    pub pod_uid: String,
    /// The workload that it belongs to.
    pub workload: Option<Workload>,
}

/// What came of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Folded {
    /// The status with it.
    pub status: FencedLeaseStatus,
    /// What users should hear of.
    pub news: Vec<News>,
    /// How Redis stands, where this pod's word counts for the lease.
    pub redis: Option<RedisStanding>,
    /// How the gates stand, where this pod's word counts for the lease.
    pub gates: Option<GatesStanding>,
}

/// Takes `report` into `status`.
pub fn fold(status: &FencedLeaseStatus, report: &Report, from: &Reporter, now: Timestamp) -> Folded {
    let mut folded = Folded { status: status.clone(), news: Vec::new(), redis: None, gates: None };
    match &report.fact {
        Fact::Acquired { fence, holding, waited_ms, previous_holder, handover_ms } => {
            let previous_fence = status.fence;
            if folded.status.acquired(*fence, holding, report, from, now) {
                folded.news.push(News::Acquired {
                    fence: *fence,
                    waited_ms: *waited_ms,
                    previous_holder: previous_holder.clone(),
                    previous_fence,
                });
                if let Some((milliseconds, from)) = handover_ms.zip(previous_fence) {
                    folded.news.push(News::HandedOver { from, to: *fence, milliseconds });
                }
            }
            if status_is_of(&folded.status, from) {
                folded.redis = Some(connected());
                // A pod that knows of the gates in the spec is ACTIVE only once each of them has stored its fence.
                if status.observed_generation == Some(report.lease_generation) {
                    folded.gates = Some(raised());
                }
            }
        }
        Fact::Lost { fence, reason, message, dead_after_ms, before_deadline_ms, .. } => {
            let loss = LastLoss {
                time: Time(now),
                pod_name: report.pod_name.clone(),
                fence: number(*fence),
                reason: reason.as_str().to_owned(),
                message: message.clone(),
                dead_after_milliseconds: dead_after_ms.and_then(|ms| i64::try_from(ms).ok()),
            };
            if folded.status.lost(loss) {
                folded.news.push(News::Lost {
                    fence: *fence,
                    reason: *reason,
                    message: message.clone(),
                    dead_after_ms: *dead_after_ms,
                    before_deadline_ms: *before_deadline_ms,
                });
            }
            if dead_after_ms.is_some() { folded.status.ended(*fence) } else { folded.status.dying(*fence) }
        }
        Fact::Released { fence, reason, held_ms, dead_after_ms, .. } => {
            // The next holder may be heard of first: it needs milliseconds.
            let overtaken = folded.status.fence.is_some_and(|known| known > number(*fence));
            let held = holds(&folded.status, *fence);
            folded.status.ended(*fence);
            if held || overtaken {
                folded.news.push(News::Released {
                    fence: *fence,
                    reason: *reason,
                    held_ms: *held_ms,
                    dead_after_ms: *dead_after_ms,
                });
            }
        }
        Fact::Standing { standing, highest_fence, redis, gates } => {
            let has_holder = folded.status.holder.is_some();
            folded.status.stands(standing, report, from, now);
            folded.status.knows(*highest_fence);
            // While there is a holder its word alone counts: a standby's trouble does not stop the work.
            let counts = !has_holder || status_is_of(&folded.status, from);
            if counts && redis.kind != RedisStandingKind::NotAsked {
                folded.redis = Some(redis.clone());
            }
            let asked = gates.as_ref().filter(|gates| gates.kind != GatesStandingKind::NotAsked);
            folded.gates = asked.filter(|_| counts).cloned();
        }
        Fact::Gone => folded.status.vacated_by(from),
    }
    folded
}

trait Fold {
    fn acquired(
        &mut self,
        fence: Fence,
        holding: &HoldingId,
        report: &Report,
        from: &Reporter,
        now: Timestamp,
    ) -> bool;
    fn lost(&mut self, loss: LastLoss) -> bool;
    fn ended(&mut self, fence: Fence);
    fn dying(&mut self, fence: Fence);
    fn stands(&mut self, standing: &Standing, report: &Report, from: &Reporter, now: Timestamp);
    fn vacated_by(&mut self, from: &Reporter);
    fn knows(&mut self, fence: Option<Fence>);
}

// === impl FencedLeaseStatus ===

impl Fold for FencedLeaseStatus {
    /// Whether this is a holding that was not known.
    fn acquired(
        &mut self,
        fence: Fence,
        holding: &HoldingId,
        report: &Report,
        from: &Reporter,
        now: Timestamp,
    ) -> bool {
        if self.fence.is_some_and(|known| number(fence) <= known) {
            return false;
        }
        self.fence = Some(number(fence));
        self.knows(Some(fence));
        self.transitions += 1;
        self.holder = Some(Holder {
            pod_name: report.pod_name.clone(),
            pod_uid: from.pod_uid.clone(),
            node_name: Some(report.node_name.clone()).filter(|name| !name.is_empty()),
            workload: from.workload.clone(),
            holding_id: holding.as_str().to_owned(),
            guard: GuardKind::Entrypoint,
            since: Time(now),
            last_report: Some(Time(now)),
            kill_pending: false,
        });
        true
    }

    /// Whether this says something new: another loss, or the proof of death that was missing.
    fn lost(&mut self, loss: LastLoss) -> bool {
        self.knows(u64::try_from(loss.fence).ok().and_then(|fence| Fence::new(fence).ok()));
        let Some(known) = self.last_loss.as_mut().filter(|known| known.fence >= loss.fence) else {
            self.last_loss = Some(loss);
            return true;
        };
        if known.fence > loss.fence {
            return false;
        }
        let proven = known.dead_after_milliseconds.is_none() && loss.dead_after_milliseconds.is_some();
        if proven {
            known.dead_after_milliseconds = loss.dead_after_milliseconds;
        }
        proven
    }

    fn ended(&mut self, fence: Fence) {
        if self.fence.is_none_or(|known| known <= number(fence)) {
            self.fence = Some(number(fence));
            self.holder = None;
        }
        self.knows(Some(fence));
    }

    fn dying(&mut self, fence: Fence) {
        if holds(self, fence)
            && let Some(holder) = &mut self.holder
        {
            holder.kill_pending = true;
        }
    }

    fn stands(&mut self, standing: &Standing, report: &Report, from: &Reporter, now: Timestamp) {
        match standing {
            Standing::Holding { fence, holding } => {
                // The report of the acquisition may have been lost.
                self.acquired(*fence, holding, report, from, now);
                if let Some(holder) = self.holder.as_mut().filter(|holder| holder.pod_uid == from.pod_uid) {
                    let old = holder.last_report.as_ref().map_or(holder.since.0, |time| time.0);
                    if old + HEARTBEAT <= now {
                        holder.last_report = Some(Time(now));
                    }
                }
            }
            Standing::Killing { fence } => self.dying(*fence),
            Standing::Waiting | Standing::Ended => self.vacated_by(from),
        }
    }

    /// The pod itself says that it does not hold: how its holding ended was not heard.
    fn vacated_by(&mut self, from: &Reporter) {
        if status_is_of(self, from) {
            self.holder = None;
        }
    }

    fn knows(&mut self, fence: Option<Fence>) {
        self.highest_fence = self.highest_fence.max(fence.map(number));
    }
}

fn status_is_of(status: &FencedLeaseStatus, from: &Reporter) -> bool {
    status.holder.as_ref().is_some_and(|holder| holder.pod_uid == from.pod_uid)
}

fn holds(status: &FencedLeaseStatus, fence: Fence) -> bool {
    status.holder.is_some() && status.fence == Some(number(fence))
}

fn connected() -> RedisStanding {
    RedisStanding { kind: RedisStandingKind::Connected, message: String::new() }
}

fn raised() -> GatesStanding {
    GatesStanding { kind: GatesStandingKind::Raised, message: String::new() }
}

/// A fence has at most 15 digits, so it always fits.
fn number(fence: Fence) -> i64 {
    i64::try_from(fence.get()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
