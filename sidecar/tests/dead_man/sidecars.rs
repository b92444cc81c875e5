//! *hold* is stopped, killed, starved, or hangs: the guard ends the workload at its own instants.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use fencedlease_faults::matrix::shown;
use rustix::process::{Pid, Signal};

use crate::cgroup::{Freezer, Group};
use crate::lane::{Lane, STUBBORN, at_random_instants};
use crate::support::eventually;
use crate::support::world::World;
use crate::threads::Standstill;

/// It was the guard's own decision: nobody told it to.
fn by_its_own_instants(test: &str, lane: &mut Lane<'_>) {
    lane.dies_before_the_deadline(test);
    if let Some(message) = lane.termination_message() {
        assert!(message.contains("nothing was heard from the sidecar"), "{message}");
    }
}

#[test]
fn a_stopped_sidecar() {
    at_random_instants("stopped sidecar", &[30], |mut lane| {
        lane.pod.signal(Signal::STOP);
        by_its_own_instants("stopped sidecar", &mut lane);
        lane.pod.signal(Signal::CONT);
        let reason = lane.pod.until("LOST")["reason"].clone();
        // A thread that was not asleep when it was stopped finds the term instant passed.
        assert!(reason == "WatchLate" || reason == "RenewalTimeout", "{reason}");
    });
}

#[test]
fn a_sidecar_that_is_frozen_in_its_cgroup() {
    let (freezers, turn) = (Freezer::all(), AtomicUsize::new(0));
    at_random_instants("frozen sidecar", &[32], |mut lane| {
        let freezer = freezers[turn.fetch_add(1, Ordering::Relaxed) % freezers.len()];
        let frozen = freezer.freeze(lane.pod.sidecar_pid());
        lane.dies_before_the_deadline("frozen sidecar");
        // So nobody told the guard. What it says of that it may leave out on a busy machine.
        assert!(frozen.is_frozen(), "it was frozen all the time");
        println!("frozen sidecar: by {freezer:?}");
        drop(frozen);
        let reason = lane.pod.until("LOST")["reason"].clone();
        // A thread that was not asleep when it was frozen finds the term instant passed.
        assert!(reason == "WatchLate" || reason == "RenewalTimeout", "{reason}");
    });
}

#[test]
fn a_killed_sidecar() {
    at_random_instants("killed sidecar", &[31], |mut lane| {
        lane.pod.kill_sidecar();
        by_its_own_instants("killed sidecar", &mut lane);
    });
}

/// Lowers a limit of a sidecar that runs. Done as its user, who needs no right for it.
fn limit(process: Pid, limit: &str) {
    let done = Command::new("setpriv")
        .args(["--reuid", "65532", "--regid", "65532", "--clear-groups"])
        .args(["prlimit", limit, "--pid", &process.as_raw_nonzero().to_string()])
        .status()
        .unwrap();
    assert!(done.success());
}

#[test]
fn a_sidecar_whose_watching_thread_fails_ends_at_once() {
    at_random_instants("failed thread", &[31], |mut lane| {
        // `poll` refuses more descriptors than a process may have.
        limit(lane.pod.sidecar_pid(), "--nofile=1:1");
        assert_eq!(lane.pod.exit_code(), Some(1));
        by_its_own_instants("failed thread", &mut lane);
        assert!(lane.pod.log().contains("thread watch ended"), "{}", lane.pod.log());
    });
}

#[test]
fn a_sidecar_whose_watching_thread_hangs() {
    at_random_instants("hanging watch", &[34], |mut lane| {
        let _standstill = Standstill::of(lane.pod.sidecar_pid(), |name| name == "watch");
        by_its_own_instants("hanging watch", &mut lane);
        assert_eq!(lane.pod.ask("GET", "/v1/lease", "").unwrap().status, 200, "the others go on");
    });
}

#[test]
fn a_sidecar_all_of_whose_threads_hang() {
    at_random_instants("all hang", &[34], |mut lane| {
        let _standstill = Standstill::of(lane.pod.sidecar_pid(), |_| true);
        by_its_own_instants("all hang", &mut lane);
    });
}

#[test]
fn a_sidecar_all_of_whose_other_threads_hang_is_lost_by_the_watching_one() {
    at_random_instants("all others hang", &[34], |mut lane| {
        let standstill = Standstill::of(lane.pod.sidecar_pid(), |name| name != "watch");
        lane.dies_before_the_deadline("all others hang");
        if let Some(message) = lane.termination_message() {
            assert!(message.contains("RenewalTimeout"), "{message}");
        }
        drop(standstill);
        assert_eq!(lane.pod.until("LOST")["reason"], "RenewalTimeout");
    });
}

#[test]
fn a_starved_sidecar() {
    at_random_instants("starved sidecar", &[33], |mut lane| {
        let name = lane.pod.sidecar_pid().as_raw_nonzero().to_string();
        // A thousandth, shared with others: it runs some microseconds in a second.
        let group = Group::starved(&name, 1000, 1_000_000, 10);
        assert!(group.put(lane.pod.sidecar_pid()));
        eventually("a process that has to wait", || (group.throttled() > 0).then_some(()));
        lane.dies_before_the_deadline("starved sidecar");
        let message = lane.termination_message().unwrap_or_default();
        println!("starved sidecar: {} periods throttled; {message}", group.throttled());
    });
}

#[test]
fn a_call_to_redis_that_panics_is_a_loss() {
    let world = World::new();
    let address = format!("localhost:{}", world.redis.address().port());
    let mut lane = Lane::start_changed(&world, "panics", STUBBORN, |settings| {
        settings["redis"]["addresses"] = [address].into();
    });
    let tasks = format!("/proc/{}/task", lane.pod.sidecar_pid().as_raw_nonzero());
    eventually("a sidecar without the thread that looked the name up", || {
        let names = std::fs::read_dir(&tasks).unwrap().flatten();
        let mut names = names.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        names.all(|name| !name.starts_with("tokio")).then_some(())
    });
    // To look it up again the runtime needs a thread, and panics where it gets none.
    limit(lane.pod.sidecar_pid(), "--nproc=0:0");
    world.redis.cli(&["CLIENT", "KILL", "TYPE", "normal"]).unwrap();
    lane.dies_before_the_deadline("a call that panics");
    assert!(lane.pod.log().contains("panicked"), "{}", lane.pod.log());
    assert_eq!(lane.pod.until("LOST")["reason"], "RenewalTimeout");
    shown(&[31], &format!("a panic in a runtime thread: {}", lane.outcome())).unwrap();
}
