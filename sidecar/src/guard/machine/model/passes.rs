//! One pass of each driver: what a sidecar and a guard do when they wake, in the order in which the shipped ones do it.

use std::collections::VecDeque;

use fencedlease_core::BootTime;
use fencedlease_core::timing::STALL;
use fencedlease_wire::guard::ToGuard;

use super::acts::number;
use super::site::{Guard, Job, Mail, Scene, Site, timing};
use super::variant::Variant;
use crate::hold::pod::Event;

// === impl Site ===

impl Site {
    /// As the watching thread does: lateness first, then what has arrived, then time.
    pub(super) fn feed_sidecar(&mut self, event: Event, scene: &mut Scene<'_>, jobs: &mut VecDeque<Job>) {
        let now = self.sidecar_clock(scene.now_ms);
        let Some(sidecar) = &mut self.sidecar else { return };
        if sidecar.frozen.is_some() {
            sidecar.inbox.push(event);
            return;
        }
        let planned = sidecar.planned;
        if now.since(planned) > STALL && scene.variant != Variant::GapUnnoticed {
            self.tell(Event::Late { planned }, scene, jobs);
        }
        self.tell(event, scene, jobs);
        self.tell(Event::Time, scene, jobs);
        self.plan(now);
    }

    fn tell(&mut self, event: Event, scene: &mut Scene<'_>, jobs: &mut VecDeque<Job>) {
        let now = self.sidecar_clock(scene.now_ms);
        let random = self.random(scene.variant);
        let Some(sidecar) = &mut self.sidecar else { return };
        let actions = sidecar.pod.on(event, now, &random);
        self.carry_out(actions, scene, jobs);
    }

    /// As a guard's driver does: lateness first, then what has arrived, then the instants.
    pub(super) fn feed_guard(
        &mut self,
        mail: Option<(u64, Mail)>,
        scene: &mut Scene<'_>,
        jobs: &mut VecDeque<Job>,
    ) {
        let now = self.clock(scene.now_ms);
        let Some(guard) = self.guard.as_mut().filter(|guard| guard.dying_since.is_none()) else { return };
        let mut mail = match mail {
            Some((connection, mail)) if guard.connection == Some(connection) => VecDeque::from([mail]),
            Some(_) => return,
            None => VecDeque::new(),
        };
        if let Some(Mail::Line(ToGuard::End { holding, .. })) = mail.front() {
            guard.told_the_end = Some(number(holding.as_str()));
        }
        if guard.frozen.is_some() {
            guard.inbox.append(&mut mail);
            return;
        }
        self.guard_passes(mail, now, scene, jobs);
    }

    pub(super) fn guard_passes(
        &mut self,
        mail: VecDeque<Mail>,
        now: BootTime,
        scene: &mut Scene<'_>,
        jobs: &mut VecDeque<Job>,
    ) {
        let variant = scene.variant;
        let is_deaf = |guard: &Guard| variant == Variant::DeafGuard && guard.machine.run.is_some();
        let Some(guard) = &mut self.guard else { return };
        if !is_deaf(guard) && variant != Variant::GapUnnoticed {
            guard.machine.woke(now);
        }
        self.act(scene, jobs);
        for mail in mail {
            let Some(guard) = &mut self.guard else { return };
            match mail {
                Mail::Line(line) => guard.machine.message(now, altered(line, now, variant)),
                Mail::Cut => {
                    guard.connection = None;
                    guard.machine.disconnected(now);
                }
            }
            if variant == Variant::ActsOnEachLine {
                self.act(scene, jobs);
            }
        }
        self.act(scene, jobs);
        let Some(guard) = &mut self.guard else { return };
        if !is_deaf(guard) {
            guard.machine.settle(now);
        }
        self.act(scene, jobs);
    }

    /// Whether the sidecar means to be awake by now, and can be.
    pub(super) fn is_sidecar_due(&self, now_ms: u64) -> bool {
        let now = self.sidecar_clock(now_ms);
        self.sidecar.as_ref().is_some_and(|sidecar| sidecar.frozen.is_none() && sidecar.planned <= now)
    }

    /// Whether the guard means to be awake by now, and can be.
    pub(super) fn is_guard_due(&self, now_ms: u64, variant: Variant) -> bool {
        let now = self.clock(now_ms);
        self.guard.as_ref().is_some_and(|guard| {
            let is_deaf = variant == Variant::DeafGuard && guard.machine.run.is_some();
            let instant = if is_deaf { None } else { guard.machine.next_instant() };
            guard.frozen.is_none()
                && guard.dying_since.is_none()
                && instant.is_some_and(|instant| instant <= now)
        })
    }
}

fn altered(line: ToGuard, now: BootTime, variant: Variant) -> ToGuard {
    match line {
        ToGuard::Grant { holding, fence, resource, .. } if variant == Variant::GrantFromArrival => {
            let (term_at, kill_at) = (timing().term_at(now), timing().kill_at(now));
            let (term_at_ms, kill_at_ms) = (term_at.as_millis(), kill_at.as_millis());
            ToGuard::Grant { holding, fence, resource, term_at_ms, kill_at_ms }
        }
        line => line,
    }
}
