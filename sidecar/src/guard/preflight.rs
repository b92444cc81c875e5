//! Whether a guard can guard here, asked before anything else.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, PidfdFlags, getpid, pidfd_open, set_dumpable_behavior};
use rustix::system::uname;

/// Why a guard refuses to start. The texts name what was found and the next step.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// Another process is PID 1, so this one's end would not be the end of all.
    #[error(
        "guard runs as process {pid}, and only as process 1 of its PID namespace does its end prove that the workload is dead: start it as the container's command, without shareProcessNamespace, hostPID or an init program before it"
    )]
    NotFirst {
        /// What it is instead.
        pid: i32,
    },
    /// No pidfds.
    #[error(
        "the kernel has no pidfds ({error}): it is Linux {release}, and 5.3 or newer is needed. If it is newer, let the container's seccomp profile allow pidfd_open"
    )]
    NoPidfd {
        /// What the kernel said.
        error: Errno,
        /// The kernel's release.
        release: String,
    },
    /// The shared volume is missing.
    #[error(
        "{dir} is not a folder here ({error}): the volume fencedlease of this pod must be mounted there. Delete the pod, so that it is made again by its owner and passes the webhook"
    )]
    NoSharedVolume {
        /// Where it should be.
        dir: String,
        /// What was found.
        error: String,
    },
    /// The process could not be shut to its own workload.
    #[error("prctl(PR_SET_DUMPABLE) failed ({0}): let the container's seccomp profile allow prctl")]
    Dumpable(Errno),
}

/// Checks everything and answers a pidfd of this process, the proof of death for the sidecar.
pub(super) fn check(shared_dir: &Path) -> Result<OwnedFd, Refusal> {
    let pid = getpid();
    if !pid.is_init() {
        return Err(Refusal::NotFirst { pid: pid.as_raw_nonzero().get() });
    }
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| Refusal::NoPidfd {
        error,
        release: uname().release().to_string_lossy().into_owned(),
    })?;
    let missing = |error: String| Refusal::NoSharedVolume { dir: shared_dir.display().to_string(), error };
    match std::fs::metadata(shared_dir) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(missing("it is a file".to_owned())),
        Err(error) => return Err(missing(error.to_string())),
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(Refusal::Dumpable)?;
    Ok(pidfd)
}
