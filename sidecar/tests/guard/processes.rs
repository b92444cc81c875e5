//! Workloads that do not want to end, and everything else that can live in a container.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use fencedlease_core::BootTime;
use fencedlease_faults::matrix::shown;
use fencedlease_sidecar::clock;
use fencedlease_wire::{EndReason, LossReason};

use crate::support::container::{Container, Namespace, Options, Pod};
use crate::support::{Instants, end, eventually, holding};

const LOST: EndReason = EndReason::Lost(LossReason::RenewalTimeout);

fn soon() -> Instants {
    Instants::after(Duration::from_millis(800), Duration::from_millis(200))
}

/// Ends a workload that has written `up` as at a loss by silence, and asserts the promise.
#[track_caller]
fn dies_in_time(
    test: &str,
    rows: &[u8],
    pod: &Pod,
    mut container: Container,
    is_complete: impl Fn(&[String]) -> bool,
) {
    let sidecar = pod.sidecar();
    let mut guard = sidecar.start(&holding(1), Instants::far());
    let namespace = Namespace::of(guard.pidfd.try_clone().unwrap());
    pod.read("up");
    eventually("the workload that the test is about", || is_complete(&namespace.members()).then_some(()));
    let instants = soon();
    guard.send(&end(&holding(1), LOST, instants.kill_at, Some(195)));
    let at = namespace.dead_in_time(test, instants);
    assert_eq!(container.exit_code(), 195);
    keep(test, rows, at, instants);
}

#[track_caller]
fn keep(test: &str, rows: &[u8], at: BootTime, instants: Instants) {
    let before = instants.deadline().since(at).as_millis();
    shown(rows, &format!("{test}: nothing left {before} ms before the deadline")).unwrap();
}

fn contains(members: &[String], name: &str, count: usize) -> bool {
    members.iter().filter(|member| *member == name).count() >= count
}

#[test]
fn a_workload_that_ignores_sigterm_dies() {
    let pod = Pod::new();
    let container = pod.run_script("trap '' TERM; echo up > $DIR/up; while :; do sleep 0.05; done");
    dies_in_time("ignores SIGTERM", &[37], &pod, container, |_| true);
}

#[test]
fn daemons_in_sessions_of_their_own_die() {
    let pod = Pod::new();
    let script = "trap '' TERM; for i in 1 2 3 4 5; do (setsid sh -c 'sleep 1000 & sleep 1000' &); done; \
                  echo up > $DIR/up; while :; do sleep 0.05; done";
    let container = pod.run_script(script);
    dies_in_time("double forks", &[38], &pod, container, |members| contains(members, "sleep", 10));
}

#[test]
fn a_child_that_changed_its_user_dies() {
    let pod = Pod::new();
    let script = "trap '' TERM; setpriv --reuid=1000 --regid=1000 --clear-groups sh -c 'trap \"\" TERM; exec sleep 1000' & \
                  echo up > $DIR/up; while :; do :; sleep 0.05; done";
    let container = pod.run_script(script);
    dies_in_time("changed user", &[38], &pod, container, |members| contains(members, "sleep", 1));
}

#[test]
fn a_setuid_root_child_of_an_ordinary_user_dies() {
    let pod = Pod::new();
    let found = Command::new("sh").args(["-c", "command -v setpriv"]).output().unwrap();
    let setpriv = PathBuf::from(String::from_utf8(found.stdout).unwrap().trim());
    let helper = pod.path().join("become-root");
    assert!(Command::new("cp").arg(setpriv).arg(&helper).status().unwrap().success());
    std::fs::set_permissions(&helper, Permissions::from_mode(0o4755)).unwrap();
    // With a real user of 0 it is beyond the signals of user 1000: only the namespace's end ends it.
    let script = "trap '' TERM; $DIR/become-root --reuid=0 --regid=0 --clear-groups sleep 1000 & helper=$!; \
                  until grep -q '^Uid:.0.0.0.0$' /proc/$helper/status && grep -q sleep /proc/$helper/comm; do sleep 0.02; done; \
                  kill -KILL $helper 2> $DIR/refused; kill -0 -1; echo up > $DIR/up; while :; do sleep 0.05; done";
    let options = Options { user: 1000, ..Options::default() };
    let container = pod.run_with(options, &["/bin/sh", "-c", script]);
    dies_in_time("setuid-root child", &[38], &pod, container, |members| contains(members, "sleep", 1));
    let refused = pod.read("refused");
    assert!(refused.contains("not permitted"), "user 1000 could kill it: {refused}");
}

/// Forks as fast as it can, within limits that hold even where a test fails: 150 processes, 25 seconds.
const STORM: &str = "echo up > $DIR/up; \
    exec prlimit --nproc=150 perl -e '$SIG{TERM} = q(IGNORE); my $end = time + 25; while (time < $end) { fork }'";

#[test]
fn a_fork_storm_dies() {
    let pod = Pod::alone();
    let sidecar = pod.sidecar();
    let options = Options { user: 64_321, ..Options::default() };
    let mut container = pod.run_with(options, &["/bin/sh", "-c", STORM]);
    let mut guard = sidecar.start(&holding(1), Instants::far());
    let namespace = Namespace::of(guard.pidfd.try_clone().unwrap());
    eventually("a storm", || contains(&namespace.members(), "perl", 100).then_some(()));
    let instants = soon();
    let mut line = serde_json::to_vec(&end(&holding(1), LOST, instants.kill_at, Some(195))).unwrap();
    line.push(b'\n');
    // A guard that was starved for more than a stall has begun to end it already, and may be gone.
    let _ = guard.send_raw(&line);
    let at = namespace.dead_in_time("fork storm", instants);
    keep("fork storm", &[38], at, instants);
    assert_eq!(container.exit_code(), 195);
}

#[test]
fn orphans_are_reaped() {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let script =
        "i=0; while [ $i -lt 300 ]; do (true & true &); i=$((i+1)); done; echo up > $DIR/up; exec sleep 1000";
    let container = pod.run_script(script);
    let _guard = sidecar.start(&holding(1), Instants::far());
    pod.read("up");
    let pid = container.guard_pid().as_raw_nonzero();
    eventually("a guard with the workload as its only child", || {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        (children.split_whitespace().count() == 1).then_some(())
    });
}

#[test]
fn a_process_that_joined_from_outside_dies() {
    let pod = Pod::new();
    let script = "trap '' TERM; echo up > $DIR/up; while :; do sleep 0.05; done";
    let options = Options { user: 1000, ..Options::default() };
    let container = pod.run_with(options, &["/bin/sh", "-c", script]);
    // As `kubectl exec` and debug containers do; of root, so beyond the signals of the guard's user.
    let mut joined = Command::new("sh")
        .args(["-c", "nsenter --target $0 --pid perl -e 'sleep 1000'; exit 0"])
        .arg(container.guard_pid().to_string())
        .spawn()
        .unwrap();
    dies_in_time("joined from outside", &[38], &pod, container, |members| contains(members, "perl", 1));
    assert!(joined.wait().unwrap().success());
}

#[test]
fn a_stuck_log_delays_no_kill() {
    let pod = Pod::new();
    let (unread, full) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let options = Options {
        stdout: Stdio::from(full.try_clone().unwrap()),
        stderr: Some(Stdio::from(full)),
        ..Options::default()
    };
    let script = "trap '' TERM; (yes >&2 &); sleep 0.3; echo up > $DIR/up; exec yes";
    let container = pod.run_with(options, &["/bin/sh", "-c", script]);
    dies_in_time("stuck log", &[42], &pod, container, |members| contains(members, "yes", 2));
    drop(unread);
}

#[test]
fn a_full_disk_delays_no_kill() {
    let pod = Pod::new();
    let full = pod.path().join("full");
    std::fs::create_dir(&full).unwrap();
    let options = Options {
        prepare: "mount -t tmpfs -o size=64k none $DIR/full; touch $DIR/full/message; \
                  if cat /dev/zero > $DIR/full/zeros 2> /dev/null; then exit 1; fi",
        termination_message_path: Some(full.join("message")),
        ..Options::default()
    };
    let script = "trap '' TERM; echo up > $DIR/up; while :; do sleep 0.05; done";
    let container = pod.run_with(options, &["/bin/sh", "-c", script]);
    dies_in_time("full disk", &[42], &pod, container, |_| true);
}

/// A file system of its own in a file, mounted in the tests' namespace, that can be frozen.
struct Disk(PathBuf);

impl Disk {
    fn mount(pod: &Pod) -> Self {
        let dir = pod.path().join("disk");
        std::fs::create_dir(&dir).unwrap();
        let script = "set -e; truncate -s 8M $DIR/image; mkfs.ext4 -q $DIR/image; \
                      mount -o loop $DIR/image $DIR/disk; touch $DIR/disk/message";
        let made = Command::new("sh").args(["-c", script]).env("DIR", pod.path()).status().unwrap();
        assert!(made.success(), "this test mounts an ext4 file system through a loop device");
        Self(dir)
    }

    fn run(&self, program: &str, arguments: &[&str]) -> bool {
        Command::new(program).args(arguments).arg(&self.0).output().unwrap().status.success()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.run("fsfreeze", &["-u"]);
        self.run("umount", &[]);
    }
}

#[test]
fn a_frozen_disk_delays_no_kill() {
    let pod = Pod::new();
    let sidecar = pod.sidecar();
    let disk = Disk::mount(&pod);
    let options =
        Options { termination_message_path: Some(disk.0.join("message")), user: 1000, ..Options::default() };
    std::fs::set_permissions(disk.0.join("message"), Permissions::from_mode(0o666)).unwrap();
    let script = "trap '' TERM; (setsid sleep 1000 &); echo up > $DIR/up; while :; do sleep 0.05; done";
    let mut container = pod.run_with(options, &["/bin/sh", "-c", script]);
    // Dropped before the container, whose end would wait for it.
    let disk = disk;
    let instants = soon();
    let guard = sidecar.start(&holding(1), instants);
    let namespace = Namespace::of(guard.pidfd.try_clone().unwrap());
    pod.read("up");
    assert!(disk.run("fsfreeze", &["-f"]));
    // What writes the message hangs in the kernel, where no signal reaches it. All else is gone.
    eventually("a workload that is gone", || {
        namespace.members().iter().all(|member| member.starts_with("guard:")).then_some(())
    });
    let gone = clock::now();
    println!(
        "frozen disk: workload gone at {gone}, term instant {}, deadline {}",
        instants.term_at,
        instants.deadline()
    );
    assert!(gone > instants.term_at && gone < instants.deadline());
    assert!(!namespace.members().is_empty(), "the disk was frozen, so something hangs on it");
    assert!(disk.run("fsfreeze", &["-u"]));
    namespace.dead();
    assert_eq!(container.exit_code(), 195);
    let outcome = "a frozen disk under the termination message: the workload gone in time, the guard when the disk went on";
    shown(&[42], outcome).unwrap();
}
