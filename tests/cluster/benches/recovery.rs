//! A harness that is killed at any point leaves nothing that its next call does not clear away.
//!
//! It ends the cluster that runs, and takes about a minute:
//! `cargo test -p fencedlease-cluster --bench recovery`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "it is a test; only its kind of target is not")]

use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use fencedlease_cluster::cluster::{Health, health, leftovers};
use fencedlease_cluster::paths::Paths;

/// When `up` is killed, in milliseconds after its start: in the files, the namespaces, the network, the
/// components, the nodes.
const KILLED_AFTER_MS: [u64; 7] = [5, 40, 120, 400, 1_500, 4_000, 7_000];

/// There is one cluster, so there is one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn cluster(action: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cluster"));
    command.args(action.split(' ')).stdin(Stdio::null());
    command
}

fn finish(action: &str) -> Output {
    let output = cluster(action).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cluster {action}: {text}");
    output
}

fn killed_after(action: &str, delay: Duration) {
    let mut child = cluster(action).stderr(Stdio::null()).spawn().unwrap();
    thread::sleep(delay);
    child.kill().unwrap();
    child.wait().unwrap();
}

fn assert_nothing_is_left(paths: &Paths, after: &str) {
    let left = leftovers(paths).unwrap();
    assert!(left.is_empty(), "after {after}:\n{left}");
}

#[test]
fn a_killed_start_is_cleared_by_down_and_by_the_next_up() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let paths = Paths::from_env().unwrap();
    finish("up");
    finish("down");
    assert_nothing_is_left(&paths, "a complete run");
    for after_ms in KILLED_AFTER_MS {
        killed_after("up", Duration::from_millis(after_ms));
        finish("down");
        assert_nothing_is_left(&paths, &format!("an up that was killed after {after_ms} ms"));
    }
    for after_ms in [120, 4_000] {
        killed_after("up", Duration::from_millis(after_ms));
        finish("up");
        assert!(matches!(health(&paths).unwrap(), Health::Healthy(_)));
        killed_after("down", Duration::from_millis(after_ms / 40));
        finish("down");
        assert_nothing_is_left(&paths, "a down that was killed");
    }
}

#[test]
fn a_killed_join_of_a_node_is_made_good_while_the_cluster_goes_on() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let paths = Paths::from_env().unwrap();
    finish("down");
    finish("up");
    let nodes = || match health(&paths).unwrap() {
        Health::Healthy(state) => state.nodes,
        other => panic!("not healthy: {other:?}"),
    };
    for after_ms in [160, 300, 600] {
        killed_after("up --nodes 2", Duration::from_millis(after_ms));
        assert_eq!(nodes(), 1, "killed after {after_ms} ms");
    }
    finish("up --nodes 2");
    assert_eq!(nodes(), 2);
    finish("down");
    assert_nothing_is_left(&paths, "a node that joined late");
}

#[test]
fn a_cluster_that_lost_a_component_is_started_anew() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let paths = Paths::from_env().unwrap();
    finish("up");
    let killed = Command::new(env!("CARGO_BIN_EXE_cluster"))
        .args(["exec", "control", "--", "sh", "-c", "kill -9 $(pidof etcd)"])
        .status()
        .unwrap();
    assert!(killed.success());
    thread::sleep(Duration::from_millis(500));
    let Health::Broken(why) = health(&paths).unwrap() else {
        panic!("a cluster without etcd is not healthy")
    };
    assert!(why.contains("etcd on control ended (signal 9)"), "{why}");
    finish("up");
    assert!(matches!(health(&paths).unwrap(), Health::Healthy(_)));
    finish("down");
    assert_nothing_is_left(&paths, "a cluster that was started anew");
}
