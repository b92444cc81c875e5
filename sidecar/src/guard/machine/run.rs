//! A workload that runs, the instants that bound it, and the end that has begun.

use fencedlease_core::BootTime;

use super::super::shown::Shown;
use super::{Action, Exit, Grant, Machine};

/// A workload and what bounds it.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) grant: Grant,
    pub(super) term_at: BootTime,
    pub(super) kill_at: BootTime,
    /// When an instant was last moved.
    pub(super) heard_at: BootTime,
    pub(super) ending: Option<Ending>,
    pub(super) acted: bool,
    pub(super) terminating: bool,
}

/// An end that has begun: SIGTERM was sent.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    pub(super) lost: bool,
    pub(super) kill_at: BootTime,
    pub(super) exit_code: Option<u8>,
    pub(super) message: String,
}

impl Machine {
    /// What the container may see of it. Whatever runs beside the workload may run while it is active, and no longer.
    pub(in crate::guard) fn shown(&self) -> Shown {
        match &self.run {
            None => Shown::Waiting,
            Some(run) if run.ending.is_none() && !self.exiting => Shown::Active,
            Some(_) => Shown::Ending,
        }
    }

    /// Takes back a start that the driver has not carried out; whether there was one. A guard that was stopped finds
    /// grant and end together: the lease may be somebody else's since, and nothing is started only to be killed.
    pub(super) fn drop_start(&mut self) -> bool {
        let before = self.actions.len();
        self.actions.retain(|action| !matches!(action, Action::Start(_)));
        self.actions.len() < before
    }
}

impl Run {
    pub(super) fn is_lost(&self) -> bool {
        self.ending.as_ref().is_some_and(|ending| ending.lost)
    }

    /// How long silence is no loss: until the term instant, and never beyond the kill instant, whatever was
    /// told of the two.
    pub(super) fn silent_until(&self) -> BootTime {
        self.term_at.min(self.kill_at)
    }

    /// The kill instant once an end has begun, else the term instant.
    pub(super) fn next_instant(&self) -> BootTime {
        match &self.ending {
            Some(ending) if ending.lost => ending.kill_at.min(self.kill_at),
            // Silence during a planned end is a loss like any other.
            Some(ending) => ending.kill_at.min(self.silent_until()),
            None => self.silent_until(),
        }
    }

    /// Moves the instants, only forward. LOST is final, so nothing moves then.
    pub(super) fn extend(&mut self, now: BootTime, term_at: BootTime, kill_at: BootTime) {
        if !self.is_lost() {
            self.term_at = self.term_at.max(term_at);
            self.kill_at = self.kill_at.max(kill_at);
            self.heard_at = now;
        }
    }

    /// Begins an end, or sharpens one: the earliest kill instant counts, and a loss outranks a plan.
    pub(super) fn end(&mut self, new: Ending) {
        match &mut self.ending {
            None => self.ending = Some(new),
            Some(ending) => {
                let kill_at = ending.kill_at.min(new.kill_at);
                if new.lost || !ending.lost {
                    *ending = new;
                }
                ending.kill_at = kill_at;
            }
        }
    }

    pub(super) fn exit(&self, own_code: u8) -> Exit {
        match &self.ending {
            Some(ending) => {
                Exit { code: ending.exit_code.unwrap_or(own_code), message: Some(ending.message.clone()) }
            }
            None => Exit { code: own_code, message: None },
        }
    }
}
