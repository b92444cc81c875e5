//! The guard's one thread of work: sleeps in `poll`, feeds what happened to the machine, does what it says.

use std::ffi::{OsString, c_int};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use fencedlease_wire::guard::FromGuard;
use fencedlease_wire::{exit, paths};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};
use serde_json::json;

use super::exit_bound::ExitBound;
use super::link::{Link, LinkError};
use super::machine::{Action, Exit, Grant, Machine, Note};
use super::program;
use super::report::{Log, termination_message};
use super::shown::Shown;
use crate::args::GuardArgs;
use crate::clock::{self, BootTimer};
use crate::sys::{self, SignalFd, Spawned};

/// How long a kill waits for the termination message.
const KILL_PATIENCE: Duration = Duration::from_millis(50);
/// How long an exit without a workload waits for it.
pub(super) const IDLE_PATIENCE: Duration = Duration::from_secs(1);
/// How much longer the log's last line may take.
const LAST_LINE: Duration = Duration::from_millis(25);
/// How many dead processes are reaped before the instants are looked at again.
const REAPED_PER_PASS: usize = 256;
/// An end and an error are found by reading, too.
const READABLE: PollFlags = PollFlags::IN.union(PollFlags::HUP).union(PollFlags::ERR);
/// How many signals are taken before the instants are looked at again.
const SIGNALS_PER_PASS: usize = 64;

/// Everything that the thread holds.
pub(super) struct Driver<'log> {
    machine: Machine,
    log: &'log Log,
    signals: SignalFd,
    timer: BootTimer,
    pidfd: OwnedFd,
    link: Option<Link>,
    socket: PathBuf,
    termination_message_path: PathBuf,
    command: Vec<OsString>,
    child: Option<Child>,
    exit_bound: ExitBound,
    /// What the container was told last.
    shown: Shown,
    /// Dead processes were left over from the last pass.
    more_to_reap: bool,
    /// A broken connection was told once, which is enough.
    complained: bool,
}

struct Child {
    pid: Pid,
    /// Where it tells whether its program runs, until it has.
    outcome: Option<OwnedFd>,
}

/// What `poll` found.
struct Ready {
    link: PollFlags,
    signals: PollFlags,
    outcome: PollFlags,
}

impl<'log> Driver<'log> {
    /// A driver that has yet to connect. `signals` reads every signal there is.
    pub(super) fn new(
        args: GuardArgs,
        pidfd: OwnedFd,
        signals: SignalFd,
        log: &'log Log,
    ) -> anyhow::Result<Self> {
        Shown::Waiting.show();
        Ok(Self {
            shown: Shown::Waiting,
            machine: Machine::new(args.container, clock::now()),
            log,
            signals,
            timer: BootTimer::new().context("cannot make a timer")?,
            pidfd,
            link: None,
            socket: args.dir.join(paths::GUARD_SOCKET),
            termination_message_path: args.termination_message_path,
            command: args.command,
            child: None,
            exit_bound: ExitBound::start().context("cannot start a thread")?,
            more_to_reap: false,
            complained: false,
        })
    }

    /// Runs until the guard exits. Returns only when the guard cannot go on, and then PID 1 ends, and with
    /// it the container.
    pub(super) fn run(&mut self) -> anyhow::Error {
        loop {
            if let Err(error) = self.pass() {
                sys::kill_everything();
                // The caller tells why, in its own time, which is bounded from here.
                self.exit_bound.exit_by(clock::now() + IDLE_PATIENCE + LAST_LINE, exit::CANNOT_GUARD);
                return error;
            }
        }
    }

    fn pass(&mut self) -> anyhow::Result<()> {
        self.machine.settle(clock::now());
        self.act();
        self.timer.set(self.machine.next_instant()).context("cannot set the timer")?;
        let ready = self.sleep().context("cannot wait for events")?;
        self.machine.woke(clock::now());
        // A loss is acted on before anything else is looked at.
        self.act();
        if ready.link.intersects(READABLE) {
            self.read_link();
        }
        if ready.link.contains(PollFlags::OUT) {
            self.with_link(Link::flush);
        }
        self.act();
        if ready.outcome.intersects(READABLE) {
            self.read_outcome();
        }
        let signals = ready.signals.intersects(READABLE);
        if signals {
            self.read_signals()?;
        }
        if signals || self.more_to_reap {
            self.reap();
        }
        self.act();
        Ok(())
    }

    fn sleep(&self) -> Result<Ready, Errno> {
        let link = self.link.as_ref();
        let out = link.is_some_and(Link::has_output);
        let link_events = if out { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let outcome = self.child.as_ref().and_then(|child| child.outcome.as_ref());
        // Without a connection or an outcome the timer stands in for it: it is polled anyway.
        let timer = self.timer.as_fd();
        let mut fds = [
            PollFd::from_borrowed_fd(timer, PollFlags::IN),
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(link.map_or(timer, |link| link.as_fd()), link_events),
            PollFd::from_borrowed_fd(outcome.map_or(timer, |outcome| outcome.as_fd()), PollFlags::IN),
        ];
        let at_once = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut fds, self.more_to_reap.then_some(&at_once)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        let found =
            |is_there: bool, fd: &PollFd<'_>| if is_there { fd.revents() } else { PollFlags::empty() };
        Ok(Ready {
            link: found(link.is_some(), &fds[2]),
            signals: fds[1].revents(),
            outcome: found(outcome.is_some(), &fds[3]),
        })
    }

    fn act(&mut self) {
        self.show();
        while let Some(action) = self.machine.poll_action() {
            match action {
                Action::Connect => match Link::connect(&self.socket) {
                    Ok(link) => {
                        self.link = Some(link);
                        self.machine.connected();
                    }
                    Err(_) => self.machine.disconnected(clock::now()),
                },
                Action::Send(hello @ FromGuard::Hello { .. }) => {
                    let pidfd = self.pidfd.as_fd();
                    let sent = self.link.as_mut().map(|link| link.send_hello(&hello, pidfd));
                    self.judge(sent);
                }
                Action::Send(line) => self.with_link(|link| link.send(&line)),
                Action::Start(grant) => self.start(&grant),
                Action::Signal(number) => self.signal_child(number),
                Action::Note(note) => self.note(note),
                Action::Exit(exit) => self.exit(&exit),
            }
        }
    }

    /// Before anything is done about it, so that no probe or hook begins once an end has.
    fn show(&mut self) {
        let shown = self.machine.shown();
        if shown != self.shown {
            self.shown = shown;
            shown.show();
        }
    }

    fn read_link(&mut self) {
        let machine = &mut self.machine;
        let read = self.link.as_mut().map(|link| link.read(|message| machine.message(clock::now(), message)));
        self.judge(read);
    }

    fn with_link(&mut self, call: impl FnOnce(&mut Link) -> Result<(), LinkError>) {
        let done = self.link.as_mut().map(call);
        self.judge(done);
    }

    fn judge(&mut self, done: Option<Result<(), LinkError>>) {
        if let Some(Err(error)) = done {
            self.link = None;
            self.machine.disconnected(clock::now());
            if !matches!(error, LinkError::Closed) && !self.complained {
                self.complained = true;
                self.log.line("warn", "connection to the sidecar dropped", json!({"error": chain(&error)}));
            }
        }
    }

    fn start(&mut self, grant: &Grant) {
        self.log.never_block();
        let Some(program) = program::program(&self.command, std::env::vars_os(), grant) else {
            return self.start_failed(libc::EINVAL);
        };
        match sys::spawn(&program) {
            Ok(Spawned { pid, outcome }) => self.child = Some(Child { pid, outcome: Some(outcome) }),
            Err(error) => self.start_failed(error.raw_os_error().unwrap_or(libc::EAGAIN)),
        }
    }

    fn read_outcome(&mut self) {
        let Some(outcome) = self.child.as_mut().and_then(|child| child.outcome.take()) else { return };
        let mut errno = [0; size_of::<c_int>()];
        // The child writes all four bytes at once, or none.
        match rustix::io::read(&outcome, &mut errno) {
            Ok(length) if length == errno.len() => self.start_failed(c_int::from_ne_bytes(errno)),
            _ => self.machine.started(),
        }
    }

    fn start_failed(&mut self, errno: c_int) {
        let name = self.command.first().cloned().unwrap_or_default();
        let (code, message) = program::failure(&name, errno);
        self.machine.start_failed(code, &message);
    }

    fn read_signals(&mut self) -> anyhow::Result<()> {
        for _ in 0..SIGNALS_PER_PASS {
            match self.signals.read().context("cannot read signals")? {
                Some(signal) if signal.number == libc::SIGCHLD => {}
                Some(signal) => self.machine.signal(signal),
                None => break,
            }
        }
        Ok(())
    }

    fn reap(&mut self) {
        for _ in 0..REAPED_PER_PASS {
            let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) else {
                self.more_to_reap = false;
                return;
            };
            if self.child.as_ref().is_some_and(|child| child.pid == pid) {
                // Whether its program ever ran was told before it ended.
                self.read_outcome();
                self.child = None;
                self.machine.child_ended(exit_code(status));
            }
        }
        self.more_to_reap = true;
    }

    fn signal_child(&self, number: c_int) {
        if let Some(child) = &self.child {
            sys::send_signal(child.pid, number);
        }
    }

    fn note(&self, note: Note) {
        match note {
            Note::Waiting => self.log.line("info", "waiting for the lease", json!({})),
            Note::Started(grant) => self.log.line(
                "info",
                "workload started",
                json!({"resource": grant.resource, "fence": grant.fence, "holding": grant.holding}),
            ),
        }
    }

    /// The kill comes first, and nothing that can wait is waited for: what is beyond this process's signals
    /// is killed by the kernel as soon as this process is gone.
    fn exit(&mut self, exit: &Exit) -> ! {
        sys::kill_everything();
        let patience = if self.child.is_some() { KILL_PATIENCE } else { IDLE_PATIENCE };
        self.exit_bound.exit_by(clock::now() + patience + LAST_LINE, exit.code);
        if let Some(link) = &mut self.link {
            // The sidecar learns the rest from the pidfd.
            let _ = link.flush();
        }
        if let Some(message) = &exit.message {
            termination_message(&self.termination_message_path, message, patience);
        }
        let not_run = matches!(exit.code, 126 | 127) && exit.message.is_some();
        let level = if not_run || exit.code == exit::LOST { "error" } else { "info" };
        self.log.line(level, "exiting", json!({"exitCode": exit.code, "reason": exit.message}));
        sys::exit_now(exit.code)
    }
}

fn exit_code(status: WaitStatus) -> u8 {
    let code = status
        .exit_status()
        .or_else(|| status.terminating_signal().map(|signal| 128 + signal))
        .and_then(|code| u8::try_from(code).ok());
    code.unwrap_or(u8::MAX)
}

fn chain(error: &LinkError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
