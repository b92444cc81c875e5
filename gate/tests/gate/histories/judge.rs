//! Is there an order in which all that clients saw can have happened, one thing at a time?
//!
//! The search of Wing and Gong, with the memory of Lowe: an operation takes effect between its call and its
//! answer; one without a known end may take effect at any time after its call, or never.

use std::collections::HashSet;

use crate::support::Holder;

/// What a client saw.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Saw {
    /// The write passed.
    Written,
    /// Refused by its fence.
    Refused,
    /// The raise was answered.
    Raised,
    /// This value.
    Read(Option<String>),
    /// It may have taken effect, wholly or in part, or may still.
    Unknown,
}

/// One operation. Times are drawn from one counter.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// `None` for a read that showed no ticket.
    pub(crate) holder: Option<Holder>,
    /// What it would have written.
    pub(crate) value: Option<String>,
    pub(crate) called: u64,
    pub(crate) answered: u64,
    pub(crate) saw: Saw,
}

/// One thing that takes effect at an instant. A write raises first, and then writes: between the two a newer fence
/// may be stored, which refuses older ones from then on, but passes only once this write is over.
#[derive(Clone, Debug)]
struct Event {
    effect: Effect,
    called: u64,
    /// `u64::MAX` where it may never have happened.
    answered: u64,
    /// The event that must come before it.
    after: Option<usize>,
}

#[derive(Clone, Debug)]
enum Effect {
    Raise(Holder),
    Pass(Holder),
    Write(Holder, String),
    Refuse(Holder),
    Read(Option<Holder>, Option<String>),
}

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
struct State {
    /// Whose fence is stored.
    highest: Option<Holder>,
    /// Who was the last to pass.
    passed: Option<Holder>,
    value: Option<String>,
}

/// What the search found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Judgement {
    /// An order explains it all.
    Explained,
    /// None does.
    Impossible,
    /// There were too many orders to try.
    Undecided,
}

/// How many states are tried. Histories that have an order mostly need some hundred.
const MOST_STATES: usize = 100_000;

/// Whether such an order exists. At most 128 events.
pub(crate) fn judge(history: &[Seen]) -> Judgement {
    let events = events(history);
    assert!(events.len() <= 128, "{} events are too many to be judged", events.len());
    let required = bits(events.iter().map(|event| event.answered < u64::MAX));
    let mut seen = HashSet::new();
    let mut open = vec![(0_u128, State::default())];
    while let Some((done, state)) = open.pop() {
        let Some(done) = with_what_changes_nothing(&events, done, &state) else { continue };
        if done & required == required {
            return Judgement::Explained;
        }
        if seen.len() > MOST_STATES {
            return Judgement::Undecided;
        }
        if !seen.insert((done, state.clone())) {
            continue;
        }
        for index in possible(&events, done).rev() {
            if let Some(state) = state.with(&events[index].effect) {
                open.push((done | 1 << index, state));
            }
        }
    }
    Judgement::Impossible
}

/// What may be next: called before anything that is left was answered.
fn possible(events: &[Event], done: u128) -> impl DoubleEndedIterator<Item = usize> {
    let left = move |index: &usize| done & (1 << index) == 0;
    let first_answer = (0..events.len()).filter(left).map(|index| events[index].answered).min();
    (0..events.len()).filter(left).filter(move |index| {
        let event = &events[*index];
        let is_after = event.after.is_none_or(|before| done & (1 << before) != 0);
        is_after && Some(event.called) < first_answer
    })
}

/// What can happen now and changes nothing happens at once: nothing is gained by waiting. What can never happen
/// any more is done with if it need not, and ends the search here if it must.
fn with_what_changes_nothing(events: &[Event], mut done: u128, state: &State) -> Option<u128> {
    loop {
        let before = done;
        let now: Vec<usize> = possible(events, done)
            .filter(|index| state.with(&events[*index].effect).as_ref() == Some(state))
            .collect();
        done = now.iter().fold(done, |done, index| done | 1 << index);
        for (index, event) in events.iter().enumerate().filter(|(_, event)| state.is_past(&event.effect)) {
            if done & (1 << index) == 0 && event.answered < u64::MAX {
                return None;
            }
            done |= 1 << index;
        }
        if done == before {
            return Some(done);
        }
    }
}

impl State {
    /// The state after it, if it can happen now.
    fn with(&self, effect: &Effect) -> Option<Self> {
        match effect {
            Effect::Raise(holder) => {
                is_open(self.highest, *holder).then(|| Self { highest: Some(*holder), ..self.clone() })
            }
            Effect::Write(holder, value) => {
                self.passing(*holder).map(|state| Self { value: Some(value.clone()), ..state })
            }
            Effect::Refuse(holder) => (!is_open(self.highest, *holder)).then(|| self.clone()),
            Effect::Read(_, value) if *value != self.value => None,
            Effect::Read(None, _) => Some(self.clone()),
            Effect::Pass(holder) | Effect::Read(Some(holder), _) => self.passing(*holder),
        }
    }

    /// Whether it can never happen again, since fences only grow.
    fn is_past(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Raise(holder) => !is_open(self.highest, *holder),
            Effect::Pass(holder) | Effect::Write(holder, _) | Effect::Read(Some(holder), _) => {
                !is_open(self.passed, *holder)
            }
            Effect::Refuse(_) | Effect::Read(None, _) => false,
        }
    }

    /// The state in which this holder was the last to pass, if nobody newer was.
    fn passing(&self, holder: Holder) -> Option<Self> {
        is_open(self.passed, holder).then(|| Self { passed: Some(holder), ..self.clone() })
    }
}

/// Whether nobody newer than this holder, and no other with its fence, was here.
fn is_open(here: Option<Holder>, holder: Holder) -> bool {
    here.is_none_or(|here| here.fence < holder.fence || here == holder)
}

fn events(history: &[Seen]) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for seen in history {
        let called = seen.called;
        let answered = if seen.saw == Saw::Unknown { u64::MAX } else { seen.answered };
        let mut push = |effect, after| {
            events.push(Event { effect, called, answered, after });
            events.len() - 1
        };
        let Some(holder) = seen.holder else {
            if let Saw::Read(value) = &seen.saw {
                push(Effect::Read(None, value.clone()), None);
            }
            continue;
        };
        if seen.saw == Saw::Refused {
            push(Effect::Refuse(holder), None);
            // Its own raise may have been stored before a newer one overtook it in front of the door.
            events.push(Event { effect: Effect::Raise(holder), called, answered: u64::MAX, after: None });
            continue;
        }
        let raise = push(Effect::Raise(holder), None);
        match (&seen.saw, &seen.value) {
            (Saw::Read(value), _) => {
                push(Effect::Read(Some(holder), value.clone()), Some(raise));
            }
            (Saw::Written | Saw::Unknown, Some(value)) => {
                push(Effect::Write(holder, value.clone()), Some(raise));
            }
            (Saw::Raised, _) => {
                push(Effect::Pass(holder), Some(raise));
            }
            _ => {}
        }
    }
    events
}

fn bits(flags: impl Iterator<Item = bool>) -> u128 {
    flags.enumerate().fold(0, |bits, (index, flag)| if flag { bits | 1 << index } else { bits })
}
