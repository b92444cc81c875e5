//! May a request pass? One resource's memory and the requests on their way to the backend, as plain data.
//!
//! Only what is stored durably refuses or lets pass: while a raise is being stored, everybody waits. A raised
//! fence lets nobody pass before each request of an older one has ended: those whose body is incomplete are cut
//! at once, since the backend has no whole request yet; those that are complete have the drain time to be
//! answered. Times are a process's own, since its start.

use std::collections::BTreeMap;
use std::time::Duration;

use fencedlease_wire::{Fence, HoldingId};

/// Who writes: a fence and the holding that has it.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Mark {
    /// The fence.
    pub fence: Fence,
    /// Its holder. `None` is a floor that was set by hand: the first to come with its fence is its holder.
    pub holder: Option<HoldingId>,
}

/// One request, by a number that is never used twice.
pub type RequestId = u64;

/// What the memory says of a mark.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Verdict {
    /// It is the highest, and no older request is on its way.
    Pass,
    /// Ask again when something has changed, or at this time.
    Wait(Option<Duration>),
    /// Store the mark durably, say so with [`Door::stored`] or [`Door::not_stored`], and ask again.
    Store,
    /// Never, for the reason given.
    Refused(Refusal),
}

/// Why a mark is refused.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Refusal {
    /// A higher fence has been here.
    Lower {
        /// The one that was shown.
        offered: Fence,
        /// The highest that is stored.
        highest: Fence,
    },
    /// Another holder has been here with the same fence.
    OtherHolder {
        /// The highest that is stored.
        highest: Fence,
    },
}

/// When a request on its way has to be cut.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Cut {
    /// Not as things stand.
    No,
    /// If it has not ended by then.
    At(Duration),
    /// Now: its body is incomplete, and a newer fence is stored.
    Now,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Fate {
    /// The backend answered, or has nothing that it could carry out.
    Settled,
    /// The backend may have all of it, and has not answered.
    Unsettled,
}

/// One resource.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Door {
    highest: Option<Mark>,
    storing: Option<Mark>,
    on_their_way: BTreeMap<RequestId, OnItsWay>,
    unsettled_at_highest: u64,
    unsettled_below: u64,
    closed_until: Duration,
    drain: Duration,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct OnItsWay {
    mark: Mark,
    /// Whether the backend may have all of it.
    complete: bool,
    superseded_at: Option<Duration>,
}

impl Door {
    /// A door that remembers `highest`, lets nobody pass before `closed_until`, and gives complete requests
    /// `drain` to be answered once a newer fence is stored.
    pub fn new(highest: Option<Mark>, closed_until: Duration, drain: Duration) -> Self {
        Self {
            highest,
            storing: None,
            on_their_way: BTreeMap::new(),
            unsettled_at_highest: 0,
            unsettled_below: 0,
            closed_until,
            drain,
        }
    }

    /// Whether `mark` may pass. After [`Verdict::Store`] it counts as being stored.
    pub fn judge(&mut self, mark: &Mark, now: Duration) -> Verdict {
        if let Some(refusal) = self.highest.as_ref().and_then(|highest| refusal(highest, mark)) {
            return Verdict::Refused(refusal);
        }
        if self.storing.is_some() {
            return Verdict::Wait(None);
        }
        if self.highest.as_ref() != Some(mark) {
            self.storing = Some(mark.clone());
            return Verdict::Store;
        }
        if now < self.closed_until {
            return Verdict::Wait(Some(self.closed_until));
        }
        if self.on_their_way.values().any(|it| it.mark != *mark) {
            Verdict::Wait(None)
        } else {
            Verdict::Pass
        }
    }

    /// A request that [`Door::judge`] let pass is on its way.
    pub fn enter(&mut self, id: RequestId, mark: Mark) {
        self.on_their_way.insert(id, OnItsWay { mark, complete: false, superseded_at: None });
    }

    /// The mark that was being stored is durable.
    pub fn stored(&mut self, now: Duration) {
        let Some(mark) = self.storing.take() else { return };
        for request in self.on_their_way.values_mut() {
            request.superseded_at.get_or_insert(now);
        }
        if self.highest.as_ref().is_some_and(|highest| highest.fence < mark.fence) {
            self.unsettled_below = std::mem::take(&mut self.unsettled_at_highest);
        }
        self.highest = Some(mark);
    }

    /// The mark that was being stored is not known to be durable: nothing has changed.
    pub fn not_stored(&mut self) {
        self.storing = None;
    }

    /// The backend may have all of this request from now on.
    pub fn complete(&mut self, id: RequestId) {
        if let Some(request) = self.on_their_way.get_mut(&id) {
            request.complete = true;
        }
    }

    /// When this request has to be cut, if it does not end before.
    pub fn cut(&self, id: RequestId) -> Cut {
        let Some(request) = self.on_their_way.get(&id) else { return Cut::No };
        match request.superseded_at {
            None => Cut::No,
            Some(at) if request.complete => Cut::At(at.saturating_add(self.drain)),
            Some(_) => Cut::Now,
        }
    }

    /// This request has ended: nothing more of it goes to the backend.
    pub fn ended(&mut self, id: RequestId, fate: Fate) {
        let Some(request) = self.on_their_way.remove(&id) else { return };
        if fate == Fate::Unsettled {
            if self.highest.as_ref() == Some(&request.mark) {
                self.unsettled_at_highest += 1;
            } else {
                self.unsettled_below += 1;
            }
        }
    }

    /// The highest mark that is stored.
    pub fn highest(&self) -> Option<&Mark> {
        self.highest.as_ref()
    }

    /// How many requests of older fences ended since the last raise, or under the fence before it, without
    /// anybody knowing whether they were done.
    pub fn unsettled(&self) -> u64 {
        self.unsettled_below
    }

    /// How many requests are on their way.
    pub fn on_their_way(&self) -> usize {
        self.on_their_way.len()
    }
}

fn refusal(highest: &Mark, offered: &Mark) -> Option<Refusal> {
    let is_other = highest.holder.is_some() && highest.holder != offered.holder;
    if offered.fence < highest.fence {
        Some(Refusal::Lower { offered: offered.fence, highest: highest.fence })
    } else if offered.fence == highest.fence && is_other {
        Some(Refusal::OtherHolder { highest: highest.fence })
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
