//! What does the pod do now? The pure machine of guards, standby and holding: events with their instant
//! and random bits go in, [`Actions`] come out. No I/O, no clock.
//!
//! Every event ends in the same pass over the whole state (`settle`), so that no order of events can skip
//! a step: what has ended is told to the guards, what is dead is released, who may compete competes.

mod compete;
mod event;
mod fact;
mod gates;
mod guards;
mod held;
mod open;
mod pace;
mod raise;
mod speak;
mod view;

use std::time::Duration;

use fencedlease_core::standby::Standby;
use fencedlease_core::{BootTime, Holding, RenewalOutcome};
use fencedlease_wire::endpoint::{GatesStanding, GatesStandingKind, RedisStanding, RedisStandingKind};
use fencedlease_wire::settings::StandbyMode;
use fencedlease_wire::{EndReason, Fence, HoldingId, LossReason, OwnerToken, PlannedEnd};

pub use event::{
    AcquireAnswer, Actions, ConnectionId, Event, FileOrder, GateAnswer, GuardAction, Hello, Interrupted,
    LifeId, Mark, PodConfig, RaiseRequest, Random, RedisRequest,
};
pub use fact::Fact;
use guards::Guards;
use held::{Held, Step};
pub use pace::Pace;
pub use view::{Published, State};

/// Every call has its deadline elsewhere; an attempt without any outcome is given up this much later.
const ATTEMPT_PATIENCE: Duration = Duration::from_secs(1);
/// A granted guard without a connection may come back for this long.
const GUARD_ABSENCE: Duration = Duration::from_secs(1);
/// Note and fence of a new holding must be in their files within this.
const FILING_BOUND: Duration = Duration::from_secs(2);
/// A cold pod's holding without any guard is released after this.
const COLD_PATIENCE: Duration = Duration::from_mins(5);
/// What a planned end leaves of the pod's grace period for release and reports.
const RESERVE: Duration = Duration::from_secs(3);
/// An end of the sidecar waits for its release at most this much longer than the call may take.
const EXIT_PATIENCE: Duration = Duration::from_millis(500);

/// The pod: who guards, whether it waits or holds, and how it ends.
#[derive(Clone, Debug)]
#[must_use]
pub struct Pod {
    config: PodConfig,
    guards: Guards,
    standby: Standby,
    attempt: Option<Attempt>,
    /// An attempt that was given up without an answer, which may still come.
    given_up: Option<Attempt>,
    held: Option<Held>,
    last: Option<LastEnd>,
    orphans: Option<Orphans>,
    releasing: Option<Releasing>,
    /// SIGTERM came.
    terminating: bool,
    /// It has been ACTIVE once.
    was_active: bool,
    listening: bool,
    waiting_since: Option<BootTime>,
    release_heard: Option<BootTime>,
    holder: Option<String>,
    /// What went wrong last.
    trouble: Option<String>,
    redis: RedisStanding,
    redis_answered_at: Option<BootTime>,
    gates: GatesStanding,
    /// Since it was last ACTIVE, a gate refused it with this fence.
    gate_was_ahead: Option<Fence>,
    /// How far gates have led the fence above those of Redis.
    led_by_gates: u64,
    highest_fence: Option<Fence>,
    calls: u64,
    refusals: Pace<()>,
}

/// An attempt to acquire that is under way.
#[derive(Clone, Debug)]
struct Attempt {
    call: u64,
    token: OwnerToken,
    holding: HoldingId,
    sent_at: BootTime,
    /// The lease may have become free since then.
    hinted: bool,
}

/// The end of the last holding, until the pod waits again.
#[derive(Clone, Debug, Eq, PartialEq)]
struct LastEnd {
    fence: Fence,
    reason: EndReason,
    message: String,
}

/// Workloads of a holding that was lost by a restart of the sidecar, until they are dead.
#[derive(Clone, Debug)]
struct Orphans {
    interrupted: Interrupted,
    noticed_at: BootTime,
    deadline: BootTime,
}

#[derive(Clone, Copy, Debug)]
struct Releasing {
    call: u64,
    until: BootTime,
}

// === impl Pod ===

impl Pod {
    /// A pod that starts now. A holding that an earlier run had is lost.
    pub fn new(config: PodConfig, interrupted: Option<Interrupted>, now: BootTime) -> (Self, Actions) {
        let mut pod = Self {
            guards: Guards::new(&config.containers, config.init_containers),
            standby: Standby::new(config.timing.ttl(), now),
            attempt: None,
            given_up: None,
            held: None,
            last: None,
            orphans: None,
            releasing: None,
            terminating: false,
            was_active: interrupted.is_some(),
            listening: false,
            waiting_since: None,
            release_heard: None,
            holder: None,
            trouble: None,
            redis: RedisStanding { kind: RedisStandingKind::NotAsked, message: String::new() },
            redis_answered_at: None,
            gates: GatesStanding { kind: GatesStandingKind::NotAsked, message: String::new() },
            gate_was_ahead: None,
            led_by_gates: 0,
            highest_fence: config.floor,
            calls: 0,
            refusals: Pace::new(),
            config,
        };
        let mut out = Actions::default();
        if let Some(interrupted) = interrupted {
            pod.lose_interrupted(interrupted, now, &mut out);
        }
        pod.settle(now, &Random::default(), false, &mut out);
        (pod, out)
    }

    /// Something happened at `now`.
    pub fn on(&mut self, event: Event, now: BootTime, random: &Random) -> Actions {
        let mut out = Actions::default();
        self.take_in(event, now, random, &mut out);
        self.settle(now, random, true, &mut out);
        out
    }

    /// When time alone can change anything next.
    pub fn next_instant(&self) -> Option<BootTime> {
        let holding = self.held.as_ref().and_then(|held| held.next_instant(&self.config, &self.guards));
        let unheard = self.guards.unheard().map(|(_, since)| since + GUARD_ABSENCE);
        let unheard = unheard.filter(|_| self.held.as_ref().is_some_and(|held| !held.holding.is_over()));
        let attempt = self.may_compete().then(|| self.standby.next_try());
        let silent = self.attempt.as_ref().map(|attempt| self.given_up_at(attempt));
        let orphans = self.guards.awaited_until();
        let exit = self.releasing.filter(|_| self.terminating).map(|releasing| releasing.until);
        [holding, unheard, attempt, silent, orphans, exit].into_iter().flatten().min()
    }

    /// Everything that others may know, as plain data.
    pub fn published(&self) -> Published {
        view::publish(self)
    }

    fn take_in(&mut self, event: Event, now: BootTime, random: &Random, out: &mut Actions) {
        match event {
            Event::Time => {}
            Event::Late { planned } => self.with_holding(|holding| holding.on_wake(planned, now)),
            Event::Suspended { gained } => self.with_holding(|holding| holding.on_suspend(gained, now)),
            Event::Hello { connection, hello } => self.greet(connection, &hello, random, now, out),
            Event::Said { connection, message } => self.listen_to(connection, message, now, out),
            Event::Disconnected { connection, reason } => {
                if let Some(container) = self.guards.disconnected(connection, now) {
                    out.facts.push(Fact::GuardDisconnected { container, reason });
                }
            }
            Event::Died { life } => self.bury(life, now, out),
            Event::AcquireAnswered { call, answer } => self.on_acquire(call, answer, now, random, out),
            Event::RenewAnswered { call, outcome } => self.on_renewal(call, outcome, now, out),
            Event::ReleaseAnswered { call } => {
                self.releasing = self.releasing.filter(|releasing| releasing.call != call);
            }
            Event::ReleaseHeard { published } => {
                if published {
                    self.release_heard = Some(now);
                }
                if let Some(attempt) = &mut self.attempt {
                    attempt.hinted = true;
                }
                self.standby.released(now, random.jitter);
            }
            Event::RaiseAnswered { call, answer } => self.on_raise(call, answer, now, random, out),
            Event::Filed { holding } => {
                if let Some(held) = &mut self.held
                    && *held.holding.id() == holding
                    && matches!(held.step, Step::Filing { .. })
                {
                    held.step = Step::Filed;
                }
            }
            Event::StepDown => {
                if self.held.as_ref().is_some_and(Held::is_open) {
                    self.with_holding(|holding| holding.on_end(PlannedEnd::StepDown, now));
                }
            }
            Event::Terminate => {
                if !self.terminating {
                    self.terminating = true;
                    self.end_by_deletion(now);
                }
            }
        }
    }

    fn with_holding(&mut self, act: impl FnOnce(&mut Holding)) {
        if let Some(held) = &mut self.held {
            act(&mut held.holding);
        }
    }

    /// The pod is being deleted: its grace period runs from now.
    fn end_by_deletion(&mut self, now: BootTime) {
        let kill_at = now + self.planned_grace();
        if let Some(held) = &mut self.held {
            held.holding.on_end(PlannedEnd::PodDeleted, now);
            held.planned_kill = Some(held.planned_kill.map_or(kill_at, |earlier| earlier.min(kill_at)));
        }
    }

    fn planned_grace(&self) -> Duration {
        self.config.termination_grace.saturating_sub(RESERVE).max(self.config.timing.grace_period())
    }

    fn on_renewal(&mut self, call: u64, outcome: RenewalOutcome, now: BootTime, out: &mut Actions) {
        let Some(held) = &mut self.held else { return };
        match &outcome {
            RenewalOutcome::Confirmed => {
                self.redis = RedisStanding { kind: RedisStandingKind::Connected, message: String::new() };
                self.redis_answered_at = Some(now);
            }
            // Redis answered, and well: it is the lease that is gone.
            RenewalOutcome::Failed { reason, .. } if reason.is_stated_by_redis() => {
                self.redis = RedisStanding { kind: RedisStandingKind::Connected, message: String::new() };
                self.redis_answered_at = Some(now);
            }
            RenewalOutcome::Failed { reason, message } => {
                let kind = match reason {
                    LossReason::RenewalTimeout | LossReason::ConnectionClosed => RedisStandingKind::Timeout,
                    _ => RedisStandingKind::Failed,
                };
                self.redis = RedisStanding { kind, message: message.clone() };
            }
        }
        let before = held.holding.confirmed_at();
        let remaining = held.holding.remaining(now);
        held.holding.on_renewal(call, outcome, now);
        let confirmed_at = held.holding.confirmed_at();
        if confirmed_at == before || held.holding.is_over() {
            return;
        }
        out.marks.push(Mark::Confirmed(confirmed_at));
        out.facts.push(Fact::Renewed {
            took: now.since(confirmed_at),
            late: confirmed_at.since(before + self.config.timing.renew_interval()),
            remaining,
        });
        let extend = held.extend();
        for life in self.guards.lives().filter(|life| life.is_granted()) {
            if let Some(connection) = life.connection {
                out.guards.push(GuardAction::Tell { connection, message: extend.clone() });
            }
        }
    }

    /// The pass over everything that follows each event. `compete` is false before the first event.
    fn settle(&mut self, now: BootTime, random: &Random, compete: bool, out: &mut Actions) {
        self.guards.expire_awaited(now);
        self.settle_holding(now, random, out);
        self.settle_orphans(now, out);
        self.give_up_attempt(now, random, out);
        if compete {
            self.compete(now, random, out);
        }
        if let Some(held) = &mut self.held
            && let Some(call) = held.holding.poll_renewal()
        {
            out.redis.push(RedisRequest::Renew {
                call: call.call,
                token: held.token.clone(),
                fence: held.holding.fence(),
                timeout: call.timeout,
            });
        }
        let listen = self.held.is_none() && !self.terminating;
        if listen != self.listening {
            self.listening = listen;
            out.redis.push(RedisRequest::Listen(listen));
        }
        self.releasing = self.releasing.filter(|releasing| now < releasing.until);
        // A loss that is not told by now is told by nobody. Its lease lasts longer than this wait.
        let has_told = self.held.is_none() && self.orphans.is_none();
        out.exit = self.terminating && has_told && self.attempt.is_none() && self.releasing.is_none();
    }

    fn settle_holding(&mut self, now: BootTime, random: &Random, out: &mut Actions) {
        if self.held.is_none() {
            return;
        }
        self.notice_silence(now);
        self.with_holding(|holding| holding.on_time(now));
        self.open_or_abandon(now, random, out);
        self.tell_the_end(now, out);
        self.note_overdue(now, out);
        self.finish(now, out);
    }

    /// A granted guard that cannot be heard and is not dead: whether it still guards is unknown.
    fn notice_silence(&mut self, now: BootTime) {
        if let Some((container, since)) = self.guards.unheard()
            && now >= since + GUARD_ABSENCE
        {
            let message = format!(
                "the guard of container {container} has had no connection for {} ms and is not dead",
                now.since(since).as_millis()
            );
            self.with_holding(|holding| holding.on_loss(LossReason::GuardGone, message, now));
        }
    }

    /// Whether the next holding of this sidecar is a cold one: only its first can be.
    fn is_cold(&self) -> bool {
        self.config.standby_mode == StandbyMode::Cold && !self.was_active
    }
}

#[cfg(test)]
mod tests;
