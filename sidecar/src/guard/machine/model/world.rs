//! Both pods, Redis, and what is on its way between them.

use std::time::Duration;

use fencedlease_core::RenewalOutcome;
use fencedlease_wire::endpoint::RedisStandingKind;
use fencedlease_wire::{Fence, LossReason};

use super::STEP_MS;
use super::judge::Judge;
use super::promises::PROVEN_BEFORE_RELEASE;
use super::server::{Answer, Message, Request, Server, Stage};
use super::site::{Job, Scene, Site};
use super::variant::Variant;
use crate::hold::pod::{AcquireAnswer, Event};

#[derive(Clone, Debug, Hash, PartialEq)]
pub(super) struct World {
    pub(super) now_ms: u64,
    pub(super) sites: [Site; 2],
    pub(super) server: Server,
    pub(super) net: Vec<Message>,
    pub(super) judge: Judge,
    pub(super) faults_left: u8,
}

// === impl World ===

impl World {
    /// Lets something happen in a pod.
    pub(super) fn within(
        &mut self,
        place: usize,
        variant: Variant,
        act: impl FnOnce(&mut Site, &mut Scene<'_>),
    ) {
        let mut scene = Scene {
            now_ms: self.now_ms,
            variant,
            server: &self.server,
            net: &mut self.net,
            judge: &mut self.judge,
        };
        act(&mut self.sites[place], &mut scene);
    }

    pub(super) fn tell(&mut self, place: usize, event: Event, variant: Variant) {
        self.within(place, variant, |site, scene| site.do_first(Job::Tell(event), scene));
    }

    /// Whether the sender of this message can take in a reply.
    pub(super) fn is_heard(&self, message: &Message) -> bool {
        let site = &self.sites[message.site];
        message.awaited
            && message.run == site.run
            && site.sidecar.as_ref().is_some_and(|sidecar| sidecar.frozen.is_none())
    }

    /// Redis carries out a request.
    pub(super) fn carry_out(&mut self, request: Request, variant: Variant) -> Answer {
        let answer = self.server.carry_out(request, self.now_ms, variant);
        match (request, answer) {
            (Request::Acquire { .. }, Answer::Acquired { fence, .. }) => {
                self.judge.gives(fence, self.sites.iter().any(|site| site.alive().is_some()));
            }
            (Request::Release { owner }, Answer::Released { owner: whose }) => {
                self.judge.note(owner != whose, PROVEN_BEFORE_RELEASE);
                for place in 0..self.sites.len() {
                    if self.sites[place].sidecar.as_ref().is_some_and(|sidecar| sidecar.listens) {
                        self.tell(place, Event::ReleaseHeard { published: true }, variant);
                    }
                }
            }
            _ => {}
        }
        answer
    }

    pub(super) fn deliver(&mut self, message: &Message, answer: Answer, variant: Variant) {
        let call = message.call;
        let refused = |reason: LossReason| Event::RenewAnswered {
            call,
            outcome: RenewalOutcome::Failed { reason, message: String::new() },
        };
        let event = match answer {
            Answer::Acquired { owner, fence } => {
                self.judge.hears(owner);
                acquired(call, fence)
            }
            Answer::Held { remaining_ms, highest } => Event::AcquireAnswered {
                call,
                answer: AcquireAnswer::Held {
                    remaining: Some(Duration::from_millis(remaining_ms)),
                    highest_fence: Fence::new(highest).ok(),
                    holder: None,
                },
            },
            Answer::Renewed => Event::RenewAnswered { call, outcome: RenewalOutcome::Confirmed },
            Answer::OtherOwner => refused(LossReason::OtherOwner),
            Answer::KeyGone => refused(LossReason::KeyGone),
            Answer::SequenceLost => refused(LossReason::SequenceLost),
            Answer::Released { .. } | Answer::NotOwner => Event::ReleaseAnswered { call },
        };
        self.tell(message.site, event, variant);
    }

    /// The connection broke, or the call timed out.
    pub(super) fn fail(&mut self, message: &Message, variant: Variant) {
        let call = message.call;
        let event = match message.request {
            Request::Acquire { floor, .. } if variant == Variant::SilenceIsYes => acquired(call, floor + 1),
            Request::Acquire { .. } => Event::AcquireAnswered {
                call,
                answer: AcquireAnswer::Failed { kind: RedisStandingKind::Timeout, message: String::new() },
            },
            Request::Renew { .. } => Event::RenewAnswered {
                call,
                outcome: RenewalOutcome::Failed {
                    reason: LossReason::ConnectionClosed,
                    message: String::new(),
                },
            },
            Request::Release { .. } => Event::ReleaseAnswered { call },
        };
        self.tell(message.site, event, variant);
    }

    /// What nobody waits for any more, and has no effect any more, is forgotten.
    pub(super) fn forget(&mut self) {
        let sites = &self.sites;
        self.net.retain(|message| match message.stage {
            Stage::Answered(_) => message.awaited && message.run == sites[message.site].run,
            Stage::Fresh | Stage::Late => true,
        });
        self.net.sort_by_key(|message| (message.site, message.run, message.call));
    }

    pub(super) fn step_of_time(&mut self, variant: Variant) {
        let before_ms = self.now_ms;
        self.now_ms += STEP_MS;
        self.server.expire(self.now_ms);
        for site in &mut self.sites {
            let passed = site.clock(self.now_ms).since(site.clock(before_ms));
            if variant == Variant::ClockStops && site.sidecar.as_ref().is_some_and(|it| it.frozen.is_some()) {
                site.lag += passed;
            }
            self.judge.has_overslept |= site.has_overslept(self.now_ms);
            if site.guard.is_none() {
                site.start_guard(self.now_ms);
            }
        }
    }
}

fn acquired(call: u64, fence: u64) -> Event {
    let fence = Fence::new(fence).unwrap();
    Event::AcquireAnswered { call, answer: AcquireAnswer::Acquired { fence, previous_holder: None } }
}
