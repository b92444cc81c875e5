//! Every order in which requests, replies, deaths, pauses, kills and time can happen, for two pods that compete: the
//! shipped machine of the sidecar ([`Pod`](crate::hold::pod::Pod), with its `Holding` and `Standby`) and the shipped
//! machine of the guard, with a Redis and a network around them.
//!
//! Time goes in steps of a `stall`; the first pod's clock is as slow beside Redis's as the drift allows. What happens
//! by itself happens in every order; what goes wrong is bounded in number ([`Scope`]), not in place or time.
//! The promises, by their numbers in `docs/safety.md`, are judged on what really happened. Each mistake in the code
//! around the machines must turn its own promise red.

mod acts;
mod judge;
mod passes;
mod pause;
mod promises;
mod rendered;
mod server;
mod site;
mod tests;
mod variant;
mod volume;
mod world;

use std::time::Duration;

use stateright::{Model, Property};

use self::judge::Judge;
use self::promises::{is_broken, occasions, promises};
use self::server::{Message, Server, Stage};
use self::site::{Job, Scene, Site};
use self::variant::Variant;
use self::world::World;
use crate::hold::pod::Event;

/// One step of time: a `stall`, so that whoever wakes with the next step is as late as may be.
const STEP_MS: u64 = 500;

/// How much is tried.
#[derive(Clone, Copy, Debug)]
struct Scope {
    until_ms: u64,
    /// How many faults one history has.
    faults: u8,
    /// Which faults there are.
    which: fn(Fault) -> bool,
}

struct Pair {
    variant: Variant,
    scope: Scope,
}

/// What can happen next; the numbers are of pods, or of messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    TimePasses,
    WakeSidecar(usize),
    WakeGuard(usize),
    /// A request is carried out, and its reply arrives.
    Serve(usize),
    /// A request that was held up is carried out.
    CarryOut(usize),
    /// A reply that was held up arrives.
    Deliver(usize),
    /// The sender is told that its call failed, which tells nothing of what became of it.
    Fail(usize),
    Die(usize),
    RestartSidecar(usize),
    ThawSidecar(usize),
    ThawGuard(usize),
    Fault(Fault),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fault {
    HoldRequest(usize),
    HoldReply(usize),
    KillSidecar(usize),
    FreezeSidecar(usize),
    KillGuard(usize),
    FreezeGuard(usize),
    /// The node or the virtual machine pauses.
    FreezePod(usize),
    CutLink(usize),
    EndWorkload(usize),
    StepDown(usize),
    /// SIGTERM for the sidecar.
    TerminateSidecar(usize),
    /// SIGTERM for the guard, as its container gets it when the pod is deleted.
    TerminateGuard(usize),
    DeleteLease,
}

// === impl Pair ===

impl Pair {
    fn is_due(&self, world: &World, site: &Site) -> bool {
        site.is_sidecar_due(world.now_ms) || site.is_guard_due(world.now_ms, self.variant)
    }

    /// Whether the kernel may leave this pod's killed processes alive for one more step.
    fn may_die_later(&self, world: &World, site: &Site) -> bool {
        let late =
            if self.variant == Variant::SlowDeath { Duration::from_millis(1500) } else { Duration::ZERO };
        let then = site.clock(world.now_ms + STEP_MS);
        let since = site.guard.as_ref().and_then(|guard| guard.dying_since);
        since.is_none_or(|since| then.since(since) <= site::timing().kill_budget() + late)
    }

    fn time_may_pass(&self, world: &World) -> bool {
        world.now_ms < self.scope.until_ms
            && world.net.iter().all(|message| message.stage != Stage::Fresh)
            && world.sites.iter().all(|site| !self.is_due(world, site) && self.may_die_later(world, site))
    }

    fn steps_of_messages(world: &World, steps: &mut Vec<Step>) {
        for (place, message) in world.net.iter().enumerate() {
            match message.stage {
                Stage::Fresh => steps.push(Step::Serve(place)),
                Stage::Late => steps.push(Step::CarryOut(place)),
                Stage::Answered(_) if world.is_heard(message) => steps.push(Step::Deliver(place)),
                Stage::Answered(_) => {}
            }
            if message.stage == Stage::Fresh && world.faults_left > 0 {
                steps.push(Step::Fault(Fault::HoldRequest(place)));
                steps.push(Step::Fault(Fault::HoldReply(place)));
            }
            if message.stage != Stage::Fresh && world.is_heard(message) {
                steps.push(Step::Fail(place));
            }
        }
    }

    fn steps_of_site(&self, world: &World, place: usize, steps: &mut Vec<Step>) {
        let site = &world.sites[place];
        let now = site.clock(world.now_ms);
        match &site.sidecar {
            None => steps.push(Step::RestartSidecar(place)),
            Some(sidecar) if sidecar.frozen.is_some_and(|frozen| frozen.since < now) => {
                steps.push(Step::ThawSidecar(place));
            }
            Some(_) => {}
        }
        if let Some(guard) = &site.guard {
            if guard.dying_since.is_some() {
                steps.push(Step::Die(place));
            } else if guard.frozen.is_some_and(|frozen| frozen.since < now) {
                steps.push(Step::ThawGuard(place));
            }
        }
        if world.faults_left > 0 && !self.is_due(world, site) {
            steps.extend(faults_of(site).into_iter().map(Step::Fault));
        }
    }

    fn go_wrong(&self, world: &mut World, fault: Fault) {
        let variant = self.variant;
        let now_ms = world.now_ms;
        world.faults_left -= 1;
        match fault {
            Fault::HoldRequest(message) => world.net[message].stage = Stage::Late,
            Fault::HoldReply(message) => {
                let answer = world.carry_out(world.net[message].request, variant);
                world.net[message].stage = Stage::Answered(answer);
            }
            Fault::KillSidecar(place) => world.within(place, variant, Site::kill_sidecar),
            Fault::FreezeSidecar(place) => world.sites[place].freeze_sidecar(now_ms),
            Fault::KillGuard(place) => world.within(place, variant, Site::kill_guard),
            Fault::FreezeGuard(place) => world.sites[place].freeze_guard(now_ms),
            Fault::FreezePod(place) => {
                world.sites[place].freeze_sidecar(now_ms);
                world.sites[place].freeze_guard(now_ms);
            }
            Fault::CutLink(place) => world.within(place, variant, Site::cut_link),
            Fault::EndWorkload(place) => world.within(place, variant, Site::end_workload),
            Fault::StepDown(place) => world.tell(place, Event::StepDown, variant),
            Fault::TerminateSidecar(place) => world.tell(place, Event::Terminate, variant),
            Fault::TerminateGuard(place) => world.within(place, variant, Site::terminate_guard),
            Fault::DeleteLease => world.judge.is_data_lost |= world.server.delete(now_ms, variant),
        }
    }
}

fn faults_of(site: &Site) -> Vec<Fault> {
    let place = site.place;
    let mut faults = Vec::new();
    let running = site.sidecar.as_ref().filter(|sidecar| sidecar.frozen.is_none());
    if running.is_some() {
        faults.extend([
            Fault::KillSidecar(place),
            Fault::FreezeSidecar(place),
            Fault::TerminateSidecar(place),
        ]);
    }
    if running.is_some_and(|sidecar| sidecar.active.is_some()) {
        faults.push(Fault::StepDown(place));
    }
    let Some(guard) = site.guard.as_ref().filter(|guard| guard.dying_since.is_none()) else { return faults };
    if guard.frozen.is_none() {
        faults.extend([Fault::FreezeGuard(place), Fault::TerminateGuard(place)]);
        if running.is_some() {
            faults.push(Fault::FreezePod(place));
        }
        if guard.connection.is_some() {
            faults.push(Fault::CutLink(place));
        }
        if guard.workload.is_some() {
            faults.extend([Fault::EndWorkload(place), Fault::KillGuard(place)]);
        }
    }
    faults
}

impl Model for Pair {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let (server, mut net, mut judge) = (Server::default(), Vec::new(), Judge::default());
        let mut scene =
            Scene { now_ms: 0, variant: self.variant, server: &server, net: &mut net, judge: &mut judge };
        let sites = [Site::new(0, &mut scene), Site::new(1, &mut scene)];
        vec![World { now_ms: 0, sites, server, net, judge, faults_left: self.scope.faults }]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        // What follows from a broken promise breaks others, and says nothing of them.
        if is_broken(self, world) {
            return;
        }
        if self.time_may_pass(world) {
            steps.push(Step::TimePasses);
        }
        // In one step the first pod wakes first: pods meet only in Redis, where their requests go in any order, and
        // what was killed counts as alive until its death, which comes in any order too.
        if let Some(site) = world.sites.iter().find(|site| self.is_due(world, site)) {
            if site.is_sidecar_due(world.now_ms) {
                steps.push(Step::WakeSidecar(site.place));
            }
            if site.is_guard_due(world.now_ms, self.variant) {
                steps.push(Step::WakeGuard(site.place));
            }
        }
        Self::steps_of_messages(world, steps);
        for place in 0..world.sites.len() {
            self.steps_of_site(world, place, steps);
        }
        if world.faults_left > 0 && world.server.lease.is_some() {
            steps.push(Step::Fault(Fault::DeleteLease));
        }
        let is_tried = |step: &Step| !matches!(step, Step::Fault(fault) if !(self.scope.which)(*fault));
        steps.retain(is_tried);
    }

    fn next_state(&self, before: &World, step: Step) -> Option<World> {
        let variant = self.variant;
        let mut world = before.clone();
        match step {
            Step::TimePasses => world.step_of_time(variant),
            Step::WakeSidecar(place) => world.tell(place, Event::Time, variant),
            Step::WakeGuard(place) => {
                world.within(place, variant, |site, scene| site.do_first(Job::Wake, scene));
            }
            Step::Serve(place) => {
                let message = world.net.remove(place);
                let answer = world.carry_out(message.request, variant);
                if world.is_heard(&message) {
                    world.deliver(&message, answer, variant);
                } else {
                    world.net.push(Message { stage: Stage::Answered(answer), ..message });
                }
            }
            Step::CarryOut(place) => {
                let answer = world.carry_out(world.net[place].request, variant);
                world.net[place].stage = Stage::Answered(answer);
            }
            Step::Deliver(place) => {
                let message = world.net.remove(place);
                let Stage::Answered(answer) = message.stage else { return None };
                world.deliver(&message, answer, variant);
            }
            Step::Fail(place) => {
                world.net[place].awaited = false;
                let message = world.net[place].clone();
                world.fail(&message, variant);
            }
            Step::Die(place) => world.within(place, variant, Site::die),
            Step::RestartSidecar(place) => world.within(place, variant, Site::start_sidecar),
            Step::ThawSidecar(place) => world.within(place, variant, Site::thaw_sidecar),
            Step::ThawGuard(place) => world.within(place, variant, Site::thaw_guard),
            Step::Fault(fault) => self.go_wrong(&mut world, fault),
        }
        world.forget();
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = promises();
        properties.extend(occasions());
        properties
    }
}
