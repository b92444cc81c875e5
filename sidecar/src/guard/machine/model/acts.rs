//! What the two machines of a pod want done, and how it is done.

use std::collections::VecDeque;
use std::time::Duration;

use fencedlease_core::BootTime;
use fencedlease_wire::guard::{FromGuard, ToGuard};
use fencedlease_wire::{Fence, OwnerToken};

use super::super::Action;
use super::promises::PROVEN_BEFORE_RELEASE;
use super::server::{Message, Number, Request, Stage};
use super::site::{Active, Job, Mail, Scene, Site, disconnected, timing};
use super::variant::Variant;
use crate::hold::pod::{Actions, ConnectionId, Event, GuardAction, Hello, Mark, Random, RedisRequest, State};

/// How long the watching thread sleeps at most.
const HEARTBEAT: Duration = Duration::from_secs(1);

// === impl Site ===

impl Site {
    /// The bits for one event: the same ones until something was made of them.
    pub(super) fn random(&self, variant: Variant) -> Random {
        let next = (Number::try_from(self.place).unwrap() << 8) | Number::from(self.attempts + 1);
        let mut random = Random::default();
        random.token[..2].copy_from_slice(&owner_of(next, variant).to_be_bytes());
        random.holding[..2].copy_from_slice(&next.to_be_bytes());
        random.secret[0] = self.secrets + 1;
        random
    }

    pub(super) fn carry_out(&mut self, actions: Actions, scene: &mut Scene<'_>, jobs: &mut VecDeque<Job>) {
        for mark in &actions.marks {
            self.volume.mark(mark);
            if let Mark::Lost(holding) = mark {
                scene.judge.lost.insert(number(holding.as_str()));
            }
        }
        for action in actions.guards {
            match action {
                GuardAction::Tell { connection, message } => {
                    self.secrets += u8::from(matches!(message, ToGuard::Welcome { .. }));
                    jobs.push_back(Job::Post(connection.0, Mail::Line(message)));
                }
                GuardAction::Adopt { connection, life } => {
                    match self.guard.as_mut().filter(|guard| connection.0 >= guard.first_connection) {
                        Some(guard) => guard.life = Some(life),
                        // The pidfd of what is dead is readable at once.
                        None => jobs.push_back(Job::Tell(Event::Died { life })),
                    }
                }
                GuardAction::Close { connection } => jobs.push_back(Job::Post(connection.0, Mail::Cut)),
                GuardAction::Forget { .. } => {}
            }
        }
        for request in actions.redis {
            self.ask(&request, scene);
        }
        for order in actions.files {
            if let Some(holding) = self.volume.write(order) {
                jobs.push_back(Job::Tell(Event::Filed { holding }));
            }
        }
        self.publish(scene);
        if actions.exit {
            self.sidecar_ends(jobs);
        }
    }

    fn ask(&mut self, request: &RedisRequest, scene: &mut Scene<'_>) {
        let (call, request) = match request {
            RedisRequest::Acquire { call, token, floor, .. } => {
                let owner = owner(token);
                self.attempts += 1;
                scene.judge.asks(owner);
                (*call, Request::Acquire { owner, floor: floor.map_or(0, Fence::get) })
            }
            RedisRequest::Renew { call, token, fence, .. } => {
                (*call, Request::Renew { owner: owner(token), fence: fence.get() })
            }
            RedisRequest::Release { call, token, .. } => {
                let owner = owner(token);
                let is_alive = self.alive().is_some_and(|holding| owner_of(holding, scene.variant) == owner);
                scene.judge.note(is_alive, PROVEN_BEFORE_RELEASE);
                (*call, Request::Release { owner })
            }
            RedisRequest::Listen(wanted) => {
                if let Some(sidecar) = &mut self.sidecar {
                    sidecar.listens = *wanted;
                }
                return;
            }
        };
        let (site, run) = (self.place, self.run);
        scene.net.push(Message { site, run, call, request, stage: Stage::Fresh, awaited: true });
    }

    fn publish(&mut self, scene: &mut Scene<'_>) {
        let Some(sidecar) = &mut self.sidecar else { return };
        sidecar.active = match sidecar.pod.published().state {
            State::Active { holding, confirmed_at, .. } => {
                let holding = number(holding.as_str());
                scene.judge.holds(owner_of(holding, scene.variant));
                Some(Active { holding, deadline: timing().deadline(confirmed_at) })
            }
            _ => None,
        };
    }

    pub(super) fn plan(&mut self, now: BootTime) {
        if let Some(sidecar) = &mut self.sidecar {
            let heartbeat = now + HEARTBEAT;
            sidecar.planned = sidecar.pod.next_instant().map_or(heartbeat, |next| next.min(heartbeat));
        }
    }

    pub(super) fn act(&mut self, scene: &mut Scene<'_>, jobs: &mut VecDeque<Job>) {
        let now = self.clock(scene.now_ms);
        loop {
            let is_there = self.sidecar.is_some();
            let Some(guard) = self.guard.as_mut().filter(|guard| guard.dying_since.is_none()) else { return };
            let Some(action) = guard.machine.poll_action() else { return };
            match action {
                Action::Connect if is_there => {
                    self.connections += 1;
                    guard.connection = Some(self.connections);
                    guard.machine.connected();
                }
                Action::Connect => guard.machine.disconnected(now),
                Action::Send(line) => {
                    if let Some(connection) = guard.connection {
                        jobs.push_back(Job::Tell(heard(connection, line)));
                    }
                }
                Action::Start(grant) => {
                    let holding = number(grant.holding.as_str());
                    guard.workload = Some(holding);
                    let owner = owner_of(holding, scene.variant);
                    let was_told_the_end = guard.told_the_end == Some(holding);
                    scene.judge.runs(owner, grant.fence.get(), was_told_the_end, scene.server);
                    guard.machine.started();
                }
                Action::Signal(_) | Action::Note(_) => {}
                Action::Exit(_) => self.guard_exits(scene, jobs),
            }
        }
    }

    pub(super) fn guard_exits(&mut self, scene: &mut Scene<'_>, jobs: &mut VecDeque<Job>) {
        let now = self.clock(scene.now_ms);
        let Some(guard) = &mut self.guard else { return };
        guard.dying_since = Some(now);
        if let Some(connection) = guard.connection.take() {
            jobs.push_back(Job::Tell(disconnected(connection)));
        }
        if let Some(life) = guard.life.filter(|_| scene.variant == Variant::EofIsDeath) {
            jobs.push_back(Job::Tell(Event::Died { life }));
        }
    }
}

fn heard(connection: u64, line: FromGuard) -> Event {
    let connection = ConnectionId(connection);
    match line {
        FromGuard::Hello { container, secret, holding, acted } => {
            Event::Hello { connection, hello: Hello { container, secret, holding, acted } }
        }
        message => Event::Said { connection, message },
    }
}

/// What the token of this holding was made of.
pub(super) fn owner_of(holding: Number, variant: Variant) -> Number {
    if variant == Variant::OneToken { holding & 0xff00 } else { holding }
}

fn owner(token: &OwnerToken) -> Number {
    number(token.as_str())
}

pub(super) fn number(text: &str) -> Number {
    Number::from_str_radix(&text[..4], 16).unwrap()
}
