//! Writers that know nothing of each other: new holders, former ones that go on, and strangers with a fence that
//! is not theirs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use anyhow::anyhow;

use crate::check::{Claim, FenceCheck, Outcome};
use crate::history::{Event, violations};

use super::Failure;

const WRITERS: u64 = 8;
const WRITES: u64 = 12;
/// One in this many writes of a writer is the first of a new holding.
const NEW_HOLDING: u64 = 8;
/// One in this many is of the latest holding, on another connection of its holder.
const COLLEAGUE: u64 = 2;
/// A race with fewer accepted or refused writes says nothing.
const ENOUGH: usize = 5;
/// How often a write is sent that failed for reasons that have nothing to do with fences.
const TRIES: u32 = 6;
/// One in this many is of somebody who uses the latest fence without having been given it.
const STRANGER: u64 = 9;

/// The reader leaves the machine to the writers between two looks.
const READ_EVERY: Duration = Duration::from_millis(1);

/// What happened in a race.
#[derive(Clone, Debug)]
pub struct Race {
    /// All writes, by the counter that they were drawn from.
    pub events: Vec<Event>,
    /// What a reader saw meanwhile, and in the end.
    pub seen: Vec<Option<i64>>,
}

/// What all writers share.
struct Track<'a> {
    check: &'a dyn FenceCheck,
    resource: &'a str,
    /// The fence that was handed out last, and to whom.
    latest: Mutex<(u64, String)>,
    /// Where events draw their beginning and end from.
    now: AtomicU64,
}

/// A small generator of pseudo-random numbers (xorshift64): each writer's choices are the same in every run.
struct Choices(u64);

/// Eight writers at once on one resource; `seed` decides what they choose.
pub fn run_race(check: &dyn FenceCheck, resource: &str, seed: u64) -> anyhow::Result<Race> {
    let track = Track { check, resource, latest: Mutex::default(), now: AtomicU64::new(0) };
    let done = AtomicBool::new(false);
    let (events, observed) = thread::scope(|scope| {
        let reader = scope.spawn(|| read_until(&done, check, resource));
        let writers: Vec<_> = (1..=WRITERS)
            .map(|number| {
                let track = &track;
                scope.spawn(move || track.writer(number, seed))
            })
            .collect();
        let events: Vec<_> = writers.into_iter().map(ScopedJoinHandle::join).collect();
        done.store(true, Ordering::SeqCst);
        (events, reader.join())
    });
    let panicked = |_| anyhow!("a thread of the race panicked");
    let mut events = events.into_iter().collect::<Result<Vec<_>, _>>().map_err(panicked)?.concat();
    events.sort_by_key(|event| event.began);
    Ok(Race { events, seen: observed.map_err(panicked)?? })
}

/// Reads again and again, and once more when it is done.
fn read_until(done: &AtomicBool, check: &dyn FenceCheck, resource: &str) -> anyhow::Result<Vec<Option<i64>>> {
    let mut seen = Vec::new();
    loop {
        let last = done.load(Ordering::SeqCst);
        seen.push(check.value(resource)?);
        if last {
            return Ok(seen);
        }
        thread::sleep(READ_EVERY);
    }
}

pub(super) fn eight_writers_race(check: &dyn FenceCheck, resource: &str) -> Result<(), Failure> {
    let race = run_race(check, resource, 1).map_err(|error| format!("no race: {error:#}"))?;
    let wrong = violations(&race.events, &race.seen);
    if !wrong.is_empty() {
        let lines: Vec<String> = wrong.iter().map(ToString::to_string).collect();
        return Err(lines.join("; "));
    }
    let count = |is: fn(&Outcome) -> bool| race.events.iter().filter(|event| is(&event.outcome)).count();
    let (accepted, refused) =
        (count(|it| *it == Outcome::Done), count(|it| matches!(it, Outcome::Refused(_))));
    if accepted < ENOUGH || refused < ENOUGH {
        let others: Vec<&Outcome> = race
            .events
            .iter()
            .map(|event| &event.outcome)
            .filter(|it| !matches!(it, Outcome::Done | Outcome::Refused(_)))
            .collect();
        return Err(format!(
            "{accepted} accepted and {refused} refused writes say too little; others: {others:?}"
        ));
    }
    Ok(())
}

// === impl Track ===

impl Track<'_> {
    fn writer(&self, number: u64, seed: u64) -> Vec<Event> {
        let mut choices = Choices(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (number << 17));
        let (mut fence, mut holder) = self.acquire(number);
        let mut events = Vec::new();
        for round in 0..WRITES {
            if choices.one_in(NEW_HOLDING) {
                (fence, holder) = self.acquire(number);
            }
            let (fence, holder) = if choices.one_in(STRANGER) {
                (self.latest().0, format!("stranger-{number}"))
            } else if choices.one_in(COLLEAGUE) {
                self.latest().clone()
            } else {
                (fence, holder.clone())
            };
            let value = i64::try_from(number * 1000 + round).unwrap_or(i64::MAX);
            events.push(self.write(fence, holder, value));
        }
        events
    }

    fn acquire(&self, number: u64) -> (u64, String) {
        let mut latest = self.latest();
        let fence = latest.0 + 1;
        *latest = (fence, format!("writer-{number}-{fence}"));
        latest.clone()
    }

    fn latest(&self) -> MutexGuard<'_, (u64, String)> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, fence: u64, holder: String, value: i64) -> Event {
        let began = self.now.fetch_add(1, Ordering::SeqCst);
        let claim = Claim::new(fence.to_string(), holder.clone());
        let write = || self.check.write(self.resource, &claim, value);
        // As users do with a deadlock or a serialization failure.
        let again = |outcome: &Outcome| matches!(outcome, Outcome::Failed(_));
        let mut outcome = write();
        for _ in 1..TRIES {
            if again(&outcome) {
                outcome = write();
            }
        }
        let ended = self.now.fetch_add(1, Ordering::SeqCst);
        Event { began, ended, fence, holder, value, outcome }
    }
}

// === impl Choices ===

impl Choices {
    fn one_in(&mut self, many: u64) -> bool {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.is_multiple_of(many)
    }
}
