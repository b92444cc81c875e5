//! `guard.sock`: all connections of guards, and the pidfds that prove their deaths.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Duration;

use fencedlease_core::BootTime;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};

use super::closer::Closer;
use super::connection::{Connection, Cut, Word};
use crate::hold::pod::{ConnectionId, Event, GuardAction, LifeId};

/// Connections at a time; with more the oldest that has not said hello makes room.
const MAX_CONNECTIONS: usize = 64;
/// Who has said nothing by then is no guard.
const HELLO_PATIENCE: Duration = Duration::from_secs(5);
/// After a failure to accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Connections taken in at one go.
const ACCEPTS: usize = 16;

/// All that has to do with `guard.sock`.
#[derive(Debug)]
pub(super) struct GuardSockets {
    listener: OwnedFd,
    connections: Vec<Connection>,
    lives: Vec<(LifeId, OwnedFd)>,
    gone: VecDeque<(ConnectionId, Cut)>,
    accepted: u64,
    closer: Closer,
    /// Accepting failed, or much is still to be closed: not tried again before this.
    accept_again_at: Option<BootTime>,
}

/// What is readable or writable.
#[derive(Debug, Default)]
pub(super) struct Ready {
    listener: bool,
    readable: Vec<ConnectionId>,
    writable: Vec<ConnectionId>,
    dead: Vec<LifeId>,
}

// === impl GuardSockets ===

impl GuardSockets {
    /// Serves this listener. Fails if no thread can be started.
    pub(super) fn new(listener: OwnedFd) -> io::Result<Self> {
        Ok(Self {
            listener,
            connections: Vec::new(),
            lives: Vec::new(),
            gone: VecDeque::new(),
            accepted: 0,
            closer: Closer::start()?,
            accept_again_at: None,
        })
    }

    /// Adds what is to be polled; [`Self::ready`] takes the outcome in the same order.
    pub(super) fn poll_fds<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        let accepts = if self.accept_again_at.is_some() { PollFlags::empty() } else { PollFlags::IN };
        fds.push(PollFd::new(&self.listener, accepts));
        for connection in &self.connections {
            let output = if connection.has_output() { PollFlags::OUT } else { PollFlags::empty() };
            fds.push(PollFd::from_borrowed_fd(connection.as_fd(), PollFlags::IN | output));
        }
        for (_, pidfd) in &self.lives {
            fds.push(PollFd::new(pidfd, PollFlags::IN));
        }
    }

    /// What `poll` found.
    pub(super) fn ready(&self, found: &[PollFlags]) -> Ready {
        let mut ready = Ready { listener: !found[0].is_empty(), ..Ready::default() };
        let (connections, lives) = found[1..].split_at(self.connections.len());
        for (connection, found) in self.connections.iter().zip(connections) {
            if found.contains(PollFlags::OUT) {
                ready.writable.push(connection.id);
            }
            if found.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                ready.readable.push(connection.id);
            }
        }
        for ((life, _), found) in self.lives.iter().zip(lives) {
            // Readable means that the namespace is empty. Any other flag proves nothing.
            if found.contains(PollFlags::IN) {
                ready.dead.push(*life);
            }
        }
        ready
    }

    /// Accepts, sends and reads, a bounded amount each; gives what happened, in the order in which it counts:
    /// the last words of known guards, then deaths, then hellos and what was said after them. So a guard's
    /// exit code is known before its death, and a container that is back has died before.
    pub(super) fn serve(&mut self, ready: &Ready, now: BootTime) -> Vec<Event> {
        let mut words = Vec::new();
        for id in self.to_read(ready) {
            let behind = self.closer.is_behind();
            self.attempt(id, |connection| {
                // Who is no guard yet may bring more to close. A guard comes again.
                if behind && !connection.has_greeted { Err(Cut::Busy) } else { connection.read(&mut words) }
            });
        }
        self.disregard_gone_newcomers(&mut words);
        for id in &ready.writable {
            self.attempt(*id, Connection::flush);
        }
        let silent =
            |connection: &Connection| !connection.has_greeted && now >= connection.opened_at + HELLO_PATIENCE;
        // One that does not read its dismissal is not waited for.
        let closable = |connection: &Connection| {
            connection.closing && (!connection.has_output() || now >= connection.opened_at + HELLO_PATIENCE)
        };
        self.remove_all(|connection| silent(connection) || closable(connection));
        self.accept_again_at = self.accept_again_at.filter(|at| now < *at);
        if ready.listener {
            self.accept(now);
        }
        let new: Vec<ConnectionId> =
            words.iter().filter(|(_, word)| matches!(word, Word::Hello(_))).map(|(id, _)| *id).collect();
        let (later, mut events): (Vec<_>, Vec<_>) =
            words.into_iter().map(event).partition(|(connection, _)| new.contains(connection));
        events.extend(ready.dead.iter().map(|life| (ConnectionId(0), Event::Died { life: *life })));
        events.extend(later);
        events.into_iter().map(|(_, event)| event).collect()
    }

    /// What a dead guard said lies in its connection, whether or not `poll` came early enough to see it.
    fn to_read(&self, ready: &Ready) -> Vec<ConnectionId> {
        let someone_died = !ready.dead.is_empty();
        let readable = |connection: &&Connection| {
            someone_died && connection.has_greeted || ready.readable.contains(&connection.id)
        };
        self.connections.iter().filter(readable).map(|connection| connection.id).collect()
    }

    pub(super) fn carry_out(&mut self, action: GuardAction) {
        match action {
            GuardAction::Tell { connection, message } => {
                self.attempt(connection, |connection| connection.tell(&message));
            }
            GuardAction::Adopt { connection, life } => {
                let found = self.connections.iter_mut().find(|found| found.id == connection);
                if let Some(pidfd) = found.and_then(Connection::take_pidfd) {
                    self.lives.push((life, pidfd));
                }
            }
            GuardAction::Close { connection } => {
                let found = self.connections.iter_mut().find(|found| found.id == connection);
                if let Some(found) = found {
                    found.closing = true;
                }
                self.remove_all(|found| found.closing && !found.has_output());
            }
            GuardAction::Forget { life } => self.lives.retain(|(known, _)| *known != life),
        }
    }

    /// Leaves all of it to be closed: also in a connection that was not accepted lie descriptors of clients.
    pub(super) fn close(self) {
        let Self { listener, connections, lives, closer, .. } = self;
        let weight = 1 + lives.len() + connections.iter().map(Connection::descriptors).sum::<usize>();
        closer.close((listener, connections, lives), weight);
    }

    /// A connection that had said hello, is gone and was not told yet, and why it is gone.
    pub(super) fn next_gone(&mut self) -> Option<(ConnectionId, Cut)> {
        self.gone.pop_front()
    }

    /// When a silent connection is closed next.
    pub(super) fn next_instant(&self) -> Option<BootTime> {
        let silent = self.connections.iter().filter(|connection| !connection.has_greeted);
        silent.map(|connection| connection.opened_at + HELLO_PATIENCE).chain(self.accept_again_at).min()
    }

    fn accept(&mut self, now: BootTime) {
        for _ in 0..ACCEPTS {
            if self.closer.is_behind() {
                self.accept_again_at = Some(now + ACCEPT_PAUSE);
                return;
            }
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = match accept_with(&self.listener, flags) {
                Ok(socket) => socket,
                Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return,
                Err(_) => {
                    // Descriptors have run out: whoever waits stays readable, and must not keep us awake.
                    self.accept_again_at = Some(now + ACCEPT_PAUSE);
                    return;
                }
            };
            if self.connections.len() >= MAX_CONNECTIONS {
                let Some(oldest) = self.connections.iter().position(|connection| !connection.has_greeted)
                else {
                    self.closer.close(socket, 1);
                    return;
                };
                self.remove(oldest);
            }
            self.accepted += 1;
            self.connections.push(Connection::new(ConnectionId(self.accepted), socket, now));
        }
    }

    fn attempt(&mut self, id: ConnectionId, act: impl FnOnce(&mut Connection) -> Result<(), Cut>) {
        let Some(place) = self.connections.iter().position(|connection| connection.id == id) else { return };
        if let Err(cut) = act(&mut self.connections[place]) {
            if self.connections[place].has_greeted {
                self.gone.push_back((id, cut));
            }
            self.remove(place);
        }
    }

    /// A hello from a connection that was cut right after it is as good as not said: there is no pidfd any more that
    /// could prove the guard's death.
    fn disregard_gone_newcomers(&mut self, words: &mut Vec<(ConnectionId, Word)>) {
        let gone: Vec<ConnectionId> = words
            .iter()
            .filter(|(id, word)| {
                matches!(word, Word::Hello(_)) && !self.connections.iter().any(|it| it.id == *id)
            })
            .map(|(id, _)| *id)
            .collect();
        words.retain(|(id, _)| !gone.contains(id));
        self.gone.retain(|(id, _)| !gone.contains(id));
    }

    fn remove(&mut self, place: usize) {
        let connection = self.connections.remove(place);
        let weight = connection.descriptors();
        self.closer.close(connection, weight);
    }

    fn remove_all(&mut self, unwanted: impl Fn(&Connection) -> bool) {
        while let Some(place) = self.connections.iter().position(&unwanted) {
            self.remove(place);
        }
    }
}

fn event((connection, word): (ConnectionId, Word)) -> (ConnectionId, Event) {
    let event = match word {
        Word::Hello(hello) => Event::Hello { connection, hello },
        Word::Other(message) => Event::Said { connection, message },
    };
    (connection, event)
}

#[cfg(test)]
mod tests;
