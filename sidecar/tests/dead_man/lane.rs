//! Pods side by side, each with a lease of its own on one Redis.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencedlease_faults::matrix::shown;
use rustix::process::Pid;
use serde_json::Value;

use crate::support::container::Container;
use crate::support::pod::{Pod, pass};
use crate::support::world::World;

/// Does not end by itself, nor on SIGTERM, nor with its parent.
pub(crate) const STUBBORN: &str = "trap 'echo term > $DIR/term' TERM; \
    (setsid sh -c 'trap \"\" TERM; while :; do sleep 0.05; done' &); \
    echo up > $DIR/up; while :; do sleep 0.02; done";
/// Pods at a time.
const LANES: usize = 6;
/// Faults come within this after the start, which is some renewals long.
const WINDOW: Duration = Duration::from_millis(1200);

/// `ttl` less validity, which is ttl / 1.2 - 0.5 s: what remains in Redis at the deadline, rounded up.
fn left_at_deadline_ms(ttl_ms: i64) -> i64 {
    ttl_ms - ttl_ms * 5 / 6 + 500
}

/// Of the lanes that have died, in milliseconds before their deadline.
type Early = Arc<Mutex<Vec<i64>>>;

/// A pod that holds, and its workload.
pub(crate) struct Lane<'world> {
    world: &'world World,
    name: String,
    left_at_deadline_ms: i64,
    /// By how many milliseconds death came before the deadline.
    early_ms: Early,
    pub(crate) pod: Pod,
    pub(crate) container: Container,
}

impl<'world> Lane<'world> {
    /// A pod that is ACTIVE and whose workload runs.
    pub(crate) fn start(world: &'world World, name: &str) -> Self {
        Self::start_with(world, name, STUBBORN)
    }

    /// The same with another script as its workload, which writes `up`.
    pub(crate) fn start_with(world: &'world World, name: &str, script: &str) -> Self {
        Self::start_changed(world, name, script, |_| {})
    }

    /// The same with changed settings, too.
    pub(crate) fn start_changed(
        world: &'world World,
        name: &str,
        script: &str,
        change: impl FnOnce(&mut Value),
    ) -> Self {
        let pod = Pod::start(name, world.redis.address(), |settings| {
            settings["resource"]["name"] = name.into();
            change(settings);
        });
        let ttl_ms = pod.settings["timing"]["ttlMs"].as_i64().unwrap();
        let message = pod.path().join("termination-app");
        File::create(&message).unwrap();
        fs::set_permissions(&message, Permissions::from_mode(0o666)).unwrap();
        let container = pod.run("app", script);
        pod.until("ACTIVE");
        pod.read("up");
        Self {
            world,
            name: name.to_owned(),
            left_at_deadline_ms: left_at_deadline_ms(ttl_ms),
            early_ms: Early::default(),
            pod,
            container,
        }
    }

    /// How long the lease lasts in Redis, in milliseconds; negative if there is none.
    pub(crate) fn left_ms(&self) -> i64 {
        let key = format!("fencedlease:v1:{{test/shop/{}}}:lease", self.name);
        self.world.redis.cli(&["PTTL", &key]).unwrap().parse().unwrap()
    }

    /// Waits for the proof of death: it must come before the deadline, as Redis tells what was left.
    pub(crate) fn dies_before_the_deadline(&mut self, test: &str) {
        let at = self.container.dead();
        let left = self.left_ms();
        println!("{test}: dead at {at}, {} ms before the deadline", left - self.left_at_deadline_ms);
        assert!(left > self.left_at_deadline_ms, "the lease had {left} ms left, at the deadline it has more");
        assert_eq!(self.container.exit_code(), 195);
        self.early_ms.lock().unwrap().push(left - self.left_at_deadline_ms);
    }

    /// What the fault matrix says of this lane, once it is dead.
    pub(crate) fn outcome(&self) -> String {
        outcome(&self.early_ms.lock().unwrap())
    }

    /// The processes of the container but for the guard. Some live for milliseconds.
    pub(crate) fn workload(&self) -> Vec<Pid> {
        workload(&self.container)
    }

    /// What the guard told people of its end; nothing where a busy machine left it no time for that.
    pub(crate) fn termination_message(&self) -> Option<String> {
        let text = fs::read_to_string(self.pod.path().join("termination-app")).unwrap();
        text.ends_with('\n').then_some(text)
    }
}

/// The processes of a container but for the guard. Some live for milliseconds.
pub(crate) fn workload(container: &Container) -> Vec<Pid> {
    let id = |stat: &String| Pid::from_raw(stat.split(' ').next()?.parse().ok()?);
    container.members().iter().filter_map(id).filter(|process| *process != container.pid).collect()
}

fn outcome(early_ms: &[i64]) -> String {
    let least = early_ms.iter().min().unwrap();
    format!("{0} of {0} dead in time, the latest {least} ms before the deadline", early_ms.len())
}

/// Plays this in several pods at once, each after a random part of the window; `FENCEDLEASE_ROUNDS` says how many times.
/// What came of it is kept for these rows of the fault matrix.
#[track_caller]
pub(crate) fn at_random_instants(test: &str, rows: &[u8], fault: impl Fn(Lane<'_>) + Sync) {
    let rounds = std::env::var("FENCEDLEASE_ROUNDS").map_or(1, |rounds| rounds.parse().unwrap());
    let early_ms = Early::default();
    for _ in 0..rounds {
        one_round(test, &early_ms, &fault);
    }
    let early_ms = early_ms.lock().unwrap();
    if !early_ms.is_empty() {
        shown(rows, &format!("at random instants: {}", outcome(&early_ms))).unwrap();
    }
}

fn one_round(test: &str, early_ms: &Early, fault: &(impl Fn(Lane<'_>) + Sync)) {
    let world = World::new();
    std::thread::scope(|scope| {
        for number in 0..LANES {
            let world = &world;
            scope.spawn(move || {
                let mut lane = Lane::start(world, &format!("lane-{number}"));
                lane.early_ms = Arc::clone(early_ms);
                let window = u64::try_from(WINDOW.as_micros()).unwrap();
                let instant = Duration::from_micros(getrandom::u64().unwrap() % window);
                println!("{test}, lane {number}: the fault comes after {instant:?}");
                pass(instant);
                fault(lane);
            });
        }
    });
}
