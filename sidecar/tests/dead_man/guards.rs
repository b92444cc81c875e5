//! A guard is stopped, killed or starved from outside its container: what then still holds.

use std::time::Duration;

use fencedlease_faults::matrix::shown;
use fencedlease_faults::{Clients, Fault};
use rustix::process::Signal;

use crate::cgroup::Group;
use crate::lane::{Lane, STUBBORN, at_random_instants};
use crate::support::eventually;
use crate::support::pod::{Pod, pass};
use crate::support::world::World;

#[test]
fn a_killed_guard_is_the_end_of_its_container_and_the_lease_is_given_back_after_that() {
    let test = "killed guard";
    at_random_instants(test, &[], |lane| {
        assert!(lane.left_ms() > 0);
        lane.container.signal(Signal::KILL);
        let at = lane.container.dead();
        assert_eq!(lane.pod.until("RELEASED")["reason"], "WorkloadEnded");
        eventually("a lease that was given back", || (lane.left_ms() < 0).then_some(()));
        let log = lane.pod.log();
        let released = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let released = released.into_iter().find(|line| line["message"] == "released").unwrap();
        println!("{test}: all dead at {at}, released at {}", released["at_boottime_ms"]);
    });
    shown(&[35], "every process ended with the guard, then the lease was given back, in every pod").unwrap();
}

#[test]
fn a_guard_that_its_workload_tries_to_stop_and_to_kill_ends_it_all_the_same() {
    let world = World::new();
    let attack =
        "(while :; do kill -STOP 1 && kill -KILL 1 && echo done > $DIR/attacked; sleep 0.01; done) & ";
    let mut lane = Lane::start_with(&world, "attacked", &format!("{attack}{STUBBORN}"));
    lane.pod.read("attacked");
    pass(Duration::from_millis(500));
    assert_eq!(lane.pod.lease()["state"], "ACTIVE");
    lane.pod.kill_sidecar();
    lane.dies_before_the_deadline("attacked guard");
    shown(&[35], &format!("signals from its own container do nothing: {}", lane.outcome())).unwrap();
}

/// A container with this share of the processor and 50 busy processes beside its guard.
fn limited(lane: &Lane<'_>, quota_us: u32) -> Group {
    let guard = lane.container.pid;
    let group = Group::starved(&guard.as_raw_nonzero().to_string(), quota_us, 100_000, 50);
    assert!(group.put(guard));
    for process in lane.workload() {
        group.put(process);
    }
    eventually("processes that have to wait", || (group.throttled() > 0).then_some(()));
    group
}

#[test]
fn a_guard_under_a_limit_of_half_a_processor_acts_in_time_beside_fifty_busy_processes() {
    let world = World::new();
    for round in 0..3 {
        let name = format!("limited-{round}");
        let mut lane = Lane::start_changed(&world, &name, STUBBORN, |settings| {
            settings["timing"]["ttlMs"] = 7000.into();
            settings["timing"]["killBudgetMs"] = 2000.into();
        });
        let group = limited(&lane, 50_000);
        lane.pod.kill_sidecar();
        lane.dies_before_the_deadline("limit of 500m");
        println!("limit of 500m: throttled in {} periods", group.throttled());
    }
}

/// A limit of 50m leaves the guard so little that it wakes seconds late. It finds that out by itself, while the lease is
/// still renewed; the end takes seconds as well, and is waited for.
#[test]
fn a_guard_that_is_starved_by_its_workloads_limit_takes_its_lateness_for_a_loss() {
    let world = World::new();
    let lane = Lane::start(&world, "starved");
    let group = limited(&lane, 5000);
    let flag = lane.pod.lost();
    assert_eq!(flag["reason"], "GuardGone", "{flag}");
    assert!(flag["message"].as_str().unwrap().contains("later than planned"), "{flag}");
    let at = lane.container.dead();
    let deadline = flag["deadlineBoottimeMs"].as_u64().unwrap();
    println!(
        "limit of 50m: throttled in {} periods, dead {} ms after the loss was noticed, deadline after {} ms",
        group.throttled(),
        at.as_millis() - flag["noticedAtBoottimeMs"].as_u64().unwrap(),
        deadline - flag["noticedAtBoottimeMs"].as_u64().unwrap()
    );
    eventually("the end in the log", || lane.pod.log().contains("the workload is proven dead").then_some(()));
    let overdue = lane.pod.log().contains("not proven dead at the deadline");
    assert_eq!(overdue, at.as_millis() > deadline, "dead at {at}, the deadline was {deadline}");
}

/// Who may signal the guard from outside (root on the node) can keep it from acting. Then nothing is released, people
/// are told, and the fence is what is left.
#[test]
fn the_lease_of_a_guard_that_is_stopped_for_good_is_never_released_early() {
    let world = World::new();
    let proxy = world.proxy();
    let pod = Pod::start("one", proxy.address, |_| {});
    let mut container = pod.run("app", STUBBORN);
    pod.until("ACTIVE");
    pod.read("up");
    container.signal(Signal::STOP);
    pass(Duration::from_secs(1));
    assert_eq!(pod.lease()["state"], "ACTIVE", "a holder that renews needs no guard yet");
    let other = Pod::start("other", world.redis.address(), |_| {});
    let _standby = other.run("app", "echo $FENCEDLEASE_FENCE > $DIR/fence-seen; exec sleep 1000");
    eventually("a standby that knows its holder", || (other.lease()["holder"] == "one").then_some(()));
    proxy.handle.set(Clients::All, Fault::Cut);
    let flag = pod.lost();
    let deadline = flag["deadlineBoottimeMs"].as_u64().unwrap();
    // Once the other holds, the lease has expired, which is later than the deadline.
    let taken_over = eventually("a new holder", || {
        (other.lease()["state"] == "ACTIVE").then(fencedlease_sidecar::clock::now)
    });
    assert!(container.is_running(), "nothing ended it");
    assert!(taken_over.as_millis() > deadline, "taken over at {taken_over}, before the deadline {deadline}");
    assert_eq!(other.read("fence-seen"), "2\n", "the fence is what is left");
    assert!(pod.metric("fencedlease_kills_overdue") >= 1.0);
    assert!(pod.log().contains("not proven dead at the deadline"), "{}", pod.log());
    assert_eq!((pod.lease()["state"].as_str(), pod.probe("/ready").status), (Some("LOST"), 503));
    container.signal(Signal::CONT);
    container.dead();
    assert_eq!(container.exit_code(), 195);
    let outcome = "LOST, not Ready, the overdue kill told; no release: the next one held after expiry, with a greater fence";
    shown(&[36], outcome).unwrap();
}
