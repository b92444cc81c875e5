//! What guards say, and what a death means.

use fencedlease_core::{BootTime, HoldingState};
use fencedlease_wire::guard::{FromGuard, ToGuard, bounded};
use fencedlease_wire::lost::LostFlag;
use fencedlease_wire::{EndReason, HoldingId, LossReason, PlannedEnd, exit};

use super::event::{Actions, ConnectionId, FileOrder, GuardAction, Hello, Interrupted, LifeId, Mark, Random};
use super::fact::Fact;
use super::guards::{Arrival, Stage};
use super::held::signed_ms;
use super::{LastEnd, Orphans, Pod};

// === impl Pod ===

impl Pod {
    /// A holding that an earlier run had, and that nobody ended: it is lost, and nothing of it is released.
    pub(super) fn lose_interrupted(&mut self, interrupted: Interrupted, now: BootTime, out: &mut Actions) {
        // A note from the future is none: the clock counts from this boot.
        let confirmed_at = interrupted.confirmed_at.min(now);
        let deadline = self.config.timing.deadline(confirmed_at);
        let message = "the sidecar was restarted while it held the lease".to_owned();
        let fence = interrupted.fence;
        self.highest_fence = self.highest_fence.max(Some(fence));
        out.files.push(FileOrder::RemoveFence);
        if !interrupted.loss_was_noted {
            out.marks.push(Mark::Lost(interrupted.holding.clone()));
            out.files.push(FileOrder::Lost(LostFlag {
                version: 1,
                resource: self.config.resource.to_string(),
                fence,
                holding: interrupted.holding.clone(),
                reason: LossReason::SidecarRestarted,
                message: message.clone(),
                noticed_at_boottime_ms: now.as_millis(),
                deadline_boottime_ms: deadline.as_millis(),
                killed: interrupted.grants.iter().map(|(container, _)| container.clone()).collect(),
            }));
            out.facts.push(Fact::LossNoticed {
                fence,
                reason: LossReason::SidecarRestarted,
                message: message.clone(),
                kill_in: self.config.timing.grace_period(),
            });
        }
        self.guards.await_interrupted(&interrupted, deadline);
        self.last = Some(LastEnd { fence, reason: EndReason::Lost(LossReason::SidecarRestarted), message });
        self.orphans = Some(Orphans { interrupted, noticed_at: now, deadline });
    }

    /// Once no workload of an interrupted holding can be alive, that is told.
    pub(super) fn settle_orphans(&mut self, now: BootTime, out: &mut Actions) {
        if !self.guards.none_orphaned() {
            return;
        }
        let Some(orphans) = self.orphans.take() else { return };
        out.files.push(FileOrder::RemoveNote);
        if orphans.interrupted.loss_was_noted {
            return;
        }
        let in_time = now < orphans.deadline;
        out.facts.push(Fact::Lost {
            fence: orphans.interrupted.fence,
            holding: orphans.interrupted.holding,
            reason: LossReason::SidecarRestarted,
            message: "the sidecar was restarted while it held the lease".to_owned(),
            dead_after: in_time.then(|| now.since(orphans.noticed_at)),
            before_deadline_ms: in_time.then(|| signed_ms(orphans.deadline, now)),
        });
    }

    pub(super) fn greet(
        &mut self,
        connection: ConnectionId,
        hello: &Hello,
        random: &Random,
        now: BootTime,
        out: &mut Actions,
    ) {
        match self.guards.hello(hello, connection, random.secret) {
            Arrival::Fresh(life) => {
                out.guards.push(GuardAction::Adopt { connection, life });
                if let Some((_, life)) = self.guards.by_connection(connection) {
                    let message = ToGuard::Welcome { secret: life.secret.clone() };
                    out.guards.push(GuardAction::Tell { connection, message });
                }
                out.facts.push(Fact::GuardConnected { container: hello.container.clone() });
            }
            Arrival::Back { old } => {
                if let Some(connection) = old {
                    out.guards.push(GuardAction::Close { connection });
                }
                self.welcome_back(connection, hello, now, out);
            }
            Arrival::Orphan(life) => {
                out.guards.push(GuardAction::Adopt { connection, life });
                self.end_orphan(connection, hello.holding.as_ref(), now, out);
            }
            Arrival::Refused(message) => {
                out.guards.push(GuardAction::Close { connection });
                self.tell_refusal(hello, message, now, out);
            }
            Arrival::Unknown(message) => {
                let dismiss = ToGuard::Dismiss { exit_code: exit::CANNOT_GUARD, message: bounded(&message) };
                out.guards.push(GuardAction::Tell { connection, message: dismiss });
                out.guards.push(GuardAction::Close { connection });
                self.tell_refusal(hello, message, now, out);
            }
        }
    }

    /// Anybody with the volume can be turned away as often as he likes, so that is not told each time.
    fn tell_refusal(&mut self, hello: &Hello, message: String, now: BootTime, out: &mut Actions) {
        if let Some(untold) = self.refusals.tell((), now) {
            let container = hello.container.clone();
            out.facts.push(Fact::GuardRefused { container, message, untold });
        }
    }

    /// A guard that we know came back over a new connection.
    fn welcome_back(&mut self, connection: ConnectionId, hello: &Hello, now: BootTime, out: &mut Actions) {
        let Some((container, life)) = self.guards.by_connection(connection) else { return };
        let container = container.to_owned();
        match life.stage {
            Stage::Fresh => out.facts.push(Fact::GuardConnected { container }),
            Stage::Orphan => self.end_orphan(connection, hello.holding.as_ref(), now, out),
            Stage::Granted(_) | Stage::Started => {
                let Some(held) = &mut self.held else { return };
                if let Some(told) = &held.told {
                    let message = told.message(held.holding.id());
                    out.guards.push(GuardAction::Tell { connection, message });
                } else if hello.acted {
                    let message = format!("the guard of container {container} has acted by itself");
                    held.holding.on_loss(LossReason::GuardGone, message, now);
                } else if hello.holding.as_ref() == Some(held.holding.id()) {
                    let message = held.extend();
                    out.guards.push(GuardAction::Tell { connection, message });
                } else {
                    let message = format!("the guard of container {container} came back without its grant");
                    held.holding.on_loss(LossReason::GuardGone, message, now);
                }
            }
        }
    }

    /// A workload of an earlier run's holding: it is ended, and its guard's own kill instant bounds it.
    fn end_orphan(
        &mut self,
        connection: ConnectionId,
        holding: Option<&HoldingId>,
        now: BootTime,
        out: &mut Actions,
    ) {
        let known = self.orphans.as_ref().map(|orphans| &orphans.interrupted.holding);
        let Some(holding) = holding.or(known) else { return };
        let message = ToGuard::End {
            holding: holding.clone(),
            reason: EndReason::Lost(LossReason::SidecarRestarted),
            kill_at_ms: (now + self.config.timing.grace_period()).as_millis(),
            exit_code: Some(exit::LOST),
            message: "lost: the sidecar was restarted while it held the lease".to_owned(),
        };
        out.guards.push(GuardAction::Tell { connection, message });
    }

    /// A line of a guard. What it says of another holding than the present one changes nothing.
    pub(super) fn listen_to(
        &mut self,
        connection: ConnectionId,
        message: FromGuard,
        now: BootTime,
        out: &mut Actions,
    ) {
        let Some((container, life)) = self.guards.by_connection(connection) else { return };
        let container = container.to_owned();
        let Some(held) = &mut self.held else { return };
        let about = match &message {
            FromGuard::Hello { .. } => None,
            FromGuard::Started { holding }
            | FromGuard::StartFailed { holding, .. }
            | FromGuard::Acted { holding, .. }
            | FromGuard::Terminating { holding }
            | FromGuard::Ended { holding, .. } => Some(holding),
        };
        if about != Some(held.holding.id()) || !life.is_granted() {
            return;
        }
        match message {
            FromGuard::Hello { .. } => {}
            FromGuard::Started { .. } => {
                if let Stage::Granted(at) = life.stage {
                    life.stage = Stage::Started;
                    out.facts.push(Fact::Started { container, after: now.since(at) });
                }
            }
            FromGuard::StartFailed { exit_code, .. } | FromGuard::Ended { exit_code, .. } => {
                life.ends = true;
                life.exit_code = Some(exit_code);
            }
            FromGuard::Acted { message, .. } => {
                let message = format!("the guard of container {container} acted by itself: {message}");
                held.holding.on_loss(LossReason::GuardGone, message, now);
            }
            FromGuard::Terminating { .. } => self.end_by_deletion(now),
        }
    }

    /// A container is proven dead.
    pub(super) fn bury(&mut self, life: LifeId, now: BootTime, out: &mut Actions) {
        let Some((stage, completed)) = self.guards.died(life, self.config.restart_policy) else { return };
        out.guards.push(GuardAction::Forget { life });
        let was_granted = matches!(stage, Stage::Granted(_) | Stage::Started);
        if let Some(held) = &mut self.held
            && was_granted
            && !completed
            && *held.holding.state() == HoldingState::Active
        {
            held.holding.on_end(PlannedEnd::WorkloadEnded, now);
        }
    }
}
