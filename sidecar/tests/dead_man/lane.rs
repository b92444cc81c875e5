//! Pods side by side, each with a lease of its own on one Redis.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use crate::support::container::Container;
use crate::support::pod::{Pod, pass};
use crate::support::world::World;

/// Does not end by itself, nor on SIGTERM, nor with its parent.
const STUBBORN: &str = "trap 'echo term > $DIR/term' TERM; \
    (setsid sh -c 'trap \"\" TERM; while :; do sleep 0.05; done' &); \
    echo up > $DIR/up; while :; do sleep 0.02; done";
/// Pods at a time.
const LANES: usize = 6;
/// Faults come within this after the start, which is some renewals long.
const WINDOW: Duration = Duration::from_millis(1200);
/// `ttl` less validity of the settings below: what remains in Redis at the deadline.
const LEFT_AT_DEADLINE_MS: i64 = 1334;

/// A pod that holds, and its workload.
pub(crate) struct Lane<'world> {
    world: &'world World,
    name: String,
    pub(crate) pod: Pod,
    pub(crate) container: Container,
}

impl<'world> Lane<'world> {
    /// A pod that is ACTIVE and whose workload runs.
    pub(crate) fn start(world: &'world World, name: &str) -> Self {
        let pod = Pod::start(name, world.redis.address(), |settings| {
            settings["resource"]["name"] = name.into();
        });
        let message = pod.path().join("termination-app");
        File::create(&message).unwrap();
        fs::set_permissions(&message, Permissions::from_mode(0o666)).unwrap();
        let container = pod.run("app", STUBBORN);
        pod.until("ACTIVE");
        pod.read("up");
        Self { world, name: name.to_owned(), pod, container }
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
        println!("{test}: dead at {at}, {} ms before the deadline", left - LEFT_AT_DEADLINE_MS);
        assert!(left > LEFT_AT_DEADLINE_MS, "the lease had {left} ms left, at the deadline it has more");
        assert_eq!(self.container.exit_code(), 195);
    }

    /// What the guard told people of its end.
    pub(crate) fn termination_message(&self) -> String {
        self.pod.read("termination-app")
    }
}

/// Plays this in several pods at once, each after a random part of the window.
pub(crate) fn at_random_instants(test: &str, fault: impl Fn(Lane<'_>) + Sync) {
    let world = World::new();
    std::thread::scope(|scope| {
        for number in 0..LANES {
            let (world, fault) = (&world, &fault);
            scope.spawn(move || {
                let lane = Lane::start(world, &format!("lane-{number}"));
                let window = u64::try_from(WINDOW.as_micros()).unwrap();
                let instant = Duration::from_micros(getrandom::u64().unwrap() % window);
                println!("{test}, lane {number}: the fault comes after {instant:?}");
                pass(instant);
                fault(lane);
            });
        }
    });
}
