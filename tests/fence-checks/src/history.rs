//! Can what racing writers saw have happened at a check that keeps its word?

use crate::check::Outcome;

/// One write as its writer saw it. `began` and `ended` are drawn from one counter, so that an end below a
/// beginning means that it was over before.
#[derive(Clone, Debug)]
pub struct Event {
    /// Drawn before the write was sent.
    pub began: u64,
    /// Drawn when its outcome was there.
    pub ended: u64,
    /// The fence.
    pub fence: u64,
    /// Whose fence it was.
    pub holder: String,
    /// What was written; no two events have the same.
    pub value: i64,
    /// What became of it.
    pub outcome: Outcome,
}

/// What cannot have happened.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Violation {
    /// A write was accepted although a newer fence (or another holder's equal one) had been accepted before it
    /// began.
    #[error("value {late} was accepted with fence {late_fence} after value {early} with fence {early_fence}")]
    WentBack {
        /// The write that was accepted first.
        early: i64,
        /// Its fence.
        early_fence: u64,
        /// The one that should have been refused.
        late: i64,
        /// Its fence.
        late_fence: u64,
    },
    /// Two holders wrote with one fence.
    #[error("values {one} and {other} were accepted with fence {fence} of two holders")]
    TwoHolders {
        /// A value of the one.
        one: i64,
        /// A value of the other.
        other: i64,
        /// The fence of both.
        fence: u64,
    },
    /// A write was refused although nothing with a newer fence, or with another holder's equal one, had been
    /// sent by then.
    #[error("value {value} with fence {fence} was refused for no reason")]
    NoReason {
        /// What was refused.
        value: i64,
        /// Its fence.
        fence: u64,
    },
    /// A reader saw a newer fence's value and after it an older one's.
    #[error("value {late:?} was seen after value {early:?} of a newer fence")]
    SeenGoingBack {
        /// What was seen first.
        early: Option<i64>,
        /// What was seen after it.
        late: Option<i64>,
    },
    /// What is there in the end was not written with the highest accepted fence.
    #[error("in the end there is value {found:?}, not one of fence {fence}")]
    WrongValue {
        /// What is there.
        found: Option<i64>,
        /// The highest accepted fence.
        fence: u64,
    },
}

/// Everything in this history that cannot have happened. `seen` is what one reader saw, in order; it looked once
/// more when all writers were done.
pub fn violations(events: &[Event], seen: &[Option<i64>]) -> Vec<Violation> {
    let mut found = Vec::new();
    for event in events {
        match event.outcome {
            Outcome::Done => found.extend(against_the_accepted(event, events)),
            Outcome::Refused(_) if !may_be_refused(event, events) => {
                found.push(Violation::NoReason { value: event.value, fence: event.fence });
            }
            _ => {}
        }
    }
    found.extend(going_back(events, seen));
    found.extend(wrong_value(events, seen.last().copied().flatten()));
    found
}

fn accepted(events: &[Event]) -> impl Iterator<Item = &Event> {
    events.iter().filter(|event| event.outcome == Outcome::Done)
}

fn against_the_accepted(late: &Event, events: &[Event]) -> Vec<Violation> {
    let mut found = Vec::new();
    for early in accepted(events) {
        if early.ended < late.began && early.fence > late.fence {
            found.push(Violation::WentBack {
                early: early.value,
                early_fence: early.fence,
                late: late.value,
                late_fence: late.fence,
            });
        }
        // Whichever came first, the other had to be refused. Said once for each pair.
        if early.fence == late.fence && early.holder != late.holder && early.value < late.value {
            found.push(Violation::TwoHolders { one: early.value, other: late.value, fence: late.fence });
        }
    }
    found
}

fn may_be_refused(event: &Event, events: &[Event]) -> bool {
    events.iter().any(|other| {
        let newer = other.fence > event.fence || (other.fence == event.fence && other.holder != event.holder);
        // What was refused itself may have raised the fence before: telling a session its fence does.
        newer && !matches!(other.outcome, Outcome::Invalid(_)) && other.began < event.ended
    })
}

fn going_back(events: &[Event], seen: &[Option<i64>]) -> Vec<Violation> {
    // Nothing was written with fence 0, so the empty resource is older than all.
    let fence_of = |value: &Option<i64>| {
        events.iter().find(|event| Some(event.value) == *value).map_or(0, |event| event.fence)
    };
    let pairs = seen.windows(2).filter(|pair| fence_of(&pair[0]) > fence_of(&pair[1]));
    pairs.map(|pair| Violation::SeenGoingBack { early: pair[0], late: pair[1] }).collect()
}

fn wrong_value(events: &[Event], last: Option<i64>) -> Option<Violation> {
    let fence = accepted(events).map(|event| event.fence).max()?;
    // A write whose fate is unknown may have come last, with a newer fence too.
    let explains = |event: &&Event| {
        Some(event.value) == last
            && event.fence >= fence
            && matches!(event.outcome, Outcome::Done | Outcome::Unknown(_))
    };
    let explained = events.iter().any(|event| explains(&event));
    (!explained).then_some(Violation::WrongValue { found: last, fence })
}

#[cfg(test)]
mod tests;
