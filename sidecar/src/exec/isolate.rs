//! A PID namespace for the guard, so that its end is the end of every process of the workload.

use std::fs;

use anyhow::{Context as _, bail};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{Signal, getegid, geteuid, set_parent_process_death_signal};
use rustix::thread::UnshareFlags;

use crate::sys;

/// By what right the namespace is made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Isolation {
    /// As root.
    Root,
    /// In a user namespace of its own, where the kernel lets everybody make one.
    UserNamespace,
}

/// What is possible for who we are. Fails, with the way out, if nothing is.
pub(super) fn possible(user_namespace: bool) -> anyhow::Result<Isolation> {
    match (user_namespace, geteuid().is_root()) {
        (true, _) => Ok(Isolation::UserNamespace),
        (false, true) => Ok(Isolation::Root),
        (false, false) => bail!(
            "a PID namespace, whose end is the end of every process of the command, needs root. Run exec as root (the command may drop rights itself: `-- setpriv --reuid app …`), or pass --user-namespace where the kernel lets other users make one"
        ),
    }
}

/// SIGTERM for this process when its parent ends, however that is killed.
pub(super) fn end_with_parent() -> std::io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::TERM))?)
}

/// A `/proc` that shows this PID namespace, seen by this process and its children alone.
pub(super) fn own_proc() -> std::io::Result<()> {
    sys::unshare(UnshareFlags::NEWNS)?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    mount("proc", "/proc", "proc", MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC, None)?;
    Ok(())
}

impl Isolation {
    /// From now on the first child of this process is PID 1 of a namespace of its own. Only while this process has
    /// one thread.
    pub(super) fn enter(self) -> anyhow::Result<()> {
        if self == Self::UserNamespace {
            let (user, group) = (geteuid().as_raw(), getegid().as_raw());
            sys::unshare(UnshareFlags::NEWUSER).context(
                "cannot make a user namespace: the kernel forbids it (kernel.unprivileged_userns_clone, user.max_user_namespaces, or AppArmor). Run exec as root",
            )?;
            let map = |file: &str, text: String| {
                fs::write(file, text).with_context(|| format!("cannot write {file}"))
            };
            map("/proc/self/setgroups", "deny".to_owned())?;
            map("/proc/self/uid_map", format!("{user} {user} 1"))?;
            map("/proc/self/gid_map", format!("{group} {group} 1"))?;
        }
        sys::unshare(UnshareFlags::NEWPID).context("cannot make a PID namespace")
    }
}
