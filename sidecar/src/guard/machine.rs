//! What a guard does next: decisions over plain data, with the instant of every event passed in.
//!
//! One life of a container is one machine: it waits for a grant, runs the workload under it, and exits.
//! The driver feeds what happened, in this order at each wake: [`Machine::woke`], what has arrived on the
//! socket, what became of processes and signals, [`Machine::settle`]. So lateness is judged before anything
//! else, and what has arrived is read before an instant is acted on.

use std::collections::VecDeque;
use std::ffi::c_int;
use std::time::Duration;

use fencedlease_core::BootTime;
use fencedlease_core::duration::in_seconds;
use fencedlease_core::timing::STALL;
use fencedlease_wire::guard::{FromGuard, ToGuard, bounded};
use fencedlease_wire::{EndReason, Fence, HoldingId, exit};

use self::run::{Ending, Run};
use crate::sys::ReceivedSignal;

mod run;

/// How long a guard sleeps at most while a workload runs, so that its lateness is noticed.
pub(super) const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// The pause after the first failure to connect; it doubles up to [`LONGEST_PAUSE`].
pub(super) const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause between two attempts to connect.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// The state of one guard.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    container: String,
    secret: Option<String>,
    link: Link,
    pause: Duration,
    run: Option<Run>,
    /// When the guard means to wake up next; `None` while lateness does not matter.
    planned: Option<BootTime>,
    actions: VecDeque<Action>,
    exiting: bool,
}

/// What the driver has to do, in order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Action {
    /// Connect to the sidecar, and tell how that went.
    Connect,
    /// Send a line. A hello carries the guard's pidfd.
    Send(FromGuard),
    /// Start the workload, and tell how that went.
    Start(Grant),
    /// Send a signal to the workload's first process.
    Signal(c_int),
    /// A fact for the log.
    Note(Note),
    /// Kill everything and exit; the last action of all.
    Exit(Exit),
}

/// What the workload is started with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Grant {
    /// Under this holding.
    pub(super) holding: HoldingId,
    /// With this fence.
    pub(super) fence: Fence,
    /// For this resource, `namespace/name`.
    pub(super) resource: String,
}

/// How the guard ends.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Exit {
    /// Its exit code.
    pub(super) code: u8,
    /// What the termination message says; `None` leaves it to the workload.
    pub(super) message: Option<String>,
}

/// A fact for the log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Note {
    /// The sidecar knows this guard now.
    Waiting,
    /// The workload runs.
    Started(Grant),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Link {
    Down { retry_at: BootTime },
    Connecting,
    Up,
}

impl Machine {
    /// A guard of this container that has yet to connect.
    pub(super) fn new(container: String, now: BootTime) -> Self {
        Self {
            container,
            secret: None,
            link: Link::Down { retry_at: now },
            pause: SHORTEST_PAUSE,
            run: None,
            planned: None,
            actions: VecDeque::new(),
            exiting: false,
        }
    }

    /// The next thing to do, if there is one.
    #[must_use]
    pub(super) fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Self::woke`] and [`Self::settle`] must be called at the latest, if ever.
    pub(super) fn next_instant(&self) -> Option<BootTime> {
        let retry = match self.link {
            Link::Down { retry_at } => Some(retry_at),
            Link::Connecting | Link::Up => None,
        };
        [retry, self.planned].into_iter().flatten().min()
    }

    /// The driver woke up. Being more than `stall` late is a loss: nobody knows what happened meanwhile.
    pub(super) fn woke(&mut self, now: BootTime) {
        let Some(late) = self.planned.map(|planned| now.since(planned)).filter(|late| *late > STALL) else {
            return;
        };
        let why = format!(
            "the guard woke up {} later than planned (more than {} counts as a loss): the container was starved of CPU, frozen, or the machine slept",
            in_seconds(late),
            in_seconds(STALL)
        );
        self.lose(now, &why);
    }

    /// Acts on the instants that have passed, and plans the next wake.
    pub(super) fn settle(&mut self, now: BootTime) {
        if self.exiting {
            return;
        }
        if let Some(run) = &self.run
            && now >= run.silent_until()
        {
            let why = format!(
                "nothing was heard from the sidecar for {}, so the guard acted at its own instants",
                in_seconds(now.since(run.heard_at))
            );
            self.lose(now, &why);
        }
        if let Link::Down { retry_at } = self.link
            && now >= retry_at
        {
            self.link = Link::Connecting;
            self.actions.push_back(Action::Connect);
        }
        let Some(run) = &self.run else { return };
        let instant = run.next_instant();
        if run.ending.is_some() && now >= instant {
            self.exit(run.exit(128 + SIGKILL));
        } else {
            self.planned = Some(instant.min(now + WATCH_INTERVAL));
        }
    }

    /// The connection stands.
    pub(super) fn connected(&mut self) {
        self.link = Link::Up;
        let hello = FromGuard::Hello {
            container: self.container.clone(),
            secret: self.secret.clone(),
            holding: self.run.as_ref().map(|run| run.grant.holding.clone()),
            acted: self.run.as_ref().is_some_and(|run| run.acted),
        };
        self.send(hello);
        if let Some(run) = self.run.as_ref().filter(|run| run.terminating) {
            self.send(FromGuard::Terminating { holding: run.grant.holding.clone() });
        }
    }

    /// The connection could not be made, broke, or was closed.
    pub(super) fn disconnected(&mut self, now: BootTime) {
        self.link = Link::Down { retry_at: now + self.pause };
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// The sidecar said something.
    pub(super) fn message(&mut self, now: BootTime, message: ToGuard) {
        if self.exiting {
            return;
        }
        self.pause = SHORTEST_PAUSE;
        match message {
            ToGuard::Welcome { secret } => {
                if self.secret.replace(secret).is_none() {
                    self.actions.push_back(Action::Note(Note::Waiting));
                }
            }
            ToGuard::Grant { holding, fence, resource, term_at_ms, kill_at_ms } => {
                let (term_at, kill_at) = instants(term_at_ms, kill_at_ms);
                self.granted(now, Grant { holding, fence, resource }, term_at, kill_at);
            }
            ToGuard::Extend { holding, term_at_ms, kill_at_ms } => {
                if let Some(run) = self.run.as_mut().filter(|run| run.grant.holding == holding) {
                    let (term_at, kill_at) = instants(term_at_ms, kill_at_ms);
                    run.extend(now, term_at, kill_at);
                }
            }
            ToGuard::End { holding, reason, kill_at_ms, exit_code, message } => {
                if let Some(run) = self.run.as_mut().filter(|run| run.grant.holding == holding) {
                    let begun = run.ending.is_some();
                    let lost = matches!(reason, EndReason::Lost(_));
                    let kill_at = BootTime::from_millis(kill_at_ms);
                    run.end(Ending { lost, kill_at, exit_code, message });
                    let exit = run.exit(128 + SIGKILL);
                    if self.drop_start() {
                        self.exit(exit);
                    } else if !begun {
                        self.actions.push_back(Action::Signal(SIGTERM));
                    }
                }
            }
            ToGuard::Dismiss { exit_code, message } => {
                self.exit(Exit { code: exit_code, message: Some(message) });
            }
        }
    }

    /// The workload's program runs.
    pub(super) fn started(&mut self) {
        if let Some(run) = &self.run {
            let grant = run.grant.clone();
            self.send(FromGuard::Started { holding: grant.holding.clone() });
            self.actions.push_back(Action::Note(Note::Started(grant)));
        }
    }

    /// The workload's program could not be run. `exit_code` is 126 or 127.
    pub(super) fn start_failed(&mut self, exit_code: u8, message: &str) {
        if let Some(run) = &self.run {
            let message = bounded(message);
            let holding = run.grant.holding.clone();
            self.send(FromGuard::StartFailed { holding, exit_code, message: message.clone() });
            self.exit(Exit { code: exit_code, message: Some(message) });
        }
    }

    /// The workload's first process ended. `exit_code` is its own, or 128 plus the signal.
    pub(super) fn child_ended(&mut self, exit_code: u8) {
        if self.exiting {
            return;
        }
        if let Some(run) = &self.run {
            let (holding, exit) = (run.grant.holding.clone(), run.exit(exit_code));
            self.send(FromGuard::Ended { holding, exit_code });
            self.exit(exit);
        }
    }

    /// A signal arrived: the workload's, once there is one.
    pub(super) fn signal(&mut self, signal: ReceivedSignal) {
        if self.exiting {
            return;
        }
        let Some(run) = self.run.as_mut() else {
            if matches!(signal.number, SIGTERM | SIGINT | SIGQUIT) {
                let code = 128 + u8::try_from(signal.number).unwrap_or_default();
                self.exit(Exit { code, message: None });
            }
            return;
        };
        self.actions.push_back(Action::Signal(signal.number));
        if signal.number == SIGTERM && signal.from_outside && !run.terminating {
            run.terminating = true;
            let holding = run.grant.holding.clone();
            self.send(FromGuard::Terminating { holding });
        }
    }

    fn granted(&mut self, now: BootTime, grant: Grant, term_at: BootTime, kill_at: BootTime) {
        let refusal = if self.run.is_some() {
            Some("a workload runs already in this container".to_owned())
        } else if now >= term_at {
            Some(format!("the grant came {} after its term instant", in_seconds(now.since(term_at))))
        } else if kill_at < term_at {
            Some("the grant's kill instant lies before its term instant".to_owned())
        } else {
            None
        };
        if let Some(message) = refusal {
            self.send(FromGuard::Acted { holding: grant.holding, message });
            return;
        }
        self.actions.push_back(Action::Start(grant.clone()));
        self.run = Some(Run {
            grant,
            term_at,
            kill_at,
            heard_at: now,
            ending: None,
            acted: false,
            terminating: false,
        });
    }

    /// Ends a workload whose lease may be somebody else's soon, for all that this guard knows.
    fn lose(&mut self, now: BootTime, why: &str) {
        if self.exiting {
            return;
        }
        let Some(run) = self.run.as_mut().filter(|run| !run.is_lost()) else { return };
        let grace = run.kill_at.since(run.term_at).saturating_sub(STALL);
        let begun = run.ending.is_some();
        let Grant { holding, fence, resource } = run.grant.clone();
        run.acted = true;
        run.end(Ending {
            lost: true,
            kill_at: now + grace,
            exit_code: Some(exit::LOST),
            message: format!(
                "the lease on {resource} is lost: {why}. The workload ran with fence {fence} and was ended before anybody else could hold the lease. Look at the log of this pod's container fencedlease for the cause."
            ),
        });
        if !begun {
            self.actions.push_back(Action::Signal(SIGTERM));
        }
        self.send(FromGuard::Acted { holding, message: why.to_owned() });
    }

    fn send(&mut self, line: FromGuard) {
        if self.link == Link::Up {
            self.actions.push_back(Action::Send(line));
        }
    }

    fn exit(&mut self, exit: Exit) {
        if !self.exiting {
            self.exiting = true;
            self.actions.push_back(Action::Exit(exit));
        }
    }
}

const SIGINT: c_int = libc::SIGINT;
const SIGQUIT: c_int = libc::SIGQUIT;
const SIGTERM: c_int = libc::SIGTERM;
const SIGKILL: u8 = 9;

fn instants(term_at_ms: u64, kill_at_ms: u64) -> (BootTime, BootTime) {
    (BootTime::from_millis(term_at_ms), BootTime::from_millis(kill_at_ms))
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
