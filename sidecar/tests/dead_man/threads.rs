//! Threads of a process that stand still, one by one, as if they hung in the kernel.

use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use crate::support::eventually;

/// Threads that stand still for as long as this value lives, and this thread with it.
pub(crate) struct Standstill {
    threads: Vec<Pid>,
}

impl Standstill {
    /// Stops the threads of a process whose names are chosen. At least one must be.
    pub(crate) fn of(process: rustix::process::Pid, chosen: impl Fn(&str) -> bool) -> Self {
        let tasks = format!("/proc/{}/task", process.as_raw_nonzero());
        let mut threads = Vec::new();
        for task in std::fs::read_dir(&tasks).unwrap().flatten() {
            let name = std::fs::read_to_string(task.path().join("comm")).unwrap();
            if chosen(name.trim()) {
                threads.push(Pid::from_raw(task.file_name().to_str().unwrap().parse().unwrap()));
            }
        }
        assert!(!threads.is_empty(), "no thread has such a name");
        for thread in &threads {
            ptrace::seize(*thread, ptrace::Options::empty()).unwrap();
            ptrace::interrupt(*thread).unwrap();
            waitpid(*thread, Some(WaitPidFlag::__WALL)).unwrap();
            let stat = format!("{tasks}/{thread}/stat");
            eventually("a thread that stands still", || {
                let stat = std::fs::read_to_string(&stat).ok()?;
                stat.rsplit(')').next()?.trim_start().starts_with('t').then_some(())
            });
        }
        Self { threads }
    }
}

impl Drop for Standstill {
    fn drop(&mut self) {
        for thread in &self.threads {
            // One that was killed meanwhile is gone.
            let _ = ptrace::detach(*thread, None);
        }
    }
}
