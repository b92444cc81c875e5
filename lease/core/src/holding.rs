//! The machine of one holding: from an acquisition to LOST or RELEASED, which have no exits.
//!
//! It is driven from outside: tell it what happened (`on_*`, each with the present instant), then ask it
//! what to send ([`Holding::poll_renewal`]) and when to be woken ([`Holding::next_instant`]). Waking it too
//! often is harmless. Every `on_*` first judges the instant that it was given, so nothing that arrives
//! late can undo a loss.

use std::time::Duration;

use fencedlease_wire::{EndReason, Fence, HoldingId, LossReason, PlannedEnd};

use crate::timing::STALL;
use crate::{BootTime, Timing};

/// One lease from its acquisition to its end.
#[derive(Clone, Debug)]
#[must_use]
pub struct Holding {
    id: HoldingId,
    fence: Fence,
    timing: Timing,
    state: HoldingState,
    acquired_at: BootTime,
    confirmed_at: BootTime,
    max_hold: Duration,
    ends_at: BootTime,
    call: CallState,
    calls: u64,
}

/// Where a holding stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum HoldingState {
    /// Acquired so late that a renewal must be confirmed before the workload may start.
    Confirming,
    /// The workload may run.
    Active,
    /// Ended on purpose: still renewed while the workload ends.
    Ending {
        /// Why.
        reason: PlannedEnd,
        /// When that began.
        since: BootTime,
    },
    /// Lost. Final.
    Lost(Loss),
    /// Given back, or about to be: the workload is proven dead and nothing is renewed any more. Final.
    Released {
        /// Why it ended.
        reason: PlannedEnd,
        /// When the end began.
        since: BootTime,
        /// When death was proven.
        dead_at: BootTime,
    },
}

/// How and when a lease was lost.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Loss {
    /// Why.
    pub reason: LossReason,
    /// Why, for people: what was asked, of whom, and what came back.
    pub message: String,
    /// When it was noticed.
    pub noticed_at: BootTime,
    /// When SIGKILL is due: at once if Redis stated the loss, else after the grace, and never later than
    /// the kill instant.
    pub kill_at: BootTime,
    /// The deadline at that moment; nothing moves it any more.
    pub deadline: BootTime,
    /// When the workload was proven dead.
    pub dead_at: Option<BootTime>,
}

/// A renewal that is to be sent now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub struct RenewalCall {
    /// To be told with its outcome. Grows with each call.
    pub call: u64,
    /// How long the whole call may take.
    pub timeout: Duration,
}

/// What became of a renewal.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RenewalOutcome {
    /// Redis confirmed it.
    Confirmed,
    /// Redis refused it, or it failed, or it cannot be told: all of these are a loss.
    Failed {
        /// Why.
        reason: LossReason,
        /// Why, for people.
        message: String,
    },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum CallState {
    None,
    /// Stamped now, to be handed out by `poll_renewal`.
    Due {
        call: u64,
        sent_at: BootTime,
    },
    InFlight {
        call: u64,
        sent_at: BootTime,
    },
}

impl Holding {
    /// A holding whose acquisition was sent at `sent_at` and answered at `now`. `max_hold` counts from `now`, or from
    /// [`Self::on_open`].
    ///
    /// An answer later than `renewInterval` is renewed before the workload may start; one after the term
    /// instant is a loss at once.
    pub fn acquired(
        id: HoldingId,
        fence: Fence,
        timing: Timing,
        max_hold: Duration,
        sent_at: BootTime,
        now: BootTime,
    ) -> Self {
        let late = now > sent_at + timing.renew_interval();
        let mut holding = Self {
            id,
            fence,
            timing,
            state: if late { HoldingState::Confirming } else { HoldingState::Active },
            acquired_at: now,
            confirmed_at: sent_at,
            max_hold,
            ends_at: now + max_hold,
            call: CallState::None,
            calls: 0,
        };
        holding.on_time(now);
        holding
    }

    /// The present instant, and nothing else happened. Notices every loss that time alone causes, and
    /// makes a renewal due.
    pub fn on_time(&mut self, now: BootTime) {
        if self.is_over() {
            return;
        }
        if let CallState::Due { sent_at, .. } | CallState::InFlight { sent_at, .. } = self.call
            && now >= sent_at + self.timing.renew_timeout()
        {
            let message = format!("no answer to a renewal within {:?}", self.timing.renew_timeout());
            return self.lose(now, LossReason::RenewalTimeout, message);
        }
        if now >= self.term_at() {
            let message = "no renewal was confirmed before the term instant".to_owned();
            return self.lose(now, LossReason::RenewalTimeout, message);
        }
        if self.state == HoldingState::Active && now >= self.ends_at {
            self.state = HoldingState::Ending { reason: PlannedEnd::MaxHold, since: now };
        }
        if self.call == CallState::None && now >= self.renewal_due() {
            self.calls += 1;
            self.call = CallState::Due { call: self.calls, sent_at: now };
        }
    }

    /// The watching thread woke up at `now` though it was to wake at `planned`: above `stall` that is a loss.
    pub fn on_wake(&mut self, planned: BootTime, now: BootTime) {
        let late = now.since(planned);
        if late > STALL {
            let message = format!("the thread that watches the lease woke up {} ms late", late.as_millis());
            self.lose(now, LossReason::WatchLate, message);
        }
        self.on_time(now);
    }

    /// The machine was suspended for this long, as far as two clocks can tell.
    pub fn on_suspend(&mut self, gained: Duration, now: BootTime) {
        let message = format!("the machine was suspended for {} ms", gained.as_millis());
        self.lose(now, LossReason::Suspended, message);
    }

    /// A renewal's outcome arrived. One of another call, or after the loss, changes nothing.
    pub fn on_renewal(&mut self, call: u64, outcome: RenewalOutcome, now: BootTime) {
        self.on_time(now);
        let CallState::InFlight { call: expected, sent_at } = self.call else { return };
        if call != expected || self.is_over() {
            return;
        }
        self.call = CallState::None;
        match outcome {
            RenewalOutcome::Confirmed => {
                self.confirmed_at = sent_at;
                if self.state == HoldingState::Confirming {
                    self.state = HoldingState::Active;
                }
                self.on_time(now);
            }
            RenewalOutcome::Failed { reason, message } => self.lose(now, reason, message),
        }
    }

    /// The workload may start only now, since something else had to be done first: `maxHold` counts anew.
    pub fn on_open(&mut self, now: BootTime) {
        self.on_time(now);
        if self.state == HoldingState::Active {
            self.ends_at = now + self.max_hold;
        }
    }

    /// Something else than Redis or the clock ends the lease.
    pub fn on_loss(&mut self, reason: LossReason, message: String, now: BootTime) {
        self.on_time(now);
        self.lose(now, reason, message);
    }

    /// Ends the holding on purpose. Without effect unless it is ACTIVE or being confirmed.
    pub fn on_end(&mut self, reason: PlannedEnd, now: BootTime) {
        self.on_time(now);
        if matches!(self.state, HoldingState::Active | HoldingState::Confirming) {
            self.state = HoldingState::Ending { reason, since: now };
        }
    }

    /// Every process of the workload is proven dead. Ends what is being ended; of a loss it is noted.
    /// An ACTIVE holding whose workload is dead has ended by that.
    pub fn on_death_proven(&mut self, now: BootTime) {
        self.on_end(PlannedEnd::WorkloadEnded, now);
        match &mut self.state {
            HoldingState::Ending { reason, since } => {
                self.state = HoldingState::Released { reason: *reason, since: *since, dead_at: now };
                self.call = CallState::None;
            }
            HoldingState::Lost(loss) => {
                loss.dead_at.get_or_insert(now);
            }
            HoldingState::Confirming | HoldingState::Active | HoldingState::Released { .. } => {}
        }
    }

    /// The renewal to send now, if one is due; to be asked after every `on_*`. Each is given out once.
    #[must_use]
    pub fn poll_renewal(&mut self) -> Option<RenewalCall> {
        let CallState::Due { call, sent_at } = self.call else { return None };
        self.call = CallState::InFlight { call, sent_at };
        Some(RenewalCall { call, timeout: self.timing.renew_timeout() })
    }

    /// When to call [`Self::on_time`] next, if time alone can change anything.
    #[must_use]
    pub fn next_instant(&self) -> Option<BootTime> {
        if self.is_over() {
            return None;
        }
        let renewal = match self.call {
            CallState::None => self.renewal_due(),
            CallState::Due { sent_at, .. } | CallState::InFlight { sent_at, .. } => {
                sent_at + self.timing.renew_timeout()
            }
        };
        let end = if self.state == HoldingState::Active { self.ends_at } else { renewal };
        Some(renewal.min(self.term_at()).min(end))
    }

    /// The holding's public name.
    pub fn id(&self) -> &HoldingId {
        &self.id
    }

    /// Its fence.
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// Its timing.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Where it stands.
    pub fn state(&self) -> &HoldingState {
        &self.state
    }

    /// When the answer to the acquisition arrived.
    pub fn acquired_at(&self) -> BootTime {
        self.acquired_at
    }

    /// `t_s`: just before the last confirmed acquire or renew was handed to the kernel.
    pub fn confirmed_at(&self) -> BootTime {
        self.confirmed_at
    }

    /// When `maxHold` ends it.
    pub fn ends_at(&self) -> BootTime {
        self.ends_at
    }

    /// The last instant at which the holder may believe that it holds.
    pub fn deadline(&self) -> BootTime {
        self.timing.deadline(self.confirmed_at)
    }

    /// When SIGKILL is sent at the latest.
    pub fn kill_at(&self) -> BootTime {
        self.timing.kill_at(self.confirmed_at)
    }

    /// When SIGTERM is sent at the latest.
    pub fn term_at(&self) -> BootTime {
        self.timing.term_at(self.confirmed_at)
    }

    /// What an application may count on at `now`: the time until the kill instant; zero once it is over.
    pub fn remaining(&self, now: BootTime) -> Duration {
        if self.is_over() { Duration::ZERO } else { self.kill_at().since(now) }
    }

    /// Whether a commit that needs `need` may start at `now`: not from the term instant on, nor when less
    /// than `need` or `commitMargin` remains.
    pub fn may_commit(&self, need: Duration, now: BootTime) -> bool {
        self.state == HoldingState::Active
            && now < self.term_at()
            && self.remaining(now) > need.max(self.timing.commit_margin())
    }

    /// Why it ended or is being ended, if it is.
    pub fn end_reason(&self) -> Option<EndReason> {
        match &self.state {
            HoldingState::Confirming | HoldingState::Active => None,
            HoldingState::Ending { reason, .. } | HoldingState::Released { reason, .. } => {
                Some(EndReason::Planned(*reason))
            }
            HoldingState::Lost(loss) => Some(EndReason::Lost(loss.reason)),
        }
    }

    /// Whether it is LOST or RELEASED.
    pub fn is_over(&self) -> bool {
        matches!(self.state, HoldingState::Lost(_) | HoldingState::Released { .. })
    }

    fn renewal_due(&self) -> BootTime {
        self.confirmed_at + self.timing.renew_interval()
    }

    fn lose(&mut self, now: BootTime, reason: LossReason, message: String) {
        if self.is_over() {
            return;
        }
        let grace = if reason.is_stated_by_redis() { Duration::ZERO } else { self.timing.grace_period() };
        self.state = HoldingState::Lost(Loss {
            reason,
            message,
            noticed_at: now,
            kill_at: (now + grace).min(self.kill_at()),
            deadline: self.deadline(),
            dead_at: None,
        });
        self.call = CallState::None;
    }
}

#[cfg(test)]
mod tests;
