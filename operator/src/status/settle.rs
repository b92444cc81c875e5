//! What does a FencedLease's status say now? Phase, counts and conditions of what is known. Pure.

use fencedlease_core::Timing;
use fencedlease_core::duration;
use fencedlease_crds::{FencedLeaseStatus, Phase, ResolvedTiming};
use fencedlease_wire::endpoint::{GatesStanding, RedisStanding, STANDING_INTERVAL_SECONDS};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::conditions::conditions;
use super::pods::PodsSummary;

/// How long a holder may be silent before nobody knows how it is: three reports.
#[expect(clippy::cast_possible_wrap, reason = "a handful of seconds")]
pub const SILENT: SignedDuration = SignedDuration::from_secs(3 * STANDING_INTERVAL_SECONDS as i64);

/// Everything outside the status that its words depend on.
#[derive(Clone, Debug)]
pub struct Facts {
    /// `metadata.generation`.
    pub generation: Option<i64>,
    /// The spec's timing; or why the spec cannot be used.
    pub timing: Result<Timing, String>,
    /// Whether the spec or the installation names a Redis.
    pub has_redis: bool,
    /// What a sidecar just said of Redis.
    pub redis: Option<RedisStanding>,
    /// Whether the spec names gates.
    pub has_gates: bool,
    /// What a sidecar just said of the gates.
    pub gates: Option<GatesStanding>,
    /// Why the key for the gates could not be made.
    pub gate_key_problem: Option<String>,
    /// The pods.
    pub pods: PodsSummary,
    /// Pods that ask for the lease and are not injected.
    pub unguarded: Vec<String>,
    /// What the webhook just refused.
    pub refusal: Option<LastRefusal>,
}

/// A pod that the webhook refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LastRefusal {
    /// Why, with the remedy.
    pub message: String,
    /// When. It may be heard of later, and after a pod that was admitted meanwhile.
    pub at: Timestamp,
}

/// `status` with everything that follows from it and `facts` at `now`.
pub fn settle(status: &FencedLeaseStatus, facts: &Facts, now: Timestamp) -> FencedLeaseStatus {
    let mut status = status.clone();
    if holder_is_over(&status, facts, now) {
        status.holder = None;
    }
    status.observed_generation = facts.generation;
    status.standbys = count(facts.pods.standbys.len());
    status.outdated_pods = count(facts.pods.outdated.len());
    status.timing = facts.timing.as_ref().ok().map(resolved);
    status.phase = Some(phase(&status, facts, now));
    status.conditions = conditions(&status, facts, now);
    status
}

/// Whether the holder has not been heard of for too long.
pub fn is_silent(status: &FencedLeaseStatus, now: Timestamp) -> bool {
    status.holder.as_ref().is_some_and(|holder| {
        let heard = holder.last_report.as_ref().map_or(holder.since.0, |time| time.0);
        heard + SILENT < now
    })
}

/// A holder that is silent and whose pod is gone will not speak again, and its lease has run out: it was not
/// renewed for longer than the longest of ttl and silence.
fn holder_is_over(status: &FencedLeaseStatus, facts: &Facts, now: Timestamp) -> bool {
    let Some(holder) = &status.holder else { return false };
    let heard = holder.last_report.as_ref().map_or(holder.since.0, |time| time.0);
    let ttl = facts.timing.as_ref().ok().and_then(|timing| SignedDuration::try_from(timing.ttl()).ok());
    let over = ttl.is_none_or(|ttl| heard + ttl + SILENT < now);
    over && is_silent(status, now) && !facts.pods.alive.contains(&holder.pod_uid)
}

fn phase(status: &FencedLeaseStatus, facts: &Facts, now: Timestamp) -> Phase {
    if facts.timing.is_err() {
        Phase::Invalid
    } else if status.holder.is_some() {
        if is_silent(status, now) { Phase::Unknown } else { Phase::Held }
    } else if facts.pods.standbys.is_empty() {
        Phase::Idle
    } else {
        Phase::Waiting
    }
}

fn resolved(timing: &Timing) -> ResolvedTiming {
    ResolvedTiming {
        validity: duration::format(timing.validity()),
        renew_interval: duration::format(timing.renew_interval()),
        term_after: duration::format(timing.term_after()),
        kill_after: duration::format(timing.kill_after()),
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
