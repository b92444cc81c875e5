//! *exec*: the same guard outside Kubernetes, for cron, systemd and shells. Holds a lease while a command runs, and
//! is the end of every process of it when the lease is lost.
//!
//! Three processes: this one, which only waits and passes signals on; *hold*; and *guard* as PID 1 of a PID namespace
//! of its own. If this one is killed, both are told: the work is ended and the lease released.

mod ask;
mod isolate;
mod run_folder;
mod settings;
mod watch;

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};

use anyhow::Context as _;
use fencedlease_wire::{exit, paths};

use self::run_folder::RunFolder;
use self::watch::Ending;
use crate::args::{ExecArgs, GuardArgs, HoldArgs};
use crate::{guard, hold};

/// The one container that there is, for guard and sidecar.
const CONTAINER: &str = "exec";

/// Why nothing was run, or what came of it.
#[derive(Debug)]
struct Outcome {
    code: u8,
    /// For people; empty where the workload has said what there is to say.
    message: String,
}

/// Runs a command while the lease is held.
pub fn run(args: &ExecArgs) -> ExitCode {
    let outcome = match settings::settings(args) {
        Ok(settings) => supervise(args, &settings)
            .unwrap_or_else(|error| Outcome { code: exit::CANNOT_GUARD, message: format!("{error:#}") }),
        Err(error) => Outcome { code: exit::BAD_SETTINGS, message: error.to_string() },
    };
    if !outcome.message.is_empty() {
        // Standard error that nobody reads is no reason not to end.
        let _ = writeln!(std::io::stderr(), "fencedlease exec: {}", outcome.message);
    }
    ExitCode::from(outcome.code)
}

/// *hold* below *exec*.
pub fn hold(args: &HoldArgs) -> ExitCode {
    // Where it fails nothing is told of a killed parent; the lease runs out by itself once the work has ended.
    let _ = isolate::end_with_parent();
    run_folder::take_part(&args.shared_dir);
    hold::run(args)
}

/// *guard* below *exec*.
pub fn guard(args: GuardArgs) -> ExitCode {
    let _ = isolate::end_with_parent();
    run_folder::take_part(&args.dir);
    // Without it the workload sees the processes of the whole machine, and cannot signal them by these numbers.
    let _ = isolate::own_proc();
    guard::run(args)
}

fn supervise(args: &ExecArgs, settings: &str) -> anyhow::Result<Outcome> {
    let isolation = isolate::possible(args.user_namespace)?;
    let signals = watch::signals()?;
    let folder = RunFolder::make().context("cannot make a folder for the sockets")?;
    let program = std::env::current_exe().context("cannot find the own program")?;

    let mut hold = Command::new(&program);
    hold.args(["exec-hold", "--pod-uid", "exec", "--pod-ip", "127.0.0.1", "--node-name", ""])
        .arg("--pod-name")
        .arg(&args.name)
        .arg("--shared-dir")
        .arg(folder.shared())
        .arg("--state-dir")
        .arg(folder.private())
        .env(paths::ENV_SETTINGS, settings)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    if let Some(secret) = &args.redis_secret_dir {
        hold.arg("--redis-secret-dir").arg(secret);
    }
    if let Some(folder) = &args.redis_tls_dir {
        hold.arg("--redis-tls-dir").arg(folder);
    }
    if let Some(file) = &args.gate_key_file {
        hold.arg("--gate-key-file").arg(file);
    }
    if let Some(file) = &args.gate_ca_file {
        let names = args.gate.iter().filter_map(|gate| gate.split_once('=')).map(|(name, _)| name);
        let folder = folder.link_authorities(names, file).context("cannot link --gate-ca-file")?;
        hold.arg("--gate-tls-dir").arg(folder);
    }
    let mut hold = hold.spawn().context("cannot start hold")?;
    let started = isolation.enter().and_then(|()| {
        Command::new(&program)
            .args([
                "exec-guard",
                "--quiet",
                "--container",
                CONTAINER,
                "--termination-message-path",
                "/dev/null",
                "--dir",
            ])
            .arg(folder.shared())
            .arg("--")
            .args(&args.command)
            .env(paths::ENV_RESOURCE, args.lease.as_str())
            .env(paths::ENV_DIR, folder.shared())
            .env(paths::ENV_SOCKET, folder.shared().join(paths::LEASE_SOCKET))
            .spawn()
            .context("cannot start the guard")
    });
    let guard = match started {
        Ok(guard) => guard,
        Err(error) => {
            watch::end(&mut hold);
            return Err(error);
        }
    };
    let ending = watch::until_the_end(args, folder.shared(), &signals, guard, &mut hold);
    // Nothing of the workload is left, and hold has seen it: it releases, and ends.
    watch::end(&mut hold);
    Ok(outcome(args, ending?))
}

/// What the caller is to know.
fn outcome(args: &ExecArgs, ending: Ending) -> Outcome {
    match ending {
        Ending::Ran(status) => {
            let code = code_of(status);
            let code = if code == exit::LOST { args.lost_exit_code } else { code };
            Outcome { code, message: String::new() }
        }
        Ending::NotRun(status) => Outcome { code: code_of(status), message: String::new() },
        Ending::HeldByAnother { holder } => Outcome {
            code: exit::HELD_BY_ANOTHER,
            message: format!(
                "{} is held by {holder}, also when --wait {} was over. Nothing was run. Wait longer, or look at the holder",
                args.lease,
                args.wait_text()
            ),
        },
        Ending::Unusable { message } => Outcome {
            code: exit::REDIS_UNUSABLE,
            message: format!("the lease on {} cannot be used: {message}. Nothing was run", args.lease),
        },
        Ending::HoldEnded(status) => Outcome {
            code: if status.success() { exit::CANNOT_GUARD } else { code_of(status) },
            message: format!("hold ended with {status} before the lease was there. Nothing was run"),
        },
    }
}

/// As a shell tells it: the exit code, or 128 plus the signal.
fn code_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// The process's number.
fn pid_of(child: &Child) -> rustix::process::Pid {
    rustix::process::Pid::from_child(child)
}

#[cfg(test)]
mod tests;
