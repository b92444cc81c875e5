//! The lease is lost, in every way: the workload is dead before the deadline, and nobody's fence is reused.

use std::time::Duration;

use fencedlease_core::BootTime;
use fencedlease_faults::matrix::shown;
use fencedlease_faults::{Clients, Fault};
use rustix::process::Signal;
use serde_json::Value;

use crate::support::container::Container;
use crate::support::eventually;
use crate::support::pod::{Pod, pass};
use crate::support::world::World;

/// Does not end by itself, nor on SIGTERM.
pub(crate) const STUBBORN: &str =
    "trap 'echo term > $DIR/term' TERM; echo up > $DIR/up; while :; do sleep 0.02; done";

fn instant(flag: &Value, field: &str) -> BootTime {
    BootTime::from_millis(flag[field].as_u64().unwrap())
}

/// Waits for the proof of death; it must lie before the deadline of the `lost` file.
#[track_caller]
pub(crate) fn dead_in_time(test: &str, rows: &[u8], pod: &Pod, container: &mut Container) -> Value {
    let flag = pod.lost();
    let at = container.dead();
    let (noticed, deadline) = (instant(&flag, "noticedAtBoottimeMs"), instant(&flag, "deadlineBoottimeMs"));
    let outcome = format!(
        "{}, proven dead {} ms after the loss was noticed, {} ms before the deadline",
        flag["reason"].as_str().unwrap(),
        at.since(noticed).as_millis(),
        deadline.since(at).as_millis()
    );
    println!("{test}: {outcome}");
    assert!(at < deadline, "dead at {at}, after the deadline {deadline}");
    assert_eq!(container.exit_code(), 195);
    shown(rows, &outcome).unwrap();
    flag
}

#[test]
fn a_cut_connection_is_lost_and_another_pod_takes_over_with_a_greater_fence() {
    let world = World::new();
    let proxy = world.proxy();
    let one = Pod::start("one", proxy.address, |_| {});
    let mut container = one.run("app", STUBBORN);
    one.until("ACTIVE");
    one.read("up");
    let other = Pod::start("other", world.redis.address(), |_| {});
    let _standby = other.run("app", "echo $FENCEDLEASE_FENCE > $DIR/fence-seen; exec sleep 1000");
    eventually("a standby that knows its holder", || (other.lease()["holder"] == "one").then_some(()));
    proxy.handle.set(Clients::All, Fault::Cut);
    let flag = dead_in_time("cut connection", &[6], &one, &mut container);
    assert!(proxy.handle.snapshot().total.reset > 0, "the connection was cut");
    assert_eq!((flag["fence"].as_u64(), flag["resource"].as_str()), (Some(1), Some("shop/report")));
    assert_eq!(flag["killed"][0], "app");
    assert!(!one.has("fence"), "the fence is not held any more");
    one.read("term");
    assert_eq!(one.until("LOST")["fence"], 1);
    assert_eq!(one.probe("/ready").status, 503);
    assert_eq!(one.ask("POST", "/v1/commit-check", "").unwrap().json()["reason"], "Lost");
    let lease = other.until("ACTIVE");
    assert_eq!(lease["fence"], 2);
    assert_eq!(other.read("fence-seen"), "2\n");
}

#[test]
fn a_lost_pod_is_a_standby_again_when_its_container_is_back() {
    let world = World::new();
    let proxy = world.proxy();
    let pod = Pod::start("one", proxy.address, |_| {});
    let mut container = pod.run("app", STUBBORN);
    pod.until("ACTIVE");
    proxy.handle.set(Clients::All, Fault::Cut);
    dead_in_time("cut connection", &[44], &pod, &mut container);
    proxy.handle.set(Clients::All, Fault::Pass);
    pass(Duration::from_millis(200));
    assert_eq!(pod.lease()["state"], "LOST", "without its guard it does not compete");
    let _again = pod.run("app", STUBBORN);
    let lease = pod.until("ACTIVE");
    assert_eq!(lease["fence"], 2);
    assert!(!pod.has("lost"), "the flag of the last holding is gone");
    assert_eq!(pod.read("fence"), "2\n");
}

#[test]
fn a_redis_that_hangs_is_a_timeout() {
    let world = World::new();
    let pod = Pod::start("one", world.redis.address(), |_| {});
    let mut container = pod.run("app", STUBBORN);
    pod.until("ACTIVE");
    world.redis.stop().unwrap();
    let flag = dead_in_time("hung Redis", &[13], &pod, &mut container);
    assert_eq!(flag["reason"], "RenewalTimeout");
    assert!(world.redis.is_stopped().unwrap());
    world.redis.cont().unwrap();
}

#[test]
fn a_lease_that_is_gone_gives_no_grace() {
    let world = World::new();
    let pod = Pod::start("one", world.redis.address(), |settings| {
        settings["timing"]["ttlMs"] = 15_000.into();
        settings["timing"]["gracePeriodMs"] = 5_000.into();
    });
    let mut container = pod.run("app", STUBBORN);
    pod.until("ACTIVE");
    world.redis.cli(&["DEL", &World::key("lease")]).unwrap();
    let flag = dead_in_time("deleted lease", &[23], &pod, &mut container);
    assert_eq!(flag["reason"], "KeyGone");
    let at = container.dead();
    assert!(at < instant(&flag, "noticedAtBoottimeMs") + Duration::from_secs(5), "it got a grace");
}

#[test]
fn a_lease_of_somebody_else_is_lost_and_left_alone() {
    let world = World::new();
    let pod = Pod::start("one", world.redis.address(), |_| {});
    let mut container = pod.run("app", STUBBORN);
    pod.until("ACTIVE");
    world.redis.cli(&["SET", &World::key("lease"), "somebody", "PX", "60000"]).unwrap();
    let flag = dead_in_time("another owner", &[23], &pod, &mut container);
    assert_eq!(flag["reason"], "OtherOwner");
    eventually("the end of it", || pod.log().contains("the workload is proven dead").then_some(()));
    assert_eq!(world.redis.cli(&["GET", &World::key("lease")]).unwrap(), "somebody");
}

/// Without its sidecar the guard acts at its own instants. The lease must outlive the workload.
fn dies_alone(signal: Signal) {
    let world = World::new();
    let mut pod = Pod::start("one", world.redis.address(), |_| {});
    let mut container = pod.run("app", STUBBORN);
    pod.until("ACTIVE");
    pod.read("up");
    pod.signal(signal);
    let at = container.dead();
    assert_eq!(container.exit_code(), 195);
    pod.read("term");
    let left: i64 = world.redis.cli(&["PTTL", &World::key("lease")]).unwrap().parse().unwrap();
    println!("sidecar that got {signal:?}: dead at {at}, the lease lasts {left} ms longer");
    assert!(left > 500, "the lease outlives the workload by more than the margin, not by {left} ms");
    if signal == Signal::STOP {
        pod.signal(Signal::CONT);
        let reason = pod.until("LOST")["reason"].clone();
        // A thread that was not asleep when it was stopped finds the term instant passed.
        assert!(reason == "WatchLate" || reason == "RenewalTimeout", "{reason}");
    } else {
        pod.kill_sidecar();
    }
}

#[test]
fn a_killed_sidecar_leaves_the_guard_to_its_own_instants() {
    dies_alone(Signal::KILL);
}

#[test]
fn a_stopped_sidecar_leaves_the_guard_to_its_own_instants_and_is_lost_when_it_goes_on() {
    dies_alone(Signal::STOP);
}

#[test]
fn a_restarted_sidecar_has_lost_what_was_held_and_releases_nothing() {
    let world = World::new();
    let mut pod = Pod::start("one", world.redis.address(), |_| {});
    let mut container = pod.run("app", STUBBORN);
    let held = pod.until("ACTIVE");
    pod.read("up");
    pod.kill_sidecar();
    pod.start_sidecar();
    assert!(!pod.has("fence"));
    let flag = dead_in_time("restarted sidecar", &[45], &pod, &mut container);
    assert_eq!((&flag["reason"], &flag["holding"]), (&"SidecarRestarted".into(), &held["holding"]));
    assert_eq!(pod.lease()["state"], "LOST");
    assert!(world.has_lease(), "the lease runs out by itself");
    let _again = pod.run("app", "echo $FENCEDLEASE_FENCE > $DIR/fence-seen; exec sleep 1000");
    assert_eq!(pod.until("ACTIVE")["fence"], 2);
    assert_eq!(pod.read("fence-seen"), "2\n");
    assert!(!pod.has("lost"));
    pod.kill_sidecar();
    pod.start_sidecar();
    assert_eq!(pod.lost()["fence"], 2, "also the second time");
}

#[test]
fn a_guard_that_is_stopped_acts_when_it_goes_on_and_the_holding_is_lost() {
    let world = World::new();
    let pod = Pod::start("one", world.redis.address(), |_| {});
    let mut container = pod.run("app", STUBBORN);
    pod.until("ACTIVE");
    pod.read("up");
    container.signal(Signal::STOP);
    pass(Duration::from_millis(2500));
    container.signal(Signal::CONT);
    let flag = dead_in_time("stopped guard", &[36], &pod, &mut container);
    assert_eq!(flag["reason"], "GuardGone");
}
