//! A container as far as a guard cares: a PID namespace whose first process it is.

use std::io::Read as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;

use fencedlease_core::BootTime;
use fencedlease_core::timing::STALL;
use fencedlease_sidecar::clock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::sidecar::Sidecar;
use super::{Instants, PATIENCE, eventually};

/// A folder that stands for the shared volume, with guard binary and room for files of the workload.
pub(crate) struct Pod {
    dir: TempDir,
    _turn: Turn,
}

/// Whether other tests may run beside this one.
enum Turn {
    Shared { _guard: RwLockReadGuard<'static, ()> },
    Alone { _guard: RwLockWriteGuard<'static, ()> },
}

static TURNS: RwLock<()> = RwLock::new(());

/// A guard that runs, or has run, in a namespace of its own.
pub(crate) struct Container {
    unshare: Child,
    log: Option<JoinHandle<String>>,
}

/// How a container is to be made.
pub(crate) struct Options<'a> {
    pub(crate) user: u32,
    pub(crate) stdout: Stdio,
    pub(crate) termination_message_path: Option<PathBuf>,
    pub(crate) environment: &'a [(&'a str, &'a str)],
    pub(crate) own_namespace: bool,
    /// What the guard takes for the shared volume; `None` is the pod's folder.
    pub(crate) shared_dir: Option<&'a str>,
    /// Shell commands that run as PID 1, in the container's mount namespace, before the guard does.
    pub(crate) prepare: &'a str,
    /// Where the guard's log goes; `None` is shown where a test fails.
    pub(crate) stderr: Option<Stdio>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            user: 0,
            stdout: Stdio::null(),
            termination_message_path: None,
            environment: &[],
            own_namespace: true,
            shared_dir: None,
            prepare: "",
            stderr: None,
        }
    }
}

impl Pod {
    pub(crate) fn new() -> Self {
        Self::with(Turn::Shared { _guard: TURNS.read().unwrap_or_else(PoisonError::into_inner) })
    }

    /// A pod beside which no other test runs, since what it does would starve them.
    pub(crate) fn alone() -> Self {
        Self::with(Turn::Alone { _guard: TURNS.write().unwrap_or_else(PoisonError::into_inner) })
    }

    fn with(turn: Turn) -> Self {
        assert!(rustix::process::geteuid().is_root(), "these tests make PID namespaces: run them as root");
        let dir = tempfile::Builder::new().prefix("fencedlease-guard").tempdir().unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(dir.path(), open).unwrap();
        // By a process of its own: a child that another test starts meanwhile would have our copy open for writing,
        // and nobody can run it then.
        let mut cp = Command::new("cp");
        let copied = cp.arg(env!("CARGO_BIN_EXE_fencedlease")).arg(dir.path()).status().unwrap();
        assert!(copied.success());
        std::fs::write(dir.path().join("termination-log"), "").unwrap();
        let writable = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(dir.path().join("termination-log"), writable).unwrap();
        Self { dir, _turn: turn }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn sidecar(&self) -> Sidecar {
        Sidecar::serve(self.path())
    }

    /// Starts a guard for this command.
    pub(crate) fn run(&self, command: &[&str]) -> Container {
        self.run_with(Options::default(), command)
    }

    /// Starts a guard for a shell script that finds the pod's folder in `$DIR`.
    pub(crate) fn run_script(&self, script: &str) -> Container {
        self.run(&["/bin/sh", "-c", script])
    }

    pub(crate) fn run_with(&self, options: Options<'_>, command: &[&str]) -> Container {
        let mut words: Vec<String> = Vec::new();
        if options.own_namespace {
            words.extend(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"].map(str::to_owned));
        }
        if !options.prepare.is_empty() {
            let script = format!("set -e; {}; exec \"$@\"", options.prepare);
            words.extend(["/bin/sh".to_owned(), "-c".to_owned(), script, "sh".to_owned()]);
        }
        if options.user != 0 {
            let ids = [format!("--reuid={}", options.user), format!("--regid={}", options.user)];
            words.push("setpriv".to_owned());
            words.extend(ids);
            words.push("--clear-groups".to_owned());
        }
        let dir = self.path().display();
        let message_path =
            options.termination_message_path.unwrap_or_else(|| self.path().join("termination-log"));
        words.extend([
            format!("{dir}/fencedlease"),
            "guard".to_owned(),
            "--container=app".to_owned(),
            options.shared_dir.map_or_else(|| format!("--dir={dir}"), |dir| format!("--dir={dir}")),
            format!("--termination-message-path={}", message_path.display()),
            "--".to_owned(),
        ]);
        words.extend(command.iter().map(|word| (*word).to_owned()));
        let mut unshare = Command::new(&words[0])
            .args(&words[1..])
            .env("DIR", self.path())
            .envs(options.environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(options.stdout)
            .stderr(options.stderr.unwrap_or_else(Stdio::piped))
            .spawn()
            .unwrap();
        let log = unshare.stderr.take().map(|mut stderr| {
            std::thread::spawn(move || {
                let mut text = Vec::new();
                let _ = stderr.read_to_end(&mut text);
                String::from_utf8_lossy(&text).into_owned()
            })
        });
        Container { unshare, log }
    }

    /// What the workload wrote into this file of the pod's folder, once it is there and not empty.
    pub(crate) fn read(&self, name: &str) -> String {
        eventually(&format!("a file {name}"), || {
            std::fs::read_to_string(self.path().join(name)).ok().filter(|text| text.ends_with('\n'))
        })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.path().join(name).exists()
    }

    pub(crate) fn termination_message(&self) -> String {
        std::fs::read_to_string(self.path().join("termination-log")).unwrap()
    }
}

impl Container {
    /// The exit code that a kubelet would see.
    pub(crate) fn exit_code(&mut self) -> i32 {
        let status = eventually("an end of the container", || self.unshare.try_wait().unwrap());
        status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap()
    }

    /// What the guard and the workload wrote to standard error, once nobody writes any more.
    pub(crate) fn log(&mut self) -> String {
        self.log.take().and_then(|log| log.join().ok()).unwrap_or_default()
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.unshare.try_wait().unwrap().is_none()
    }

    /// The guard's process id as this test sees it.
    pub(crate) fn guard_pid(&self) -> Pid {
        eventually("a guard below unshare", || self.child())
    }

    fn child(&self) -> Option<Pid> {
        let id = self.unshare.id();
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)
    }

    /// Sends a signal to the guard, from outside its namespace as a container runtime does.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.guard_pid(), signal).unwrap();
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // --kill-child does not reach a guard that changed its user, so it is killed by its id.
        if let Some(guard) =
            self.unshare.try_wait().is_ok_and(|ended| ended.is_none()).then(|| self.child()).flatten()
        {
            let _ = kill_process(guard, Signal::KILL);
        }
        let _ = self.unshare.kill();
        let _ = self.unshare.wait();
        let log = self.log();
        if std::thread::panicking() {
            println!("the guard's log:\n{log}");
        }
    }
}

/// A namespace whose members can be listed, and whose first process's end can be waited for.
pub(crate) struct Namespace {
    pidfd: OwnedFd,
    link: PathBuf,
}

impl Namespace {
    /// The namespace whose first process this pidfd is.
    pub(crate) fn of(pidfd: OwnedFd) -> Self {
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd())).unwrap();
        let pid = info.lines().find_map(|line| line.strip_prefix("Pid:")).unwrap().trim().to_owned();
        let link = std::fs::read_link(format!("/proc/{pid}/ns/pid")).unwrap();
        Self { pidfd, link }
    }

    /// The processes in it, zombies left out.
    pub(crate) fn members(&self) -> Vec<String> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let path = entry.path();
            let inside = std::fs::read_link(path.join("ns/pid")).is_ok_and(|link| link == self.link);
            if inside && has_live_thread(&path) {
                found.push(std::fs::read_to_string(path.join("comm")).unwrap_or_default().trim().to_owned());
            }
        }
        found
    }

    /// Waits for the proof of death, then lists the namespace: it must be empty. Answers the instant.
    pub(crate) fn dead(&self) -> BootTime {
        let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
        let found = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&patience)).unwrap();
        let at = clock::now();
        let members = self.members();
        assert_eq!(found, 1, "the container lives on with {members:?}");
        assert!(members.is_empty(), "the pidfd is readable, yet {members:?} live");
        at
    }

    /// As [`Self::dead`], and before the deadline. SIGKILL was due at the kill instant.
    pub(crate) fn dead_in_time(&self, test: &str, instants: Instants) -> BootTime {
        self.dead_before(test, instants.kill_at, instants.deadline())
    }

    /// As [`Self::dead_in_time`], where SIGKILL was due when the grace after the term instant was over.
    pub(crate) fn dead_after_silence(&self, test: &str, instants: Instants) -> BootTime {
        self.dead_before(test, instants.kill_at.before(STALL), instants.deadline())
    }

    fn dead_before(&self, test: &str, kill_due: BootTime, deadline: BootTime) -> BootTime {
        let at = self.dead();
        let (after, before) = (at.since(kill_due).as_micros(), deadline.since(at).as_millis());
        println!("{test}: proven dead {after} us after SIGKILL was due, {before} ms before the deadline");
        assert!(at < deadline, "dead at {at}, after the deadline {deadline}");
        at
    }
}

/// Whether any thread of this process is more than a zombie.
fn has_live_thread(process: &Path) -> bool {
    let Ok(threads) = std::fs::read_dir(process.join("task")) else { return false };
    threads.flatten().any(|thread| {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let state = status.lines().find_map(|line| line.strip_prefix("State:"));
        state.is_some_and(|state| !state.trim_start().starts_with(['Z', 'X']))
    })
}
