//! One pod: the shipped machine of its sidecar, the shipped machine of its guard, and a workload that ignores SIGTERM.
//! What lies between them is done here as the drivers do it.

use std::collections::VecDeque;
use std::time::Duration;

use fencedlease_core::{BootTime, Timing};
use fencedlease_wire::ResourceName;
use fencedlease_wire::guard::ToGuard;
use fencedlease_wire::settings::{RestartPolicy, StandbyMode, TimingSettings};

use super::super::Machine;
use super::judge::Judge;
use super::pause::Frozen;
use super::rendered::Rendered;
use super::server::{Message, Number, Server};
use super::variant::Variant;
use super::volume::Volume;
use crate::hold::pod::{Event, LifeId, Pod, PodConfig};
use crate::sys::ReceivedSignal;

/// What both pods' clocks count from.
const START_MS: u64 = 10_000;
const CONTAINER: &str = "app";

pub(super) fn timing() -> Timing {
    let settings = TimingSettings {
        ttl_ms: super::server::TTL_MS,
        renew_interval_ms: Some(500),
        renew_timeout_ms: 500,
        grace_period_ms: 500,
        kill_budget_ms: 500,
        commit_margin_ms: 500,
    };
    Timing::try_new(&settings).unwrap()
}

fn config() -> PodConfig {
    PodConfig {
        resource: ResourceName::new("i", "n", "r").unwrap(),
        timing: timing(),
        max_hold: Duration::from_hours(24),
        max_hold_warning: Duration::from_mins(1),
        containers: vec![CONTAINER.to_owned()],
        init_containers: 0,
        restart_policy: RestartPolicy::Always,
        standby_mode: StandbyMode::Warm,
        termination_grace: Duration::from_secs(4),
        redis: String::new(),
        floor: None,
        gates: Vec::new(),
    }
}

#[derive(Clone, Debug, Hash, PartialEq)]
pub(super) struct Site {
    pub(super) place: usize,
    pub(super) sidecar: Option<Sidecar>,
    /// How many sidecars there were before this one.
    pub(super) run: u8,
    pub(super) guard: Option<Guard>,
    pub(super) volume: Volume,
    pub(super) connections: u64,
    pub(super) attempts: u8,
    pub(super) secrets: u8,
    /// How much its sidecar's clock has missed.
    pub(super) lag: Duration,
}

#[derive(Clone, Debug, Hash, PartialEq)]
pub(super) struct Sidecar {
    pub(super) pod: Rendered<Pod>,
    /// When it means to wake.
    pub(super) planned: BootTime,
    pub(super) frozen: Option<Frozen>,
    pub(super) inbox: Rendered<Vec<Event>>,
    pub(super) listens: bool,
    pub(super) active: Option<Active>,
}

/// What the application's socket answers from.
#[derive(Clone, Debug, Hash, PartialEq)]
pub(super) struct Active {
    pub(super) holding: Number,
    pub(super) deadline: BootTime,
}

#[derive(Clone, Debug, Hash, PartialEq)]
pub(super) struct Guard {
    pub(super) machine: Rendered<Machine>,
    pub(super) first_connection: u64,
    pub(super) connection: Option<u64>,
    pub(super) frozen: Option<Frozen>,
    pub(super) inbox: Rendered<VecDeque<Mail>>,
    /// As what the present sidecar knows it.
    pub(super) life: Option<LifeId>,
    /// The end of which holding has arrived on its socket, read or not.
    pub(super) told_the_end: Option<Number>,
    /// Under which holding its workload was started.
    pub(super) workload: Option<Number>,
    /// SIGKILL was sent; the workload still executes instructions.
    pub(super) dying_since: Option<BootTime>,
}

/// What a guard finds on its socket.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Mail {
    Line(ToGuard),
    Cut,
}

/// What a pod acts in.
pub(super) struct Scene<'a> {
    pub(super) now_ms: u64,
    pub(super) variant: Variant,
    pub(super) server: &'a Server,
    pub(super) net: &'a mut Vec<Message>,
    pub(super) judge: &'a mut Judge,
}

/// Something to be done next, in its order.
pub(super) enum Job {
    /// For the sidecar.
    Tell(Event),
    /// On a connection, for the guard.
    Post(u64, Mail),
    /// Time, for the guard.
    Wake,
}

// === impl Site ===

impl Site {
    /// A pod whose sidecar and guard start now.
    pub(super) fn new(place: usize, scene: &mut Scene<'_>) -> Self {
        let mut site = Self {
            place,
            sidecar: None,
            run: 0,
            guard: None,
            volume: Volume::default(),
            connections: 0,
            attempts: 0,
            secrets: 0,
            lag: Duration::ZERO,
        };
        site.start_sidecar(scene);
        site.start_guard(scene.now_ms);
        site
    }

    /// The first pod's clock is as slow, beside Redis's, as the drift allows.
    pub(super) fn clock(&self, now_ms: u64) -> BootTime {
        let passed = if self.place == 0 { now_ms * 5 / 6 } else { now_ms };
        BootTime::from_millis(START_MS + passed)
    }

    pub(super) fn sidecar_clock(&self, now_ms: u64) -> BootTime {
        self.clock(now_ms).before(self.lag)
    }

    pub(super) fn start_guard(&mut self, now_ms: u64) {
        let machine = Machine::new(CONTAINER.to_owned(), self.clock(now_ms));
        self.guard = Some(Guard {
            machine: Rendered::new(machine),
            first_connection: self.connections + 1,
            connection: None,
            frozen: None,
            inbox: Rendered::new(VecDeque::new()),
            life: None,
            told_the_end: None,
            workload: None,
            dying_since: None,
        });
    }

    pub(super) fn start_sidecar(&mut self, scene: &mut Scene<'_>) {
        let now = self.sidecar_clock(scene.now_ms);
        let (pod, first) = Pod::new(config(), self.volume.interrupted(now), now);
        self.sidecar = Some(Sidecar {
            pod: Rendered::new(pod),
            planned: now,
            frozen: None,
            inbox: Rendered::new(Vec::new()),
            listens: false,
            active: None,
        });
        let mut jobs = VecDeque::new();
        self.carry_out(first, scene, &mut jobs);
        self.work(jobs, scene);
    }

    pub(super) fn kill_sidecar(&mut self, scene: &mut Scene<'_>) {
        let mut jobs = VecDeque::new();
        self.sidecar_ends(&mut jobs);
        self.work(jobs, scene);
    }

    /// The sidecar is gone, and its container not started again yet.
    pub(super) fn sidecar_ends(&mut self, jobs: &mut VecDeque<Job>) {
        self.sidecar = None;
        self.run += 1;
        if let Some(guard) = &mut self.guard {
            guard.life = None;
            jobs.extend(guard.connection.map(|connection| Job::Post(connection, Mail::Cut)));
        }
    }

    /// Whoever ends it, the guard's container ends with it; its connection closes before that is proven.
    pub(super) fn kill_guard(&mut self, scene: &mut Scene<'_>) {
        let mut jobs = VecDeque::new();
        self.guard_exits(scene, &mut jobs);
        self.work(jobs, scene);
    }

    pub(super) fn cut_link(&mut self, scene: &mut Scene<'_>) {
        let Some(connection) = self.guard.as_ref().and_then(|guard| guard.connection) else { return };
        let event = disconnected(connection);
        self.work(VecDeque::from([Job::Post(connection, Mail::Cut), Job::Tell(event)]), scene);
    }

    /// The last process of the container is gone: its pidfd becomes readable.
    pub(super) fn die(&mut self, scene: &mut Scene<'_>) {
        let Some(guard) = self.guard.take() else { return };
        if let Some(life) = guard.life {
            self.work(VecDeque::from([Job::Tell(Event::Died { life })]), scene);
        }
    }

    /// The workload ends by itself.
    pub(super) fn end_workload(&mut self, scene: &mut Scene<'_>) {
        self.change_guard(scene, |machine| machine.child_ended(0));
    }

    /// The pod is deleted: its containers get SIGTERM from outside.
    pub(super) fn terminate_guard(&mut self, scene: &mut Scene<'_>) {
        let signal = ReceivedSignal { number: libc::SIGTERM, from_outside: true };
        self.change_guard(scene, |machine| machine.signal(signal));
    }

    fn change_guard(&mut self, scene: &mut Scene<'_>, change: impl FnOnce(&mut Machine)) {
        let mut jobs = VecDeque::new();
        if let Some(guard) = &mut self.guard {
            change(&mut guard.machine);
            self.act(scene, &mut jobs);
        }
        self.work(jobs, scene);
    }

    pub(super) fn do_first(&mut self, job: Job, scene: &mut Scene<'_>) {
        self.work(VecDeque::from([job]), scene);
    }

    pub(super) fn work(&mut self, mut jobs: VecDeque<Job>, scene: &mut Scene<'_>) {
        while let Some(job) = jobs.pop_front() {
            match job {
                Job::Tell(event) => self.feed_sidecar(event, scene, &mut jobs),
                Job::Post(connection, mail) => self.feed_guard(Some((connection, mail)), scene, &mut jobs),
                Job::Wake => self.feed_guard(None, scene, &mut jobs),
            }
        }
    }

    /// The holding under which a workload executes instructions.
    pub(super) fn alive(&self) -> Option<Number> {
        self.guard.as_ref()?.workload
    }
}

pub(super) fn disconnected(connection: u64) -> Event {
    Event::Disconnected { connection: crate::hold::pod::ConnectionId(connection), reason: String::new() }
}
