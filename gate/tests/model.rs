//! Every order in which requests, raises, syncs, the backend, time and crashes can happen, for a few holders:
//! the decision itself ([`Door`]), with a disk and a backend around it.
//!
//! - I1: nothing passes after something newer, nor after another holder's equal; and the backend carries nothing
//!   out after something newer, except what was cut after the drain time and reported unknown.
//! - I2: what has passed is on the disk, at every instant.
//! - I17: once a raise is answered nothing older passes, nor is it carried out.
//!
//! Each broken variant must turn its property red.
#![allow(clippy::panic, reason = "the helpers of tests fail as tests do")]

use std::collections::BTreeSet;
use std::time::Duration;

use fencedlease_gate::check::{Cut, Door, Fate, Mark, Verdict};
use fencedlease_wire::{Fence, HoldingId};
use stateright::{Checker as _, HasDiscoveries, Model, Property};

const DRAIN: Duration = Duration::from_secs(2);
/// Fence and holder of each mark, in ascending order; two holders have one fence.
const MARKS: [(u64, u8); 4] = [(1, 1), (2, 2), (2, 3), (3, 4)];
/// Whose writes there are.
const WRITES: [usize; 5] = [0, 0, 1, 2, 3];
/// Who raises.
const RAISES: [usize; 2] = [1, 3];
const MOST_CRASHES: u8 = 1;
const MOST_FAILED_SYNCS: u8 = 1;
const MOST_STEPS_OF_TIME: u32 = 3;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Variant {
    AsBuilt,
    /// A raise counts before it is synced.
    PassesBeforeSync,
    /// The holder is not compared.
    AnyHolder,
    /// Older requests are forgotten instead of waited for.
    NoDrain,
    /// A gate that comes back after a crash opens at once.
    OpensAfterCrash,
    /// A raise is answered when it is handed to the disk.
    AnswersRaiseEarly,
    /// The disk is not read at the start.
    Forgets,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Write {
    NotSent,
    Sending,
    /// The backend has all of it.
    Whole,
    /// Carried out, not answered.
    CarriedOut,
    /// The gate gave it up after the drain time, and said so; the backend may still carry it out.
    ReportedUnknown,
    /// The gate was killed; the backend still has it.
    Orphaned,
    Over,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct World {
    door: Door,
    disk: Option<usize>,
    syncing: Option<usize>,
    writes: [Write; WRITES.len()],
    raises_left: [bool; RAISES.len()],
    now: u32,
    crashes: u8,
    failed_syncs: u8,
    last_passed: Option<usize>,
    last_carried_out: Option<usize>,
    raised: Option<usize>,
    passed_back: bool,
    carried_out_back: bool,
    older_than_raised: bool,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Step {
    Offer(usize),
    Raise(usize),
    Synced,
    SyncFailed,
    SendAll(usize),
    CarryOut(usize),
    Answer(usize),
    CutNow(usize),
    CutAfterDrain(usize),
    TimePasses,
    /// Whether what was being synced is on the disk.
    Crash(bool),
}

struct Gate(Variant);

fn mark(index: usize) -> Mark {
    let (fence, holder) = MARKS[index];
    let fence = Fence::new(fence).unwrap_or_else(|error| panic!("{error}"));
    Mark { fence, holder: Some(HoldingId::from_random([holder; 8])) }
}

/// Whether `one` may not come after `other`.
fn is_older(one: usize, other: usize) -> bool {
    MARKS[one].0 < MARKS[other].0
}

fn conflicts(one: usize, other: usize) -> bool {
    is_older(one, other) || (one != other && MARKS[one].0 == MARKS[other].0)
}

fn now(world: &World) -> Duration {
    DRAIN * world.now
}

impl Gate {
    /// Whether `index` may pass now; does what the verdict asks for.
    fn ask(&self, world: &mut World, index: usize) -> bool {
        let mut asked = mark(index);
        if self.0 == Variant::AnyHolder
            && let Some(highest) = world.door.highest().filter(|highest| highest.fence == asked.fence)
        {
            asked.holder.clone_from(&highest.holder);
        }
        let at = now(world);
        match world.door.judge(&asked, at) {
            Verdict::Pass => true,
            Verdict::Store => {
                world.syncing = Some(index);
                if self.0 == Variant::PassesBeforeSync {
                    self.stored(world);
                }
                false
            }
            Verdict::Wait(_) | Verdict::Refused(_) => false,
        }
    }

    fn stored(&self, world: &mut World) {
        let at = now(world);
        world.door.stored(at);
        if self.0 == Variant::NoDrain {
            for id in 0..WRITES.len() {
                if world.door.cut(id as u64) != Cut::No {
                    world.door.ended(id as u64, Fate::Settled);
                }
            }
        }
    }

    fn crash(&self, world: &mut World, keeps: bool) {
        if let Some(index) = world.syncing.take().filter(|_| keeps) {
            world.disk = Some(index);
        }
        let read = world.disk.filter(|_| self.0 != Variant::Forgets);
        let closed = if self.0 == Variant::OpensAfterCrash { now(world) } else { now(world) + DRAIN };
        world.door = Door::new(read.map(mark), closed, DRAIN);
        for write in &mut world.writes {
            *write = match *write {
                Write::Sending | Write::CarriedOut => Write::Over,
                Write::Whole => Write::Orphaned,
                other => other,
            };
        }
    }
}

impl World {
    fn pass(&mut self, index: usize) {
        self.passed_back |= self.last_passed.is_some_and(|last| conflicts(index, last));
        self.older_than_raised |= self.raised.is_some_and(|raised| conflicts(index, raised));
        self.last_passed = Some(index);
    }

    fn carry_out(&mut self, index: usize, is_reported: bool) {
        if is_reported {
            return;
        }
        self.carried_out_back |= self.last_carried_out.is_some_and(|last| is_older(index, last));
        self.older_than_raised |= self.raised.is_some_and(|raised| is_older(index, raised));
        self.last_carried_out = Some(index);
    }
}

impl Model for Gate {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            door: Door::new(None, Duration::ZERO, DRAIN),
            disk: None,
            syncing: None,
            writes: [Write::NotSent; WRITES.len()],
            raises_left: [true; RAISES.len()],
            now: 0,
            crashes: 0,
            failed_syncs: 0,
            last_passed: None,
            last_carried_out: None,
            raised: None,
            passed_back: false,
            carried_out_back: false,
            older_than_raised: false,
        }]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        for (id, write) in world.writes.iter().enumerate() {
            match write {
                Write::NotSent => steps.push(Step::Offer(id)),
                Write::Sending => steps.extend([Step::SendAll(id), Step::CutNow(id)]),
                Write::Whole => steps.extend([Step::CarryOut(id), Step::CutAfterDrain(id)]),
                Write::CarriedOut => steps.push(Step::Answer(id)),
                Write::ReportedUnknown | Write::Orphaned => steps.push(Step::CarryOut(id)),
                Write::Over => {}
            }
        }
        steps.extend((0..RAISES.len()).filter(|raise| world.raises_left[*raise]).map(Step::Raise));
        if world.syncing.is_some() {
            steps.push(Step::Synced);
            if world.failed_syncs < MOST_FAILED_SYNCS {
                steps.push(Step::SyncFailed);
            }
        }
        // A backend carries out within the drain time what a killed gate had sent it, or never.
        if world.now < MOST_STEPS_OF_TIME && !world.writes.contains(&Write::Orphaned) {
            steps.push(Step::TimePasses);
        }
        if world.crashes < MOST_CRASHES {
            steps.extend([Step::Crash(true), Step::Crash(false)]);
        }
    }

    fn next_state(&self, before: &World, step: Step) -> Option<World> {
        let mut world = before.clone();
        match step {
            Step::Offer(id) => {
                if self.ask(&mut world, WRITES[id]) {
                    world.door.enter(id as u64, mark(WRITES[id]));
                    world.pass(WRITES[id]);
                    world.writes[id] = Write::Sending;
                }
            }
            Step::Raise(raise) => {
                let is_passed = self.ask(&mut world, RAISES[raise]);
                let is_early = self.0 == Variant::AnswersRaiseEarly && world.syncing == Some(RAISES[raise]);
                if is_passed || is_early {
                    world.raises_left[raise] = false;
                    let highest = world.raised.is_none_or(|raised| is_older(raised, RAISES[raise]));
                    world.raised = if highest { Some(RAISES[raise]) } else { world.raised };
                }
            }
            Step::Synced => {
                world.disk = world.syncing.take();
                self.stored(&mut world);
            }
            Step::SyncFailed => {
                world.failed_syncs += 1;
                world.syncing = None;
                world.door.not_stored();
            }
            Step::SendAll(id) => {
                if world.door.cut(id as u64) == Cut::Now {
                    return None;
                }
                world.door.complete(id as u64);
                world.writes[id] = Write::Whole;
            }
            Step::CarryOut(id) => {
                let is_answerable = world.writes[id] == Write::Whole;
                world.carry_out(WRITES[id], world.writes[id] == Write::ReportedUnknown);
                world.writes[id] = if is_answerable { Write::CarriedOut } else { Write::Over };
            }
            Step::Answer(id) => {
                world.door.ended(id as u64, Fate::Settled);
                world.writes[id] = Write::Over;
            }
            Step::CutNow(id) => {
                if world.door.cut(id as u64) != Cut::Now {
                    return None;
                }
                world.door.ended(id as u64, Fate::Settled);
                world.writes[id] = Write::Over;
            }
            Step::CutAfterDrain(id) => match world.door.cut(id as u64) {
                Cut::At(at) if at <= now(&world) => {
                    world.door.ended(id as u64, Fate::Unsettled);
                    world.writes[id] = Write::ReportedUnknown;
                }
                _ => return None,
            },
            Step::TimePasses => world.now += 1,
            Step::Crash(keeps) => {
                world.crashes += 1;
                self.crash(&mut world, keeps);
            }
        }
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("I1: passing", |_, world: &World| !world.passed_back),
            Property::always("I1: carrying out", |_, world: &World| !world.carried_out_back),
            Property::always("I2: memory", |_, world: &World| {
                let is_on_disk = |passed| world.disk.is_some_and(|disk| !is_older(disk, passed));
                world.last_passed.is_none_or(is_on_disk)
            }),
            Property::always("I17: raise before run", |_, world: &World| !world.older_than_raised),
            Property::sometimes("everybody writes in turn", |_, world: &World| {
                world.writes.iter().filter(|write| **write == Write::Over).count() >= 4
                    && world.last_carried_out == Some(3)
            }),
            Property::sometimes("something is reported unknown", |_, world: &World| {
                world.writes.contains(&Write::ReportedUnknown)
            }),
        ]
    }
}

/// Whether this property is violated, and how many states were seen until then.
fn is_red(variant: Variant, name: &'static str) -> (bool, usize) {
    let until = HasDiscoveries::AllOf(BTreeSet::from([name]));
    let checker = Gate(variant).checker().threads(2).finish_when(until).spawn_bfs().join();
    (checker.discovery(name).is_some(), checker.unique_state_count())
}

#[test]
fn the_door_as_built_keeps_every_promise() {
    let checker = Gate(Variant::AsBuilt).checker().threads(2).spawn_bfs().join();
    println!("{} states", checker.unique_state_count());
    checker.assert_properties();
    assert!(checker.unique_state_count() > 10_000);
}

#[test]
fn each_broken_variant_turns_its_promise_red() {
    for (variant, expected) in [
        (Variant::PassesBeforeSync, "I2: memory"),
        (Variant::AnyHolder, "I1: passing"),
        (Variant::NoDrain, "I1: carrying out"),
        (Variant::OpensAfterCrash, "I1: carrying out"),
        (Variant::AnswersRaiseEarly, "I17: raise before run"),
        (Variant::Forgets, "I1: passing"),
    ] {
        let (is_red, states) = is_red(variant, expected);
        println!("{variant:?}: {expected} after {states} states");
        assert!(is_red, "{variant:?} leaves {expected} green");
    }
}
