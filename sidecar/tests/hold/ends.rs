//! A holding ends on purpose: renewed until the workload is proven dead, and only then given back.

use rustix::process::Signal;

use crate::support::eventually;
use crate::support::pod::Pod;
use crate::support::world::World;

const POLITE: &str =
    "trap 'echo term > $DIR/term; exit 7' TERM; echo up > $DIR/up; while :; do sleep 0.02; done";

#[test]
fn a_workload_that_ends_gives_the_lease_back_and_comes_back_with_a_greater_fence() {
    let world = World::new();
    let pod = Pod::start("one", world.redis.address(), |_| {});
    let mut container = pod.run("app", "sleep 0.3; exit 3");
    pod.until("ACTIVE");
    assert_eq!(container.exit_code(), 3);
    assert_eq!(pod.until("RELEASED")["reason"], "WorkloadEnded");
    eventually("a lease that was given back", || (!world.has_lease()).then_some(()));
    assert_eq!(world.redis.cli(&["EXISTS", &World::key("clean")]).unwrap(), "1", "it ended in order");
    assert!(!pod.has("fence") && !pod.has("lost"));
    let _again = pod.run("app", "exec sleep 1000");
    assert_eq!(pod.until("ACTIVE")["fence"], 2);
}

#[test]
fn an_application_steps_down() {
    let world = World::new();
    let pod = Pod::start("one", world.redis.address(), |_| {});
    assert_eq!(pod.ask("POST", "/v1/step-down", "").unwrap().status, 409);
    let mut container = pod.run("app", POLITE);
    pod.until("ACTIVE");
    pod.read("up");
    assert_eq!(pod.ask("POST", "/v1/step-down", "").unwrap().status, 202);
    assert_eq!(container.exit_code(), 196);
    pod.read("term");
    assert_eq!(pod.until("RELEASED")["reason"], "StepDown");
    eventually("a lease that was given back", || (!world.has_lease()).then_some(()));
}

#[test]
fn the_end_of_one_container_ends_the_other() {
    let world = World::new();
    let pod = Pod::start("one", world.redis.address(), |settings| {
        settings["containers"] = ["app", "helper"].into();
    });
    let mut app = pod.run("app", "while [ ! -e $DIR/stop ]; do sleep 0.02; done");
    assert_eq!(pod.lease()["state"], "WAITING");
    assert!(!world.has_lease(), "one of two guards is missing");
    let mut helper = pod.run("helper", POLITE);
    pod.until("ACTIVE");
    pod.read("up");
    std::fs::write(pod.path().join("stop"), "").unwrap();
    assert_eq!((app.exit_code(), helper.exit_code()), (0, 194));
    assert_eq!(pod.until("RELEASED")["reason"], "WorkloadEnded");
}

#[test]
fn a_container_of_a_job_completes_without_ending_the_other() {
    let world = World::new();
    let pod = Pod::start("one", world.redis.address(), |settings| {
        settings["containers"] = ["app", "helper"].into();
        settings["restartPolicy"] = "OnFailure".into();
    });
    let mut app = pod.run("app", "exit 0");
    let mut helper = pod.run("helper", "while [ ! -e $DIR/stop ]; do sleep 0.02; done");
    assert_eq!(app.exit_code(), 0);
    assert_eq!(pod.lease()["state"], "ACTIVE");
    std::fs::write(pod.path().join("stop"), "").unwrap();
    assert_eq!(helper.exit_code(), 0);
    assert_eq!(pod.until("RELEASED")["reason"], "WorkloadEnded");
    eventually("a lease that was given back", || (!world.has_lease()).then_some(()));
}

#[test]
fn sigterm_for_the_sidecar_ends_the_workload_first_and_then_the_lease() {
    let world = World::new();
    let mut pod = Pod::start("one", world.redis.address(), |_| {});
    let script = "trap 'sleep 1; test -e $DIR/fence && echo held > $DIR/term; exit 7' TERM; echo up > $DIR/up; while :; do sleep 0.02; done";
    let mut container = pod.run("app", script);
    pod.until("ACTIVE");
    pod.read("up");
    pod.signal(Signal::TERM);
    eventually("an end that has begun", || Some(pod.lease()).filter(|lease| lease["ending"] == "PodDeleted"));
    assert!(world.has_lease(), "it is renewed while the workload ends");
    pod.signal(Signal::TERM);
    assert_eq!(container.exit_code(), 7, "its own code");
    assert_eq!(pod.read("term"), "held\n");
    assert_eq!(pod.exit_code(), Some(0));
    assert!(!world.has_lease() && !pod.has("fence"));
}

#[test]
fn sigterm_for_a_waiting_sidecar_ends_it() {
    let world = World::new();
    let mut pod = Pod::start("one", world.redis.address(), |_| {});
    pod.signal(Signal::TERM);
    assert_eq!(pod.exit_code(), Some(0));
}

#[test]
fn sigterm_for_the_container_is_a_deletion_and_the_lease_is_given_back() {
    let world = World::new();
    let pod = Pod::start("one", world.redis.address(), |_| {});
    let mut container = pod.run("app", POLITE);
    pod.until("ACTIVE");
    pod.read("up");
    container.signal(Signal::TERM);
    assert_eq!(container.exit_code(), 7);
    assert_eq!(pod.until("RELEASED")["reason"], "PodDeleted");
    eventually("a lease that was given back", || (!world.has_lease()).then_some(()));
}

#[test]
fn a_cold_pod_is_started_when_it_holds() {
    let world = World::new();
    let mut first = Pod::start("one", world.redis.address(), |settings| {
        settings["standby"] = serde_json::json!({"mode": "cold", "ready": false});
    });
    first.until("ACTIVE");
    assert_eq!((first.probe("/startup").status, first.probe("/ready").status), (200, 200));
    let second = Pod::start("two", world.redis.address(), |settings| {
        settings["standby"] = serde_json::json!({"mode": "cold", "ready": false});
    });
    eventually("a holder", || (second.lease()["holder"] == "one").then_some(()));
    assert_eq!((second.probe("/startup").status, second.probe("/ready").status), (503, 503));
    let mut container = first.run("app", POLITE);
    first.read("up");
    first.signal(Signal::TERM);
    assert_eq!(container.exit_code(), 7);
    assert_eq!(first.exit_code(), Some(0));
    assert_eq!(second.until("ACTIVE")["fence"], 2);
    assert_eq!(second.probe("/startup").status, 200);
}
