//! One way of a connection: which bytes go on now, and which wait? Pure; the time is passed in.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::fault::Treatment;

/// Bytes that a pipe keeps at most before it stops reading, so that a held client feels back-pressure.
const MAX_KEPT: usize = 4 * 1024 * 1024;

/// Bytes under way in one direction.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    queue: VecDeque<Piece>,
    kept: usize,
    /// When the last byte of a drip was sent.
    dripped: Option<Instant>,
    /// Bytes were dropped, so nothing may follow them.
    torn: bool,
    ended: bool,
}

#[derive(Debug)]
struct Piece {
    came: Instant,
    /// Empty for the end of the stream.
    bytes: Vec<u8>,
    /// It was made to wait.
    late: bool,
}

/// What to do next.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Step {
    /// Send these bytes; `late` if they were kept or delayed.
    Send {
        /// The bytes.
        bytes: Vec<u8>,
        /// Whether they go out later than they came.
        late: bool,
    },
    /// Tell the other side that the stream has ended.
    Finish,
    /// This many bytes were dropped.
    Dropped(usize),
    /// Reset the connection.
    Reset,
    /// Wait for bytes, for another fault, or until this instant.
    Wait(Option<Instant>),
}

// === impl Pipe ===

impl Pipe {
    /// Takes in what was read; nothing means the end of the stream.
    pub(crate) fn push(&mut self, came: Instant, bytes: Vec<u8>) {
        self.ended |= bytes.is_empty();
        self.kept += bytes.len();
        self.queue.push_back(Piece { came, bytes, late: false });
    }

    /// Whether more may be read.
    pub(crate) fn reads(&self) -> bool {
        !self.ended && self.kept < MAX_KEPT
    }

    /// The next step under this treatment.
    pub(crate) fn step(&mut self, treatment: Treatment, now: Instant) -> Step {
        match treatment {
            Treatment::Keep => {
                for piece in &mut self.queue {
                    piece.late = true;
                }
                Step::Wait(None)
            }
            Treatment::Swallow => {
                if self.queue.is_empty() {
                    return Step::Wait(None);
                }
                self.torn = true;
                self.queue.clear();
                Step::Dropped(std::mem::take(&mut self.kept))
            }
            Treatment::Forward(_) | Treatment::Drip(_) if self.torn => Step::Reset,
            Treatment::Drip(delay) => self.drip(delay, now),
            Treatment::Forward(delay) => match self.queue.front_mut() {
                None => Step::Wait(None),
                Some(piece) if now < piece.came + delay => {
                    piece.late = true;
                    Step::Wait(Some(piece.came + delay))
                }
                Some(_) => self.pop(),
            },
        }
    }

    fn drip(&mut self, delay: Duration, now: Instant) -> Step {
        let Some(piece) = self.queue.front_mut().filter(|piece| !piece.bytes.is_empty()) else {
            return self.pop();
        };
        piece.late = true;
        let due = self.dripped.map_or(piece.came, |before| before.max(piece.came)) + delay;
        if now < due {
            return Step::Wait(Some(due));
        }
        self.dripped = Some(now);
        self.kept -= 1;
        let first = piece.bytes.remove(0);
        if piece.bytes.is_empty() {
            self.queue.pop_front();
        }
        Step::Send { late: true, bytes: vec![first] }
    }

    fn pop(&mut self) -> Step {
        match self.queue.pop_front() {
            Some(piece) if !piece.bytes.is_empty() => {
                self.kept -= piece.bytes.len();
                Step::Send { late: piece.late, bytes: piece.bytes }
            }
            Some(_) => Step::Finish,
            None => Step::Wait(None),
        }
    }
}

#[cfg(test)]
mod tests;
