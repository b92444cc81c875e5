//! A guarded container: a PID namespace whose first process is the real guard.

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use fencedlease_core::BootTime;
use fencedlease_sidecar::clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::{PATIENCE, eventually};

/// A container that runs, or has run.
pub(crate) struct Container {
    unshare: Child,
    /// The guard, as this test sees it.
    pub(crate) pid: Pid,
    pidfd: OwnedFd,
    namespace: String,
}

impl Container {
    /// Starts a guard with a shell script as its workload.
    pub(crate) fn start(dir: &Path, name: &str, script: &str) -> Self {
        assert!(rustix::process::geteuid().is_root(), "these tests make PID namespaces: run them as root");
        eventually("a guard binary", || dir.join("fencedlease").exists().then_some(()));
        let unshare = Command::new("unshare")
            .args(["--pid", "--fork", "--kill-child", "--mount-proc"])
            .arg(dir.join("fencedlease"))
            .args(["guard", "--container", name, "--termination-message-path"])
            .arg(dir.join(format!("termination-{name}")))
            .arg("--dir")
            .arg(dir)
            .args(["--", "/bin/sh", "-c", script])
            .env("DIR", dir)
            .env("FENCEDLEASE_SOCKET", dir.join("lease.sock"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let id = unshare.id();
        let pid = eventually("a guard below unshare", || {
            let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
            Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)
        });
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
        let link = std::fs::read_link(format!("/proc/{}/ns/pid", pid.as_raw_nonzero())).unwrap();
        Self { unshare, pid, pidfd, namespace: link.display().to_string() }
    }

    /// The exit code that a kubelet would see.
    pub(crate) fn exit_code(&mut self) -> i32 {
        let status = eventually("an end of the container", || self.unshare.try_wait().unwrap());
        status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.unshare.try_wait().unwrap().is_none()
    }

    /// Sends a signal to the guard, as a container runtime does.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).unwrap();
    }

    /// Waits until no process of the container is left, and answers when that was.
    pub(crate) fn dead(&self) -> BootTime {
        let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
        let found = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&patience)).unwrap();
        let at = clock::now();
        assert_eq!(found, 1, "the container lives on");
        let members = self.members();
        assert!(members.is_empty(), "the pidfd is readable, yet these live: {members:?}");
        at
    }

    /// The processes in it, as their `stat` begins; those that are dead and only not buried yet are left out.
    pub(crate) fn members(&self) -> Vec<String> {
        let inside = |path: &Path| {
            std::fs::read_link(path.join("ns/pid"))
                .is_ok_and(|link| link.display().to_string() == self.namespace)
        };
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            if inside(&entry.path())
                && let Ok(stat) = std::fs::read_to_string(entry.path().join("stat"))
            {
                let state = stat.rsplit(')').next().unwrap_or_default().trim_start();
                if !state.starts_with(['Z', 'X']) {
                    found.push(stat.chars().take(60).collect());
                }
            }
        }
        found
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if self.unshare.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = kill_process(self.pid, Signal::KILL);
            let _ = self.unshare.kill();
        }
        let _ = self.unshare.wait();
    }
}
