//! A Redis that is there and does not answer in time: it sleeps, pauses its clients, or its answers drip.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fencedlease_faults::{Clients, Direction, Fault};

use crate::losses::{STUBBORN, dead_in_time};
use crate::support::pod::{Pod, pass};
use crate::support::world::World;

/// A command to Redis whose answer nobody waits for. It ends with the value.
struct Unanswered(Child);

impl Unanswered {
    fn send(world: &World, words: &[&str]) -> Self {
        let port = world.redis.address().port().to_string();
        let mut client = Command::new("redis-cli");
        client.args(["-p", &port]).args(words).stdin(Stdio::null()).stdout(Stdio::null());
        Self(client.spawn().unwrap())
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_redis_that_sleeps_in_a_command_is_a_timeout() {
    let world = World::with_redis(&["--enable-debug-command", "yes"]);
    let pod = Pod::start("one", world.redis.address(), |_| {});
    let mut container = pod.run("app", STUBBORN);
    pod.until("ACTIVE");
    let _sleeps = Unanswered::send(&world, &["DEBUG", "SLEEP", "30"]);
    let flag = dead_in_time("Redis sleeps", &[14], &pod, &mut container);
    assert_eq!(flag["reason"], "RenewalTimeout");
}

#[test]
fn a_redis_that_pauses_its_clients_is_a_timeout_also_where_reads_go_on() {
    for mode in ["WRITE", "ALL"] {
        let world = World::new();
        let pod = Pod::start("one", world.redis.address(), |_| {});
        let mut container = pod.run("app", STUBBORN);
        pod.until("ACTIVE");
        world.redis.cli(&["CLIENT", "PAUSE", "60000", mode]).unwrap();
        let flag = dead_in_time(&format!("CLIENT PAUSE {mode}"), &[15], &pod, &mut container);
        assert_eq!(flag["reason"], "RenewalTimeout");
    }
}

#[test]
fn an_answer_that_drips_is_a_timeout_and_its_end_comes_too_late_to_count() {
    let world = World::new();
    let proxy = world.proxy();
    let pod = Pod::start("one", proxy.address, |_| {});
    let mut container = pod.run("app", STUBBORN);
    pod.until("ACTIVE");
    proxy.handle.set(Clients::All, Fault::Drip { delay_ms: 1000, direction: Direction::Replies });
    let flag = dead_in_time("an answer drips", &[8], &pod, &mut container);
    assert_eq!(flag["reason"], "RenewalTimeout");
    proxy.handle.set(Clients::All, Fault::Pass);
    pass(Duration::from_millis(200));
    assert_eq!(pod.lease()["state"], "LOST");
}
