//! From an acquisition to its end: what the guards are told, and when the lease is given back.

use std::time::Duration;

use fencedlease_core::{BootTime, Holding, HoldingState};
use fencedlease_wire::guard::{ToGuard, bounded};
use fencedlease_wire::lost::LostFlag;
use fencedlease_wire::{EndReason, HoldingId, OwnerToken, PlannedEnd, ResourceName, exit};

use super::event::{Actions, FileOrder, GuardAction, Mark, PodConfig, RedisRequest};
use super::fact::Fact;
use super::guards::Guards;
use super::raise::Raise;
use super::{COLD_PATIENCE, EXIT_PATIENCE, FILING_BOUND, LastEnd, Pod, Releasing};

/// A lease that was acquired, with all that belongs to it.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) holding: Holding,
    pub(super) token: OwnerToken,
    pub(super) step: Step,
    /// The fence on its way to the gates, until all have it.
    pub(super) raise: Option<Raise>,
    /// How long the pod stays away if this could not be used.
    pub(super) pause: Duration,
    /// Guards may come while it lasts: the containers of a cold pod, and those that follow on an init container.
    pub(super) late: bool,
    pub(super) opened_at: BootTime,
    pub(super) waited: Duration,
    pub(super) handover: Option<Duration>,
    pub(super) previous_holder: Option<String>,
    /// When a planned end kills, if something fixed it already.
    pub(super) planned_kill: Option<BootTime>,
    /// What the guards were told last of the end.
    pub(super) told: Option<EndTold>,
    /// Why it is given back before anything started.
    pub(super) unused: Option<String>,
    pub(super) warned: bool,
    pub(super) overdue: bool,
}

/// How far an acquisition has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// To be confirmed.
    Acquired,
    /// Being stored at the gates.
    Raising { since: BootTime },
    /// To be noted next.
    Raised,
    /// Being noted.
    Filing { since: BootTime },
    /// Noted.
    Filed,
    /// ACTIVE for everybody; guards are granted.
    Open,
}

/// What guards are told at an end.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct EndTold {
    pub(super) reason: EndReason,
    pub(super) kill_at: BootTime,
    exit_code: Option<u8>,
    message: String,
}

// === impl Held ===

impl Held {
    pub(super) fn is_open(&self) -> bool {
        self.step == Step::Open
    }

    pub(super) fn grant(&self, resource: &ResourceName) -> ToGuard {
        ToGuard::Grant {
            holding: self.holding.id().clone(),
            fence: self.holding.fence(),
            resource: resource.to_string(),
            term_at_ms: self.holding.term_at().as_millis(),
            kill_at_ms: self.holding.kill_at().as_millis(),
        }
    }

    pub(super) fn extend(&self) -> ToGuard {
        ToGuard::Extend {
            holding: self.holding.id().clone(),
            term_at_ms: self.holding.term_at().as_millis(),
            kill_at_ms: self.holding.kill_at().as_millis(),
        }
    }

    pub(super) fn next_instant(&self, config: &PodConfig, guards: &Guards) -> Option<BootTime> {
        let filing = match self.step {
            Step::Filing { since } => Some(since + FILING_BOUND),
            _ => None,
        };
        let active = self.is_open() && *self.holding.state() == HoldingState::Active;
        let warning = (active && !self.warned).then(|| self.warning_at(config));
        let cold = (active && self.late && !guards.ever_granted()).then(|| self.opened_at + COLD_PATIENCE);
        let overdue = match self.holding.state() {
            HoldingState::Lost(loss) if !self.overdue => Some(loss.deadline),
            _ => None,
        };
        let raise = self.raise.as_ref().filter(|_| !self.holding.is_over()).map(Raise::next_instant);
        let instants = [self.holding.next_instant(), raise, filing, warning, cold, overdue];
        instants.into_iter().flatten().min()
    }

    fn warning_at(&self, config: &PodConfig) -> BootTime {
        self.holding.ends_at().before(config.max_hold_warning)
    }
}

// === impl EndTold ===

impl EndTold {
    pub(super) fn message(&self, holding: &HoldingId) -> ToGuard {
        ToGuard::End {
            holding: holding.clone(),
            reason: self.reason,
            kill_at_ms: self.kill_at.as_millis(),
            exit_code: self.exit_code,
            message: bounded(&self.message),
        }
    }
}

// === impl Pod ===

impl Pod {
    /// Tells the guards that it ends, once, and again if it must be faster.
    pub(super) fn tell_the_end(&mut self, now: BootTime, out: &mut Actions) {
        let planned_kill = now + self.planned_grace();
        let Some(held) = &mut self.held else { return };
        if held.is_open() && !held.warned && *held.holding.state() == HoldingState::Active {
            let warning_at = held.warning_at(&self.config);
            if now >= warning_at {
                held.warned = true;
                out.facts.push(Fact::MaxHoldNear { ends_in: held.holding.ends_at().since(now) });
            }
        }
        let fence = held.holding.fence();
        let end = match held.holding.state() {
            HoldingState::Lost(loss) => EndTold {
                reason: EndReason::Lost(loss.reason),
                kill_at: loss.kill_at,
                exit_code: Some(exit::LOST),
                message: format!("lost fence {fence}: {}, {}", loss.reason, self.config.words_for(loss)),
            },
            HoldingState::Ending { reason, .. } => EndTold {
                reason: EndReason::Planned(*reason),
                kill_at: *held.planned_kill.get_or_insert(planned_kill),
                exit_code: exit_code(*reason),
                message: format!("the holding of fence {fence} ends: {}", in_words(*reason)),
            },
            HoldingState::Confirming | HoldingState::Active | HoldingState::Released { .. } => return,
        };
        let known =
            held.told.as_ref().is_some_and(|told| told.reason == end.reason && told.kill_at <= end.kill_at);
        if known {
            return;
        }
        let first_of_its_kind = held.told.as_ref().is_none_or(|told| told.reason != end.reason);
        let message = end.message(held.holding.id());
        for life in self.guards.lives_mut().filter(|life| life.is_granted()) {
            life.ends = true;
            if let Some(connection) = life.connection {
                out.guards.push(GuardAction::Tell { connection, message: message.clone() });
            }
        }
        held.told = Some(end);
        if first_of_its_kind && held.is_open() {
            self.announce_end(now, out);
        }
    }

    /// What follows the words to the guards: note, files, facts.
    fn announce_end(&mut self, now: BootTime, out: &mut Actions) {
        let Some(held) = &mut self.held else { return };
        let fence = held.holding.fence();
        match held.holding.state() {
            HoldingState::Lost(loss) => {
                let killed = self.guards.granted_containers();
                let message = self.config.words_for(loss);
                out.marks.push(Mark::Lost(held.holding.id().clone()));
                out.files.push(FileOrder::RemoveFence);
                out.files.push(FileOrder::Lost(LostFlag {
                    version: 1,
                    resource: self.config.resource.to_string(),
                    fence,
                    holding: held.holding.id().clone(),
                    reason: loss.reason,
                    message: message.clone(),
                    noticed_at_boottime_ms: loss.noticed_at.as_millis(),
                    deadline_boottime_ms: loss.deadline.as_millis(),
                    killed,
                }));
                out.facts.push(Fact::LossNoticed {
                    fence,
                    reason: loss.reason,
                    message: message.clone(),
                    kill_in: loss.kill_at.since(now),
                });
                self.last = Some(LastEnd { fence, reason: EndReason::Lost(loss.reason), message });
            }
            HoldingState::Ending { reason, .. } => {
                out.facts.push(Fact::Ending {
                    fence,
                    reason: *reason,
                    message: in_words(*reason).to_owned(),
                });
            }
            _ => {}
        }
    }

    /// A loss whose workload is not proven dead at the deadline.
    pub(super) fn note_overdue(&mut self, now: BootTime, out: &mut Actions) {
        let none_granted = self.guards.none_granted();
        let Some(held) = &mut self.held else { return };
        if let HoldingState::Lost(loss) = held.holding.state()
            && !held.overdue
            && now >= loss.deadline
            && !none_granted
        {
            held.overdue = true;
            out.facts.push(Fact::Lost {
                fence: held.holding.fence(),
                holding: held.holding.id().clone(),
                reason: loss.reason,
                message: self.config.words_for(loss),
                dead_after: None,
                before_deadline_ms: None,
            });
        }
    }

    /// What has ended and is dead is given back, by its token; a loss only before its deadline.
    pub(super) fn finish(&mut self, now: BootTime, out: &mut Actions) {
        let Some(held) = &mut self.held else { return };
        let ended = match held.holding.state() {
            HoldingState::Ending { .. } | HoldingState::Lost(_) => true,
            HoldingState::Active => held.is_open() && self.guards.all_completed(),
            HoldingState::Confirming | HoldingState::Released { .. } => false,
        };
        if !ended || !self.guards.none_granted() {
            return;
        }
        held.holding.on_death_proven(now);
        let Some(held) = self.held.take() else { return };
        match held.holding.state().clone() {
            HoldingState::Released { reason, since, dead_at } => {
                self.give_back(&held.token, true, self.config.timing.renew_timeout(), now, out);
                out.marks.push(Mark::Released(held.holding.id().clone()));
                if held.is_open() {
                    self.last = Some(LastEnd {
                        fence: held.holding.fence(),
                        reason: EndReason::Planned(reason),
                        message: in_words(reason).to_owned(),
                    });
                    out.facts.push(Fact::Released {
                        fence: held.holding.fence(),
                        holding: held.holding.id().clone(),
                        reason: EndReason::Planned(reason),
                        held: dead_at.since(held.opened_at),
                        dead_after: dead_at.since(since),
                    });
                }
            }
            HoldingState::Lost(loss) => {
                if now < loss.deadline {
                    let left = loss.deadline.since(now).min(self.config.timing.renew_timeout());
                    self.give_back(&held.token, false, left, now, out);
                }
                if held.is_open() {
                    out.facts.push(Fact::Lost {
                        fence: held.holding.fence(),
                        holding: held.holding.id().clone(),
                        reason: loss.reason,
                        message: self.config.words_for(&loss),
                        dead_after: Some(now.since(loss.noticed_at)),
                        before_deadline_ms: Some(signed_ms(loss.deadline, now)),
                    });
                }
                self.trouble = Some(self.config.words_for(&loss));
            }
            _ => {}
        }
        self.clean_up_after(&held, out);
        self.start_over(&held, now);
    }

    pub(super) fn give_back(
        &mut self,
        token: &OwnerToken,
        clean: bool,
        timeout: Duration,
        now: BootTime,
        out: &mut Actions,
    ) {
        self.calls += 1;
        self.releasing = Some(Releasing { call: self.calls, until: now + timeout + EXIT_PATIENCE });
        out.redis.push(RedisRequest::Release { call: self.calls, token: token.clone(), clean, timeout });
    }

    fn clean_up_after(&mut self, held: &Held, out: &mut Actions) {
        if matches!(held.step, Step::Filing { .. } | Step::Filed | Step::Open) {
            if !matches!(held.holding.state(), HoldingState::Lost(_)) || !held.is_open() {
                out.files.push(FileOrder::RemoveFence);
            }
            out.files.push(FileOrder::RemoveNote);
        }
        if !held.is_open() {
            let message = held.unused.clone().or_else(|| self.trouble.clone()).unwrap_or_default();
            self.trouble = Some(message.clone());
            out.facts.push(Fact::Abandoned { fence: held.holding.fence(), message });
        }
    }
}

fn exit_code(reason: PlannedEnd) -> Option<u8> {
    match reason {
        PlannedEnd::WorkloadEnded => Some(exit::OTHER_CONTAINER_ENDED),
        PlannedEnd::PodDeleted => None,
        _ => Some(exit::PLANNED_END),
    }
}

fn in_words(reason: PlannedEnd) -> &'static str {
    match reason {
        PlannedEnd::MaxHold => "maxHold is over",
        PlannedEnd::StepDown => "the application stepped down",
        PlannedEnd::WorkloadEnded => "a guarded container ended",
        PlannedEnd::PodDeleted => "the pod is being deleted",
        _ => "a planned end",
    }
}

/// From `now` to `instant` in milliseconds; negative if it is past.
pub(super) fn signed_ms(instant: BootTime, now: BootTime) -> i64 {
    let ms = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    ms(instant.since(now)) - ms(now.since(instant))
}
