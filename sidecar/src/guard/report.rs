//! What a guard tells people: lines on standard error, and the container's termination message. Neither is
//! ever waited for longer than the caller allows.

use std::cell::Cell;
use std::ffi::CString;
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use fencedlease_core::BootTime;
use rustix::event::{Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::{ReadWriteFlags, pwritev2, write};
use rustix::process::{Pid, WaitOptions, waitpid};
use serde_json::{Value, json};

use crate::clock;
use crate::sys;

/// Standard error for lines of JSON. The container's log may be stuck, so it is opened anew without
/// blocking: the flag on the inherited one would be the workload's too.
#[derive(Debug)]
pub(super) struct Log {
    container: String,
    /// `None` where it could not be opened so, as under another user's pipe, or is a file.
    nonblocking: Option<OwnedFd>,
    may_block: Cell<bool>,
    quiet: bool,
}

impl Log {
    /// The log of this container's guard. A quiet one says only what is worth a warning.
    pub(super) fn new(container: String, quiet: bool) -> Self {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        // A regular file blocks whatever its flags say.
        let nonblocking = open("/proc/self/fd/2", flags, Mode::empty()).ok().filter(|fd| {
            fstat(fd).is_ok_and(|found| FileType::from_raw_mode(found.st_mode) != FileType::RegularFile)
        });
        Self { container, nonblocking, may_block: Cell::new(true), quiet }
    }

    /// From now on a line is dropped rather than waited for.
    pub(super) fn never_block(&self) {
        self.may_block.set(false);
    }

    /// Writes one line.
    pub(super) fn line(&self, level: &str, message: &str, facts: Value) {
        if self.quiet && level == "info" {
            return;
        }
        let mut line = json!({
            "level": level,
            "part": "guard",
            "container": self.container,
            "boottimeMs": clock::now().as_millis(),
            "message": message,
        });
        if let (Value::Object(line), Value::Object(facts)) = (&mut line, facts) {
            line.extend(facts);
        }
        let text = format!("{line}\n");
        // A log that cannot be written is nobody's reason to stop.
        let _ = match &self.nonblocking {
            Some(fd) => write(fd, text.as_bytes()),
            None if self.may_block.get() => write(std::io::stderr(), text.as_bytes()),
            // Where the kernel cannot promise not to block, it refuses.
            None => pwritev2(
                std::io::stderr(),
                &[IoSlice::new(text.as_bytes())],
                u64::MAX,
                ReadWriteFlags::NOWAIT,
            ),
        };
    }
}

/// Appends a text to the termination message, which is the kubelet's file: where it does not exist nobody
/// reads it. Waits at most `patience`; what is not written by then may be lost.
pub(super) fn termination_message(path: &Path, text: &str, patience: Duration) {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return };
    let line = format!("{text}\n");
    let until = clock::now() + patience;
    // A container full of dying processes may be at its limit for a moment.
    while clock::now() < until {
        match sys::append_in_child(&path, line.as_bytes()) {
            Ok(writer) => return wait_for(writer, until),
            Err(_) => pause(Duration::from_millis(5)),
        }
    }
}

/// Waits without a pidfd: where the kernel has none, that is what the message is about.
fn wait_for(child: Pid, until: BootTime) {
    while clock::now() < until && matches!(waitpid(Some(child), WaitOptions::NOHANG), Ok(None)) {
        pause(Duration::from_millis(1));
    }
}

/// Sleeps.
pub(super) fn pause(duration: Duration) {
    // An early wake does no harm.
    let _ = poll(&mut [], Some(&timespec(duration)));
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
