//! What a guard is doing, for everybody in its container to see: the name of process 1. A process can name nobody but
//! itself, and naming itself never waits, so a workload can neither forge this nor hold it up.

use std::ffi::CStr;

use rustix::thread::set_name;

/// Where the name of the container's first process stands.
const FIRST_PROCESS: &str = "/proc/1/comm";

/// What a guard is doing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Shown {
    /// It waits for a grant.
    Waiting,
    /// Its workload runs under a grant that it would end in time.
    Active,
    /// It ends the workload.
    Ending,
}

// === impl Shown ===

impl Shown {
    const ALL: [Self; 3] = [Self::Waiting, Self::Active, Self::Ending];

    /// Makes it the name of this process. Called by the process's first thread, whose name is the process's.
    pub(super) fn show(self) {
        // Where it cannot be shown, probes and hooks do not run, which is the safe side.
        let _ = set_name(self.name());
    }

    /// What the guard of this container shows; `Err` is the name of a first process that is no guard, or why there is
    /// none to be read.
    pub(crate) fn read() -> Result<Self, String> {
        let text = std::fs::read_to_string(FIRST_PROCESS).map_err(|error| error.to_string())?;
        let name = text.trim_end_matches('\n');
        let shown = Self::ALL.into_iter().find(|shown| shown.name().to_bytes() == name.as_bytes());
        shown.ok_or_else(|| name.to_owned())
    }

    /// At most 15 bytes, or the kernel cuts it.
    const fn name(self) -> &'static CStr {
        match self {
            Self::Waiting => c"guard:waiting",
            Self::Active => c"guard:active",
            Self::Ending => c"guard:ending",
        }
    }
}
