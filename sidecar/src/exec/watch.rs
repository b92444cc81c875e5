//! Waits for the end of guard and *hold*, and passes signals on.

use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use anyhow::Context as _;
use fencedlease_core::BootTime;
use fencedlease_wire::socket::LeaseView;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, pidfd_open};

use super::{ask, pid_of, settings};
use crate::args::ExecArgs;
use crate::clock;
use crate::sys::{self, SignalFd};

/// How often it is looked again whether the lease is there, once the wait is over.
const LOOK: Duration = Duration::from_millis(100);
/// How long after the wait the guard may take to be there and Redis to answer, before that counts as a failure.
const LAST_CHANCE: Duration = Duration::from_secs(3);
/// How long *hold* may take to release and end.
const FAREWELL: Duration = Duration::from_secs(10);

/// What came of it.
#[derive(Debug)]
pub(super) enum Ending {
    /// The command ran, and ended or was ended so.
    Ran(ExitStatus),
    /// A signal came before the lease was there.
    NotRun(ExitStatus),
    /// The wait is over, and somebody else holds the lease.
    HeldByAnother {
        /// Who, as far as Redis tells.
        holder: String,
    },
    /// The wait is over, and Redis could not be used.
    Unusable {
        /// Why.
        message: String,
    },
    /// *hold* ended before the lease was there.
    HoldEnded(ExitStatus),
}

/// The signals that are passed on.
pub(super) fn signals() -> anyhow::Result<SignalFd> {
    SignalFd::new(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2])
        .context("cannot receive signals")
}

/// Waits until the guard has ended, and with it every process of the workload.
pub(super) fn until_the_end(
    args: &ExecArgs,
    shared: &Path,
    signals: &SignalFd,
    mut guard: Child,
    hold: &mut Child,
) -> anyhow::Result<Ending> {
    let pidfds = [
        pidfd_open(pid_of(&guard), PidfdFlags::empty()).context("cannot watch the guard")?,
        pidfd_open(pid_of(hold), PidfdFlags::empty()).context("cannot watch hold")?,
    ];
    let mut wait_until = settings::wait(args)?.map(|wait| clock::now() + wait);
    let mut given_up = None;
    let mut hold_ended = None;
    loop {
        let mut fds = vec![
            PollFd::new(&pidfds[0], PollFlags::IN),
            PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN),
        ];
        if hold_ended.is_none() {
            fds.push(PollFd::new(&pidfds[1], PollFlags::IN));
        }
        let timeout = wait_until.map(|until| timespec(until.since(clock::now()).max(LOOK)));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait"),
        }
        if !fds[0].revents().is_empty() {
            break;
        }
        let hold_is_gone = fds.get(2).is_some_and(|fd| !fd.revents().is_empty());
        while let Some(signal) = signals.read()? {
            sys::send_signal(pid_of(&guard), signal.number);
        }
        if hold_is_gone {
            hold_ended = Some(hold.wait()?);
            // A workload that runs is ended by the guard's own instants at the latest.
            sys::send_signal(pid_of(&guard), libc::SIGTERM);
        }
        if let Some(until) = wait_until.filter(|until| clock::now() >= *until) {
            match look(shared, until) {
                Look::Again => {}
                Look::Held => wait_until = None,
                Look::GiveUp(ending) => {
                    (wait_until, given_up) = (None, Some(ending));
                    sys::send_signal(pid_of(&guard), libc::SIGTERM);
                }
            }
        }
    }
    let status = guard.wait()?;
    if let Some(ended) = hold_ended {
        let ran = status.code() == Some(i32::from(fencedlease_wire::exit::LOST));
        return Ok(if ran { Ending::Ran(status) } else { Ending::HoldEnded(ended) });
    }
    let ran = !matches!(ask::lease(shared), Ok(LeaseView::Waiting { .. }));
    Ok(match given_up {
        Some(ending) if !ran => ending,
        None if !ran && status.code().is_none_or(|code| code > 128) => Ending::NotRun(status),
        _ => Ending::Ran(status),
    })
}

/// Lets *hold* release and end; after [`FAREWELL`] it is killed.
pub(super) fn end(hold: &mut Child) {
    if !matches!(hold.try_wait(), Ok(None)) {
        return;
    }
    sys::send_signal(pid_of(hold), libc::SIGTERM);
    if let Ok(pidfd) = pidfd_open(pid_of(hold), PidfdFlags::empty()) {
        // However this wait ends, what follows is right.
        let _ = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&timespec(FAREWELL)));
    }
    let _ = hold.kill();
    let _ = hold.wait();
}

/// What is to be done when the wait is over.
enum Look {
    Again,
    Held,
    GiveUp(Ending),
}

fn look(shared: &Path, since: BootTime) -> Look {
    let is_over = clock::now() >= since + LAST_CHANCE;
    match ask::lease(shared) {
        Ok(LeaseView::Waiting { holder: Some(holder), message: None, .. }) => {
            Look::GiveUp(Ending::HeldByAnother { holder })
        }
        Ok(LeaseView::Waiting { .. }) | Err(_) if !is_over => Look::Again,
        Ok(LeaseView::Waiting { message, .. }) => {
            let message = message.unwrap_or_else(|| "Redis did not answer".to_owned());
            Look::GiveUp(Ending::Unusable { message })
        }
        Err(error) => Look::GiveUp(Ending::Unusable { message: format!("{error:#}") }),
        Ok(_) => Look::Held,
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
