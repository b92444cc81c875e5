//! What the promises are judged by: what really happened, which no part of the machines sees.

use std::collections::BTreeSet;

use super::promises::{DEAD_BEFORE_TAKEOVER, FENCES_GROW, NO_RUN_WITHOUT_LEASE, NOTHING_ASSUMED};
use super::server::{Number, Server};

#[derive(Clone, Debug, Default, Hash, PartialEq)]
pub(super) struct Judge {
    highest_given: u64,
    highest_started: u64,
    issued: BTreeSet<Number>,
    answered: BTreeSet<Number>,
    pub(super) lost: BTreeSet<Number>,
    /// Redis has lost a lease that it had confirmed: what rests on its memory is promised no more.
    pub(super) is_data_lost: bool,
    /// A guard was stopped beyond its kill instant: what rests on its waking is promised no more.
    pub(super) has_overslept: bool,
    pub(super) broken: BTreeSet<&'static str>,
}

// === impl Judge ===

impl Judge {
    /// Remembers that a promise is broken, if it is.
    pub(super) fn note(&mut self, is_broken: bool, promise: &'static str) {
        if is_broken {
            self.broken.insert(promise);
        }
    }

    /// A pod asks for the lease.
    pub(super) fn asks(&mut self, owner: Number) {
        let is_new = self.issued.insert(owner);
        self.note(!is_new, NOTHING_ASSUMED);
    }

    /// Redis's own word that the lease was acquired has arrived.
    pub(super) fn hears(&mut self, owner: Number) {
        self.answered.insert(owner);
    }

    /// A pod is ACTIVE.
    pub(super) fn holds(&mut self, owner: Number) {
        self.note(!self.answered.contains(&owner), NOTHING_ASSUMED);
    }

    /// Redis has given the lease away with this fence, while workloads may be alive.
    pub(super) fn gives(&mut self, fence: u64, alive: bool) {
        self.note(fence <= self.highest_given, FENCES_GROW);
        self.highest_given = self.highest_given.max(fence);
        let is_promised = !self.is_data_lost && !self.has_overslept;
        self.note(alive && is_promised, DEAD_BEFORE_TAKEOVER);
    }

    /// The first instruction of a workload, whose guard has been told the end of its holding already or not.
    pub(super) fn runs(&mut self, owner: Number, fence: u64, was_told_the_end: bool, server: &Server) {
        self.note(!server.is_held_by(owner) && !self.is_data_lost, NO_RUN_WITHOUT_LEASE);
        self.note(was_told_the_end, NO_RUN_WITHOUT_LEASE);
        self.note(fence <= self.highest_started && !self.is_data_lost, FENCES_GROW);
        self.highest_started = self.highest_started.max(fence);
    }
}
