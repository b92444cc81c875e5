//! What is stopped, how long it meant to sleep, and what it does when it goes on.

use std::collections::VecDeque;
use std::time::Duration;

use fencedlease_core::BootTime;
use fencedlease_core::timing::STALL;

use super::promises::GAP_IS_A_LOSS;
use super::site::{Job, Scene, Site};
use crate::guard::shown::Shown;
use crate::hold::pod::Event;

#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub(super) struct Frozen {
    pub(super) since: BootTime,
    /// How long it meant to sleep.
    pub(super) slack: Duration,
}

// === impl Site ===

impl Site {
    pub(super) fn thaw_sidecar(&mut self, scene: &mut Scene<'_>) {
        let now = self.clock(scene.now_ms);
        let Some(sidecar) = &mut self.sidecar else { return };
        let Some(frozen) = sidecar.frozen.take() else { return };
        let before = sidecar.active.as_ref().map(|active| active.holding);
        let inbox = std::mem::take(&mut *sidecar.inbox);
        let mut jobs: VecDeque<Job> = inbox.into_iter().map(Job::Tell).collect();
        jobs.push_back(Job::Tell(Event::Time));
        self.work(jobs, scene);
        let after = self.sidecar.as_ref().and_then(|sidecar| sidecar.active.as_ref());
        let goes_on = before.is_some() && before == after.map(|active| active.holding);
        scene.judge.note(goes_on && frozen.is_late(now), GAP_IS_A_LOSS);
    }

    pub(super) fn thaw_guard(&mut self, scene: &mut Scene<'_>) {
        let now = self.clock(scene.now_ms);
        let Some(guard) = &mut self.guard else { return };
        let Some(frozen) = guard.frozen.take() else { return };
        let was_active = guard.machine.shown() == Shown::Active;
        let mail = std::mem::take(&mut *guard.inbox);
        let mut jobs = VecDeque::new();
        self.guard_passes(mail, now, scene, &mut jobs);
        self.work(jobs, scene);
        let goes_on = self.guard.as_ref().is_some_and(|guard| guard.machine.shown() == Shown::Active);
        scene.judge.note(was_active && goes_on && frozen.is_late(now), GAP_IS_A_LOSS);
    }

    pub(super) fn freeze_sidecar(&mut self, now_ms: u64) {
        let (now, own) = (self.clock(now_ms), self.sidecar_clock(now_ms));
        if let Some(sidecar) = &mut self.sidecar {
            sidecar.frozen = Some(Frozen { since: now, slack: sidecar.planned.since(own) });
        }
    }

    pub(super) fn freeze_guard(&mut self, now_ms: u64) {
        let now = self.clock(now_ms);
        if let Some(guard) = &mut self.guard {
            let slack = guard.machine.planned.map_or(Duration::MAX, |planned| planned.since(now));
            guard.frozen = Some(Frozen { since: now, slack });
        }
    }

    /// Whether its guard is stopped and should have killed, and noticed it, by now.
    pub(super) fn has_overslept(&self, now_ms: u64) -> bool {
        let now = self.clock(now_ms);
        self.guard.as_ref().is_some_and(|guard| {
            let kill_at = guard.machine.run.as_ref().map(|run| run.kill_at);
            guard.frozen.is_some()
                && guard.dying_since.is_none()
                && kill_at.is_some_and(|kill_at| now > kill_at + STALL)
        })
    }
}

// === impl Frozen ===

impl Frozen {
    /// Whether it wakes more than a stall later than it meant to.
    fn is_late(&self, now: BootTime) -> bool {
        now.since(self.since) > self.slack.saturating_add(STALL)
    }
}
