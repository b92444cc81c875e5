//! *guard*: PID 1 of a guarded container. Runs the workload while the lease is held, and is the end of
//! every process in the container when it is not, whatever becomes of the sidecar.

mod driver;
mod exit_bound;
mod link;
mod machine;
mod preflight;
mod program;
mod report;
mod shown;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use fencedlease_wire::exit;
use serde_json::json;

use self::driver::{Driver, IDLE_PATIENCE};
pub(crate) use self::program::failure;
use self::report::{Log, termination_message};
pub(crate) use self::shown::Shown;
use crate::args::GuardArgs;
use crate::sys::{self, SignalFd};

/// How long the scheduler shall let this process run at a time: it needs little, but soon.
const SLICE: Duration = Duration::from_micros(100);

/// Guards until the container's end. Returns only if it cannot guard here.
pub fn run(args: GuardArgs) -> ExitCode {
    end_at_panic();
    // First of all: the kernel drops a signal for PID 1 that it neither blocks nor handles.
    let signals = SignalFd::of_all();
    let log = Log::new(args.container.clone(), args.quiet);
    let message_path = args.termination_message_path.clone();
    let refuse = |reason: &str| {
        log.line("error", "cannot guard here", json!({"reason": reason}));
        termination_message(&message_path, reason, IDLE_PATIENCE);
        ExitCode::from(exit::CANNOT_GUARD)
    };
    let pidfd = match preflight::check(&args.dir) {
        Ok(pidfd) => pidfd,
        Err(refusal) => return refuse(&refusal.to_string()),
    };
    // Best effort: a kernel before 6.12 has no such slice, and lateness is measured anyway.
    let _ = sys::ask_for_short_slice(SLICE);
    // Only the loss of poll or of the timer ends `run`. PID 1 must go then, and all with it.
    let mut made =
        signals.context("cannot read signals").and_then(|signals| Driver::new(args, pidfd, signals, &log));
    // The driver lives on meanwhile: it bounds the exit.
    let error = match &mut made {
        Ok(driver) => driver.run(),
        Err(error) => anyhow::anyhow!("{error:#}"),
    };
    refuse(&format!("{error:#}"))
}

/// A panic is the end of everything here, at once: the default report goes to a standard error that may be stuck.
fn end_at_panic() {
    std::panic::set_hook(Box::new(|_| {
        sys::kill_everything();
        sys::exit_now(exit::CANNOT_GUARD);
    }));
}

#[cfg(test)]
mod tests;
