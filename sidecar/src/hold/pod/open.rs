//! From an acquisition to the grants: confirmed, raised at the gates, noted, ACTIVE, granted. What cannot be used is given back.

use fencedlease_core::{BootTime, HoldingState};
use fencedlease_wire::PlannedEnd;

use super::event::{Actions, FileOrder, GuardAction, Mark, Random};
use super::fact::Fact;
use super::held::Step;
use super::{COLD_PATIENCE, FILING_BOUND, Pod};

// === impl Pod ===

impl Pod {
    /// Brings a new holding forward: confirmed, raised, filed, open. One that cannot be used is given back.
    pub(super) fn open_or_abandon(&mut self, now: BootTime, random: &Random, out: &mut Actions) {
        let is_cold = self.is_cold();
        let Some(held) = &mut self.held else { return };
        if held.is_open() {
            if held.late && *held.holding.state() == HoldingState::Active {
                let missing = !self.guards.ever_granted() && now >= held.opened_at + COLD_PATIENCE;
                if missing {
                    held.holding.on_end(PlannedEnd::WorkloadEnded, now);
                } else {
                    self.grant(now, out);
                }
            }
            return;
        }
        if held.holding.is_over() {
            return;
        }
        let unused = if !is_cold && !self.guards.all_fresh() {
            Some("a guard went away before its container could start".to_owned())
        } else if matches!(held.step, Step::Filing { since } if now >= since + FILING_BOUND) {
            Some("note and fence could not be written in time; look at the sidecar's volumes".to_owned())
        } else {
            None
        };
        if let Some(message) = unused {
            held.holding.on_end(PlannedEnd::WorkloadEnded, now);
            held.unused.get_or_insert(message);
            return;
        }
        if *held.holding.state() != HoldingState::Active {
            return;
        }
        if held.step == Step::Acquired {
            if self.config.gates.is_empty() {
                held.step = Step::Raised;
            } else {
                self.begin_raise(now);
            }
        }
        match self.held.as_ref().map(|held| held.step) {
            Some(Step::Raising { .. }) => self.settle_raise(now, random, out),
            Some(Step::Raised) => self.file(now, out),
            Some(Step::Filed) => self.open(now, out),
            _ => {}
        }
    }

    fn file(&mut self, now: BootTime, out: &mut Actions) {
        let Some(held) = &mut self.held else { return };
        held.step = Step::Filing { since: now };
        out.marks.push(Mark::Confirmed(held.holding.confirmed_at()));
        out.files.push(FileOrder::Hold {
            holding: held.holding.id().clone(),
            fence: held.holding.fence(),
            grants: self.guards.secrets(),
        });
    }

    fn open(&mut self, now: BootTime, out: &mut Actions) {
        let Some(held) = &mut self.held else { return };
        held.step = Step::Open;
        held.opened_at = now;
        held.holding.on_open(now);
        self.gate_was_ahead = None;
        self.was_active = true;
        self.last = None;
        self.trouble = None;
        self.guards.forget_grants();
        out.facts.push(Fact::Acquired {
            fence: held.holding.fence(),
            holding: held.holding.id().clone(),
            waited: held.waited,
            previous_holder: held.previous_holder.take(),
            handover: held.handover,
        });
        self.grant(now, out);
    }

    /// Grants to every guard that waits. One that comes later is added to the note.
    fn grant(&mut self, now: BootTime, out: &mut Actions) {
        let Some(held) = &mut self.held else { return };
        let granted = self.guards.grant_fresh(now);
        if granted.is_empty() {
            return;
        }
        if held.late {
            out.files.push(FileOrder::Grants {
                holding: held.holding.id().clone(),
                fence: held.holding.fence(),
                grants: self.guards.secrets(),
            });
        }
        let grant = held.grant(&self.config.resource);
        for connection in granted {
            out.guards.push(GuardAction::Tell { connection, message: grant.clone() });
        }
    }
}
