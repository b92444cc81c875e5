//! One fact, three readers: a log line for people, a metric for dashboards, a report for the operator.

use std::time::Duration;

use fencedlease_core::BootTime;
use fencedlease_wire::{LossReason, endpoint};

use super::metrics::{Metrics, observe};
use super::pod::Fact;

/// Logs and counts a fact; gives what the operator is told of it.
pub fn tell(fact: &Fact, at: BootTime, resource: &str, metrics: &Metrics) -> Option<endpoint::Fact> {
    log(fact, at.as_millis(), resource);
    count(fact, metrics);
    report(fact)
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn log(fact: &Fact, at_boottime_ms: u64, resource: &str) {
    match fact {
        Fact::GuardConnected { container } => {
            tracing::info!(
                resource,
                at_boottime_ms,
                state = "WAITING",
                container,
                "a guard waits for its grant"
            );
        }
        Fact::GuardDisconnected { container, reason } => {
            tracing::info!(resource, at_boottime_ms, container, reason, "a guard's connection ended");
        }
        Fact::GuardRefused { container, message } => {
            tracing::warn!(resource, at_boottime_ms, container, detail = message, "a guard was turned away");
        }
        Fact::NotAcquired { result: "held", message } => {
            tracing::debug!(resource, at_boottime_ms, state = "WAITING", detail = message, "not acquired");
        }
        Fact::NotAcquired { result, message } => {
            tracing::warn!(
                resource,
                at_boottime_ms,
                state = "WAITING",
                result,
                detail = message,
                "not acquired"
            );
        }
        Fact::Acquired { fence, holding, waited, previous_holder, handover } => tracing::info!(
            resource, at_boottime_ms, state = "ACTIVE", fence = fence.get(), %holding, waited_ms = ms(*waited),
            previous_holder = previous_holder.as_deref(), handover_ms = handover.map(ms), "acquired"
        ),
        Fact::Abandoned { fence, message } => {
            tracing::warn!(
                resource,
                at_boottime_ms,
                state = "WAITING",
                fence = fence.get(),
                detail = message,
                "given back unused"
            );
        }
        Fact::Started { container, after } => {
            tracing::info!(
                resource,
                at_boottime_ms,
                state = "ACTIVE",
                container,
                after_ms = ms(*after),
                "the workload runs"
            );
        }
        Fact::Renewed { took, late, remaining } => tracing::debug!(
            resource,
            at_boottime_ms,
            state = "ACTIVE",
            took_ms = ms(*took),
            late_ms = ms(*late),
            remaining_ms = ms(*remaining),
            "renewed"
        ),
        Fact::MaxHoldNear { ends_in } => {
            tracing::warn!(
                resource,
                at_boottime_ms,
                state = "ACTIVE",
                ends_in_ms = ms(*ends_in),
                "maxHold ends the holding soon"
            );
        }
        Fact::Ending { fence, reason, message } => {
            tracing::info!(resource, at_boottime_ms, state = "ACTIVE", fence = fence.get(), %reason, detail = message, "the holding ends");
        }
        Fact::LossNoticed { fence, reason, message, kill_in } => tracing::error!(
            resource, at_boottime_ms, state = "LOST", fence = fence.get(), %reason, detail = message, kill_in_ms = ms(*kill_in),
            "the lease is lost; the workload is being killed"
        ),
        Fact::Lost { fence, reason, dead_after: Some(after), before_deadline_ms, .. } => tracing::warn!(
            resource, at_boottime_ms, state = "LOST", fence = fence.get(), %reason, dead_after_ms = ms(*after),
            before_deadline_ms, "the workload is proven dead"
        ),
        Fact::Lost { fence, reason, dead_after: None, .. } => tracing::error!(
            resource, at_boottime_ms, state = "LOST", fence = fence.get(), %reason,
            "the workload is not proven dead at the deadline; the lease runs out by itself, and only a fence check stops its writes"
        ),
        Fact::Released { fence, reason, held, dead_after, .. } => tracing::info!(
            resource, at_boottime_ms, state = "RELEASED", fence = fence.get(), %reason, held_ms = ms(*held),
            dead_after_ms = ms(*dead_after), "released"
        ),
    }
}

fn count(fact: &Fact, metrics: &Metrics) {
    match fact {
        Fact::GuardConnected { .. }
        | Fact::GuardDisconnected { .. }
        | Fact::GuardRefused { .. }
        | Fact::Abandoned { .. }
        | Fact::Started { .. }
        | Fact::MaxHoldNear { .. }
        | Fact::Ending { .. } => {}
        Fact::NotAcquired { result: "held", .. } => metrics.acquisitions_held.inc(),
        Fact::NotAcquired { .. } => metrics.acquisitions_failed.inc(),
        Fact::Acquired { waited, handover, .. } => {
            metrics.acquired.inc();
            observe(&metrics.standby_wait, *waited);
            if let Some(handover) = handover {
                observe(&metrics.handover_gap, *handover);
            }
        }
        Fact::Renewed { took, late, remaining } => {
            metrics.renewals_confirmed.inc();
            observe(&metrics.renewal_duration, *took);
            observe(&metrics.renewal_lateness, *late);
            observe(&metrics.renewal_remaining, *remaining);
        }
        Fact::LossNoticed { reason, kill_in, .. } => {
            metrics.lost(*reason);
            if is_of_a_renewal(*reason) {
                metrics.renewals_failed.inc();
            }
            observe(&metrics.loss_to_kill, *kill_in);
        }
        Fact::Lost { dead_after: Some(after), .. } => observe(&metrics.loss_to_dead, *after),
        Fact::Lost { dead_after: None, .. } => metrics.kills_overdue.inc(),
        Fact::Released { held, .. } => observe(&metrics.hold, *held),
    }
}

fn is_of_a_renewal(reason: LossReason) -> bool {
    use LossReason::{ConnectionClosed, KeyGone, OtherOwner, RenewalError, RenewalTimeout, SequenceLost};
    matches!(reason, RenewalTimeout | RenewalError | ConnectionClosed | OtherOwner | KeyGone | SequenceLost)
}

fn report(fact: &Fact) -> Option<endpoint::Fact> {
    match fact {
        Fact::Acquired { fence, holding, waited, previous_holder, handover } => {
            Some(endpoint::Fact::Acquired {
                fence: *fence,
                holding: holding.clone(),
                waited_ms: ms(*waited),
                previous_holder: previous_holder.clone(),
                handover_ms: handover.map(ms),
            })
        }
        Fact::Lost { fence, holding, reason, message, dead_after, before_deadline_ms } => {
            Some(endpoint::Fact::Lost {
                fence: *fence,
                holding: holding.clone(),
                reason: *reason,
                message: message.clone(),
                dead_after_ms: dead_after.map(ms),
                before_deadline_ms: *before_deadline_ms,
            })
        }
        Fact::Released { fence, holding, reason, held, dead_after } => Some(endpoint::Fact::Released {
            fence: *fence,
            holding: holding.clone(),
            reason: *reason,
            held_ms: ms(*held),
            dead_after_ms: ms(*dead_after),
        }),
        _ => None,
    }
}
