//! The thread that watches the instants. It owns the pod machine and serves `guard.sock` itself, so that
//! nothing stands between a loss and the word to the guards. It never waits for anything but `poll`.

mod closer;
mod connection;
mod guards;

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::mpsc::Sender;
use std::time::Duration;

use fencedlease_core::BootTime;
use fencedlease_core::timing::STALL;
use fencedlease_redis::agent::Order;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::sync::mpsc::UnboundedSender;

use self::guards::GuardSockets;
use super::mailbox::Mailbox;
use super::news::NewsSender;
use super::note::Page;
use super::pod::{Actions, Event, FileOrder, GuardAction, Pod, Published, RaiseRequest, Random, State};
use super::renewals::Translator;
use crate::clock::{self, BootTimer, ClockReading, SuspendWatch};
use crate::sys::{self, SignalFd};

/// Something that another thread saw, and when: an answer counts from its arrival, not from its reading.
#[derive(Debug)]
pub struct Letter {
    /// What.
    pub event: Event,
    /// When.
    pub at: BootTime,
}

/// It wakes at least this often, so that a suspend is noticed also where nothing is due.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// How long the scheduler shall let this thread run at a time: it needs little, but soon.
const SLICE: Duration = Duration::from_micros(100);

/// Letters that are read before the instants are looked at again.
const LETTERS: u32 = 64;

/// Where the watching thread's words go. Sending to any of them never waits.
#[derive(Debug)]
pub struct Outlets {
    /// To Redis.
    pub redis: UnboundedSender<Order>,
    /// In Redis's words.
    pub translator: Translator,
    /// To the gates.
    pub gates: UnboundedSender<RaiseRequest>,
    /// To the file writer.
    pub files: Sender<FileOrder>,
    /// To socket, metrics, reports and logs.
    pub news: NewsSender,
    /// To the private volume.
    pub page: Page,
}

/// The watching thread.
#[derive(Debug)]
pub struct Watch {
    pod: Pod,
    mailbox: Mailbox<Letter>,
    signals: SignalFd,
    sockets: GuardSockets,
    timer: BootTimer,
    suspends: SuspendWatch,
    outlets: Outlets,
    published: Published,
    done: bool,
}

/// What is readable after a sleep.
#[derive(Debug, Default)]
struct Ready {
    mail: bool,
    signals: bool,
    sockets: guards::Ready,
}

impl Watch {
    /// A watch over this pod; `first` is what the machine wants done before anything happens.
    pub fn new(
        pod: Pod,
        first: Actions,
        mailbox: Mailbox<Letter>,
        signals: SignalFd,
        listener: OwnedFd,
        outlets: Outlets,
    ) -> io::Result<Self> {
        let published = pod.published();
        let mut watch = Self {
            pod,
            mailbox,
            signals,
            sockets: GuardSockets::new(listener)?,
            timer: BootTimer::new()?,
            suspends: SuspendWatch::new(ClockReading::take()),
            outlets,
            published,
            done: false,
        };
        let now = clock::now();
        watch.carry_out(first, now);
        Ok(watch)
    }

    /// Watches until the pod has nothing left to do; gives a line for people on how it ended.
    pub fn run(mut self) -> io::Result<String> {
        // Best effort: a kernel before 6.12 has no such slice, and lateness is measured anyway.
        let _ = sys::ask_for_short_slice(SLICE);
        let ended = self.watch();
        self.sockets.close();
        ended.map(|()| last_words(&self.published.state))
    }

    fn watch(&mut self) -> io::Result<()> {
        while !self.done {
            let planned = self.plan();
            let ready = self.sleep(planned)?;
            let now = clock::now();
            if let Some(gained) = self.suspends.observe(ClockReading::take()) {
                self.feed(Event::Suspended { gained }, now)?;
            }
            if now.since(planned) > STALL {
                self.feed(Event::Late { planned }, now)?;
            }
            self.read(&ready)?;
            self.feed(Event::Time, clock::now())?;
            self.publish();
        }
        Ok(())
    }

    fn plan(&self) -> BootTime {
        let heartbeat = clock::now() + HEARTBEAT;
        let instants = [self.pod.next_instant(), self.sockets.next_instant()];
        instants.into_iter().flatten().fold(heartbeat, BootTime::min)
    }

    fn sleep(&self, until: BootTime) -> io::Result<Ready> {
        self.timer.set(Some(until))?;
        let mut fds = vec![
            PollFd::new(&self.timer, PollFlags::IN),
            PollFd::new(&self.mailbox, PollFlags::IN),
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
        ];
        let own = fds.len();
        self.sockets.poll_fds(&mut fds);
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
        Ok(Ready {
            mail: !ready[1].is_empty(),
            signals: !ready[2].is_empty(),
            sockets: self.sockets.ready(&ready[own..]),
        })
    }

    /// Takes in what has arrived.
    fn read(&mut self, ready: &Ready) -> io::Result<()> {
        if ready.mail {
            self.mailbox.silence();
            let mut left = LETTERS;
            while let Some(Letter { event, at }) = self.mailbox.take() {
                self.feed(event, at)?;
                left -= 1;
                if left == 0 {
                    self.mailbox.ring();
                    break;
                }
            }
        }
        for event in self.sockets.serve(&ready.sockets, clock::now()) {
            self.feed(event, clock::now())?;
        }
        if ready.signals {
            while let Ok(Some(_)) = self.signals.read() {
                self.feed(Event::Terminate, clock::now())?;
            }
        }
        Ok(())
    }

    /// One event, and at once all that follows from it.
    fn feed(&mut self, event: Event, at: BootTime) -> io::Result<()> {
        let actions = self.pod.on(event, at, &random()?);
        self.carry_out(actions, at);
        while let Some((connection, cut)) = self.sockets.next_gone() {
            let event = Event::Disconnected { connection, reason: cut.to_string() };
            let actions = self.pod.on(event, at, &random()?);
            self.carry_out(actions, at);
        }
        Ok(())
    }

    fn carry_out(&mut self, actions: Actions, at: BootTime) {
        for mark in &actions.marks {
            self.outlets.page.mark(mark);
        }
        // Who is started now may ask at once who he is. In all else the guards come first.
        if actions.guards.iter().any(GuardAction::starts_workload) {
            self.publish();
        }
        for action in actions.guards {
            self.sockets.carry_out(action);
        }
        for request in actions.redis {
            // An agent that is gone has ended the process, or is about to.
            let _ = self.outlets.redis.send(self.outlets.translator.order(request));
        }
        for request in actions.gates {
            let _ = self.outlets.gates.send(request);
        }
        for order in actions.files {
            let _ = self.outlets.files.send(order);
        }
        for fact in actions.facts {
            self.outlets.news.fact(fact, at);
        }
        self.done |= actions.exit;
    }

    fn publish(&mut self) {
        let published = self.pod.published();
        if published != self.published {
            self.published = published.clone();
            self.outlets.news.view(published);
        }
    }
}

fn last_words(state: &State) -> String {
    match state {
        State::Waiting { .. } | State::Active { .. } => "SIGTERM while waiting for the lease".to_owned(),
        State::Lost { fence, reason, message, .. } => {
            format!("SIGTERM; before it fence {fence} was lost: {reason}, {message}")
        }
        State::Released { fence, reason } => format!("SIGTERM; fence {fence} was given back: {reason}"),
    }
}

/// Bits for one event. Without a source of them no token is anybody's own, so nothing goes on.
fn random() -> io::Result<Random> {
    let mut bits = [0; 48];
    getrandom::fill(&mut bits).map_err(|error| io::Error::other(error.to_string()))?;
    let mut random = Random::default();
    random.token.copy_from_slice(&bits[..16]);
    random.secret.copy_from_slice(&bits[16..32]);
    random.holding.copy_from_slice(&bits[32..40]);
    let mut jitter = [0; 8];
    jitter.copy_from_slice(&bits[40..]);
    random.jitter = u64::from_ne_bytes(jitter);
    Ok(random)
}
