//! A workload that SIGKILL does not end, or not at once: nothing is released, people are told, and the lease runs out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fencedlease_faults::matrix::shown;
use fencedlease_faults::{Clients, Fault};
use rustix::process::Pid;

use crate::cgroup::Freezer;
use crate::lane::{STUBBORN, workload};
use crate::support::container::Container;
use crate::support::eventually;
use crate::support::pod::Pod;
use crate::support::world::World;

/// A field of a process's `stat` after its name, counted from its state; nothing once it is gone.
fn stat(process: Pid, field: usize) -> String {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    after_name.split_whitespace().nth(field).unwrap_or_default().to_owned()
}

/// The guard's own child, which runs the workload's command and does not end on SIGTERM.
fn first_process(container: &Container) -> Pid {
    let guard = container.pid.as_raw_nonzero().to_string();
    eventually("the workload's first process", || {
        workload(container).into_iter().find(|process| stat(*process, 1) == guard)
    })
}

/// Cuts a holder off whose workload is held by what `hold` gives, until another pod holds. If the workload lives then,
/// it must be after the deadline, and said. Answers what came of it, once the workload was let go and is dead.
fn followed<H>(
    script: &str,
    prepare: impl FnOnce(&Path),
    hold: impl FnOnce(&Pod, &Container) -> H,
) -> (bool, String) {
    let world = World::new();
    let proxy = world.proxy();
    let pod = Pod::start("one", proxy.address, |_| {});
    prepare(pod.path());
    let mut container = pod.run("app", script);
    pod.until("ACTIVE");
    pod.read("up");
    let grip = hold(&pod, &container);
    let other = Pod::start("other", world.redis.address(), |_| {});
    let _standby = other.run("app", "exec sleep 1000");
    eventually("a standby that knows its holder", || (other.lease()["holder"] == "one").then_some(()));

    proxy.handle.set(Clients::All, Fault::Cut);
    let deadline = pod.lost()["deadlineBoottimeMs"].as_u64().unwrap();
    let (taken_over, lives) = eventually("a new holder", || {
        let lives = !workload(&container).is_empty();
        (other.lease()["state"] == "ACTIVE").then(|| (fencedlease_sidecar::clock::now(), lives))
    });
    let outcome = if lives {
        let taken_over = taken_over.as_millis();
        assert!(taken_over > deadline, "taken over at {taken_over}, before {deadline}, from one that lives");
        assert!(pod.metric("fencedlease_kills_overdue") >= 1.0);
        assert!(pod.log().contains("not proven dead at the deadline"), "{}", pod.log());
        assert_eq!((pod.lease()["state"].as_str(), pod.probe("/ready").status), (Some("LOST"), 503));
        let late = taken_over - deadline;
        format!(
            "not dead: LOST, not Ready, the overdue kill told; no release: held by the next {late} ms after the deadline"
        )
    } else {
        "dead all the same, and then followed".to_owned()
    };
    drop(grip);
    container.dead();
    assert_eq!(container.exit_code(), 195);
    (lives, outcome)
}

/// What cgroup v1 has frozen no signal ends; what v2 has frozen SIGKILL does.
#[test]
fn the_lease_of_a_workload_that_is_frozen_is_given_back_only_once_it_is_dead() {
    let outcomes = Freezer::all().into_iter().map(|freezer| {
        let (_, outcome) =
            followed(STUBBORN, |_| {}, |_, container| freezer.freeze(first_process(container)));
        format!("{}: {outcome}", freezer.name())
    });
    shown(&[40], &outcomes.collect::<Vec<_>>().join("; ")).unwrap();
}

/// A file system of its own in a file, mounted in the tests' namespace, that can be frozen.
struct Disk(PathBuf);

impl Disk {
    fn mount(folder: &Path) {
        let script = "set -e; mkdir $DIR/disk; truncate -s 8M $DIR/image; mkfs.ext4 -q $DIR/image; \
                      mount -o loop $DIR/image $DIR/disk; chmod 777 $DIR/disk";
        let made = Command::new("sh").args(["-c", script]).env("DIR", folder).status().unwrap();
        assert!(made.success(), "this test mounts an ext4 file system through a loop device");
    }

    fn freeze(folder: &Path) -> Self {
        let disk = Self(folder.join("disk"));
        assert!(disk.run("fsfreeze", &["-f"]));
        disk
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
fn the_lease_of_a_workload_that_hangs_in_the_kernel_is_not_given_back() {
    let writes = "trap '' TERM; echo up > $DIR/up; until [ -e $DIR/go ]; do sleep 0.02; done; \
                  echo x > $DIR/disk/file; while :; do sleep 0.02; done";
    let (lives, outcome) = followed(writes, Disk::mount, |pod, container| {
        let first = first_process(container);
        let disk = Disk::freeze(pod.path());
        fs::write(pod.path().join("go"), "").unwrap();
        eventually("a process that hangs in the kernel", || (stat(first, 0) == "D").then_some(()));
        disk
    });
    assert!(lives, "it hung until the disk went on");
    shown(&[39], &outcome).unwrap();
}
