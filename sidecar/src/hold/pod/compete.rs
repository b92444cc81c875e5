//! When the pod tries to get the lease, and what it makes of the answer.

use fencedlease_core::backoff::fraction;
use fencedlease_core::standby::Standby;
use fencedlease_core::{BootTime, Holding, HoldingState};
use fencedlease_wire::endpoint::{RedisStanding, RedisStandingKind};
use fencedlease_wire::{EndReason, HoldingId, OwnerToken};

use super::event::{AcquireAnswer, Actions, Random, RedisRequest};
use super::fact::Fact;
use super::held::{Held, Step};
use super::{ATTEMPT_PATIENCE, Attempt, Pod};

// === impl Pod ===

impl Pod {
    /// Whether the pod wants the lease and could use it.
    pub(super) fn is_ready_to_hold(&self) -> bool {
        !self.terminating
            && self.orphans.is_none()
            && (self.guards.all_fresh() || self.is_cold() && !self.guards.all_completed())
    }

    pub(super) fn may_compete(&self) -> bool {
        self.held.is_none() && self.attempt.is_none() && self.is_ready_to_hold()
    }

    pub(super) fn compete(&mut self, now: BootTime, random: &Random, out: &mut Actions) {
        if self.held.is_none() && self.is_ready_to_hold() {
            self.waiting_since.get_or_insert(now);
            if matches!(&self.last, Some(last) if matches!(last.reason, EndReason::Lost(_))) {
                self.last = None;
            }
        } else {
            self.waiting_since = self.waiting_since.filter(|_| self.held.is_some());
        }
        if !self.may_compete() || now < self.standby.next_try() {
            return;
        }
        self.calls += 1;
        let token = OwnerToken::from_random(random.token);
        self.attempt = Some(Attempt {
            call: self.calls,
            token: token.clone(),
            holding: HoldingId::from_random(random.holding),
            sent_at: now,
            hinted: false,
        });
        out.redis.push(RedisRequest::Acquire {
            call: self.calls,
            token,
            floor: self.highest_fence,
            timeout: self.config.timing.renew_timeout(),
        });
    }

    pub(super) fn given_up_at(&self, attempt: &Attempt) -> BootTime {
        attempt.sent_at + self.config.timing.renew_timeout() + ATTEMPT_PATIENCE
    }

    /// An attempt without any outcome must not keep the pod from trying again.
    pub(super) fn give_up_attempt(&mut self, now: BootTime, random: &Random, out: &mut Actions) {
        let overdue = self.attempt.as_ref().is_some_and(|attempt| now >= self.given_up_at(attempt));
        if overdue {
            self.given_up = self.attempt.take();
            self.failed(
                RedisStandingKind::Timeout,
                "an attempt to acquire had no outcome".into(),
                now,
                random,
                out,
            );
        }
    }

    fn failed(
        &mut self,
        kind: RedisStandingKind,
        message: String,
        now: BootTime,
        random: &Random,
        out: &mut Actions,
    ) {
        self.standby.failed(now, random.jitter);
        self.redis = RedisStanding { kind, message: message.clone() };
        self.trouble = Some(message.clone());
        out.facts.push(Fact::AttemptFailed { kind, message });
    }

    pub(super) fn on_acquire(
        &mut self,
        call: u64,
        answer: AcquireAnswer,
        now: BootTime,
        random: &Random,
        out: &mut Actions,
    ) {
        let late = self.given_up.take_if(|attempt| attempt.call == call);
        if let (Some(attempt), AcquireAnswer::Acquired { .. }) = (late, &answer) {
            self.give_back(&attempt.token, true, self.config.timing.renew_timeout(), now, out);
        }
        let Some(attempt) = self.attempt.take_if(|attempt| attempt.call == call) else { return };
        if let AcquireAnswer::Failed { kind, message } = answer {
            return self.failed(kind, message, now, random, out);
        }
        self.redis = RedisStanding { kind: RedisStandingKind::Connected, message: String::new() };
        self.redis_answered_at = Some(now);
        match answer {
            AcquireAnswer::Acquired { fence, previous_holder } => {
                self.highest_fence = self.highest_fence.max(Some(fence));
                self.begin(attempt, fence, previous_holder, now, random);
            }
            AcquireAnswer::Held { remaining, highest_fence, holder } => {
                self.highest_fence = self.highest_fence.max(highest_fence);
                self.standby.held(remaining, now, random.jitter);
                if attempt.hinted {
                    // The answer may be older than the release: it must not put the pod to sleep.
                    self.standby.released(now, random.jitter);
                } else {
                    self.release_heard = None;
                }
                self.trouble = None;
                let message = holder.as_ref().map_or_else(
                    || "the lease is held".to_owned(),
                    |holder| format!("the lease is held by {holder}"),
                );
                self.holder = holder;
                out.facts.push(Fact::HeldByOther { message });
            }
            AcquireAnswer::Failed { .. } => {}
        }
    }

    fn begin(
        &mut self,
        attempt: Attempt,
        fence: fencedlease_wire::Fence,
        previous_holder: Option<String>,
        now: BootTime,
        random: &Random,
    ) {
        let timing = self.config.timing;
        let max_hold =
            self.config.max_hold.saturating_sub(fraction(self.config.max_hold / 10, random.jitter));
        let holding = Holding::acquired(attempt.holding, fence, timing, max_hold, attempt.sent_at, now);
        let mut held = Held {
            holding,
            token: attempt.token,
            step: Step::Acquired,
            raise: None,
            pause: timing.renew_timeout(),
            late: self.is_cold() || self.config.init_containers > 0,
            opened_at: now,
            waited: self.waiting_since.take().map(|since| now.since(since)).unwrap_or_default(),
            handover: self.release_heard.take().map(|at| now.since(at)),
            previous_holder,
            planned_kill: None,
            told: None,
            unused: None,
            warned: false,
            overdue: false,
        };
        if !self.is_ready_to_hold() {
            held.holding.on_end(fencedlease_wire::PlannedEnd::WorkloadEnded, now);
            held.unused = Some("the pod could not use the lease any more when it got it".to_owned());
        }
        self.holder = None;
        self.held = Some(held);
    }

    /// After the end of a holding the pod waits again.
    pub(super) fn start_over(&mut self, held: &Held, now: BootTime) {
        let failed = held.unused.is_some() || matches!(held.holding.state(), HoldingState::Lost(_));
        let mut standby = Standby::new(self.config.timing.ttl(), now);
        if failed {
            // A pod that cannot use what it gets must not take it again and again.
            standby.not_before(now + held.pause);
        }
        self.standby = standby;
        self.release_heard = None;
    }
}
