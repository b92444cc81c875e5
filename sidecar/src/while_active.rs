//! *while-active*: runs the command of a probe or a hook only while the container's guard runs the workload. It asks
//! the guard and nobody else: what starts under that guard ends with it, at LOST as at any other end, since the
//! guard's end is the end of every process of the container.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::time::Duration;

use fencedlease_core::BootTime;
use fencedlease_wire::exit;

use crate::args::{Part, WhileActiveArgs};
use crate::clock;
use crate::guard::{Shown, failure};

/// How long a postStart hook waits for the workload: it is called as soon as the guard exists.
const PATIENCE: Duration = Duration::from_secs(30);
/// From one look at the guard to the next; there is nothing that could be slept on.
const PAUSE: Duration = Duration::from_millis(10);

/// What becomes of a command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Verdict {
    Run,
    /// Not run, and Kubernetes is told that all is well.
    Pass,
    /// Not run, and Kubernetes is told that it failed.
    Fail,
    /// To be asked again.
    Later,
}

/// Becomes the command, or says why not.
pub fn run(args: &WhileActiveArgs) -> ExitCode {
    let begun = clock::now();
    let (verdict, found) = loop {
        let found = Shown::read();
        match verdict(args.part, found.as_ref().ok().copied(), begun, clock::now()) {
            Verdict::Later => std::thread::sleep(PAUSE),
            verdict => break (verdict, found),
        }
    };
    let code = match (verdict, &found) {
        (Verdict::Run, _) => return become_command(args),
        (Verdict::Pass, _) => 0,
        (_, Ok(_)) => 1,
        (_, Err(_)) => exit::CANNOT_GUARD,
    };
    // The kubelet shows it in the event of a failed probe.
    println!("not run: {}", in_words(found));
    ExitCode::from(code)
}

/// Decides for a command that was called at `begun`, by what the guard shows; `None` is a first process that is no guard.
fn verdict(part: Part, shown: Option<Shown>, begun: BootTime, now: BootTime) -> Verdict {
    match (shown, part) {
        (Some(Shown::Active), _) => Verdict::Run,
        // A process that is about to become the guard has another name for a moment.
        (Some(Shown::Waiting) | None, Part::PostStart) if now.since(begun) < PATIENCE => Verdict::Later,
        // Nothing is there that could be alive or dead, or that could be stopped.
        (Some(_), Part::LivenessProbe | Part::PreStop) => Verdict::Pass,
        (Some(_), Part::ReadinessProbe | Part::StartupProbe | Part::PostStart) | (None, _) => Verdict::Fail,
    }
}

fn in_words(found: Result<Shown, String>) -> String {
    match found {
        Ok(Shown::Waiting) => "the container waits for the lease".to_owned(),
        Ok(Shown::Ending | Shown::Active) => "the workload is being ended".to_owned(),
        Err(name) => format!(
            "the container's first process is no guard ({name}): delete the pod, so that it is made again by its owner and passes the webhook"
        ),
    }
}

fn become_command(args: &WhileActiveArgs) -> ExitCode {
    let Some((program, arguments)) = args.command.split_first() else {
        return ExitCode::from(exit::BAD_SETTINGS);
    };
    // Returns only if it could not be done.
    let error = Command::new(program).args(arguments).exec();
    let (code, message) = failure(program, error.raw_os_error().unwrap_or(libc::EINVAL));
    println!("{message}");
    ExitCode::from(code)
}

#[cfg(test)]
mod tests;
