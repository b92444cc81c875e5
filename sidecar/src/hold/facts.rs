//! One fact, three readers: a log line for people, a metric for dashboards, a report for the operator.

use std::time::Duration;

use fencedlease_core::BootTime;
use fencedlease_wire::endpoint::{self, RedisStandingKind};

use super::metrics::{Metrics, observe};
use super::pod::{Fact, Pace};

/// Tells facts: all of them to metrics and operator, and to the log what does not repeat itself.
#[derive(Debug)]
pub struct Teller {
    metrics: Metrics,
    failures: Pace<RedisStandingKind>,
    raises: Pace<String>,
}

impl Teller {
    /// A teller that counts here.
    pub fn new(metrics: Metrics) -> Self {
        Self { metrics, failures: Pace::new(), raises: Pace::new() }
    }

    /// Logs and counts a fact; gives what the operator is told of it.
    pub fn tell(&mut self, fact: &Fact, at: BootTime, resource: &str) -> Option<endpoint::Fact> {
        if let Some(untold) = self.is_to_be_logged(fact, at) {
            log(fact, untold, at.as_millis(), resource);
        }
        count(fact, &self.metrics);
        report(fact)
    }

    /// Whether it is, and how many of its kind before it were not.
    fn is_to_be_logged(&mut self, fact: &Fact, at: BootTime) -> Option<u64> {
        match fact {
            Fact::AttemptFailed { kind, .. } => self.failures.tell(*kind, at),
            Fact::RaiseFailed { gate, .. } => self.raises.tell(gate.clone(), at),
            _ => Some(0),
        }
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn log(fact: &Fact, untold: u64, at_boottime_ms: u64, resource: &str) {
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
        Fact::GuardRefused { container, message, untold } => {
            let detail = message;
            tracing::warn!(resource, at_boottime_ms, container, detail, untold, "a guard was turned away");
        }
        Fact::HeldByOther { message } => {
            tracing::debug!(resource, at_boottime_ms, state = "WAITING", detail = message, "not acquired");
        }
        Fact::AttemptFailed { message, .. } => {
            let (state, detail) = ("WAITING", message);
            tracing::warn!(resource, at_boottime_ms, state, detail, untold, "not acquired");
        }
        Fact::Acquired { fence, holding, waited, previous_holder, handover } => tracing::info!(
            resource, at_boottime_ms, state = "ACTIVE", fence = fence.get(), %holding, waited_ms = ms(*waited),
            previous_holder = previous_holder.as_deref(), handover_ms = handover.map(ms), "acquired"
        ),
        Fact::Raised { .. } | Fact::RaiseFailed { .. } | Fact::GateAhead { .. } => {
            log_raise(fact, untold, at_boottime_ms, resource);
        }
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

fn log_raise(fact: &Fact, untold: u64, at_boottime_ms: u64, resource: &str) {
    match fact {
        Fact::Raised { gate, fence, took, unsettled } => tracing::info!(
            resource,
            at_boottime_ms,
            state = "WAITING",
            gate,
            fence = fence.get(),
            took_ms = ms(*took),
            unsettled,
            "a gate has stored the fence"
        ),
        Fact::RaiseFailed { gate, fence, message } => {
            let (state, detail, fence) = ("WAITING", message, fence.get());
            tracing::warn!(
                resource,
                at_boottime_ms,
                state,
                gate,
                fence,
                detail,
                untold,
                "not raised at a gate"
            );
        }
        Fact::GateAhead { gate, fence, highest, message } => tracing::error!(
            resource,
            at_boottime_ms,
            state = "WAITING",
            gate,
            fence = fence.get(),
            highest = highest.get(),
            detail = message,
            "a gate is ahead of Redis"
        ),
        _ => {}
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
        Fact::Raised { took, .. } => {
            metrics.raises_stored.inc();
            observe(&metrics.raise, *took);
        }
        Fact::RaiseFailed { .. } => metrics.raises_failed.inc(),
        Fact::GateAhead { .. } => metrics.raises_refused.inc(),
        Fact::HeldByOther { .. } => metrics.acquisitions_held.inc(),
        Fact::AttemptFailed { .. } => metrics.acquisitions_failed.inc(),
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
            if reason.is_about_redis() {
                metrics.renewals_failed.inc();
            }
            observe(&metrics.loss_to_kill, *kill_in);
        }
        Fact::Lost { dead_after: Some(after), .. } => observe(&metrics.loss_to_dead, *after),
        Fact::Lost { dead_after: None, .. } => metrics.kills_overdue.inc(),
        Fact::Released { held, .. } => observe(&metrics.hold, *held),
    }
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
