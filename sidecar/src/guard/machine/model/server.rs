//! Redis as the machines meet it: one lease, one sequence, and requests that are on their way.

use super::variant::Variant;

/// How long a lease lasts, by Redis's clock, which is the model's.
pub(super) const TTL_MS: u64 = 5000;
/// How much later than the send a reply may stamp a lease, where one does.
const STAMPED_LATER_MS: u64 = 1500;

/// What tells one attempt to acquire from all others; token and holding id are made of it.
pub(super) type Number = u16;

#[derive(Clone, Debug, Default, Hash, PartialEq)]
pub(super) struct Server {
    pub(super) lease: Option<Lease>,
    pub(super) sequence: u64,
    /// When somebody deleted a lease that was held.
    pub(super) taken_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub(super) struct Lease {
    pub(super) owner: Number,
    expires_ms: u64,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub(super) enum Request {
    Acquire { owner: Number, floor: u64 },
    Renew { owner: Number, fence: u64 },
    Release { owner: Number },
}

#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub(super) enum Answer {
    Acquired {
        owner: Number,
        fence: u64,
    },
    Held {
        remaining_ms: u64,
        highest: u64,
    },
    Renewed,
    OtherOwner,
    KeyGone,
    SequenceLost,
    /// The lease was deleted; whose it was.
    Released {
        owner: Number,
    },
    NotOwner,
}

/// A request, from its sending until nobody waits for it any more.
#[derive(Clone, Debug, Hash, PartialEq)]
pub(super) struct Message {
    pub(super) site: usize,
    /// Which run of that sidecar sent it.
    pub(super) run: u8,
    pub(super) call: u64,
    pub(super) request: Request,
    pub(super) stage: Stage,
    /// The sender still waits.
    pub(super) awaited: bool,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq)]
pub(super) enum Stage {
    /// Carried out and answered before time passes, unless it is held up.
    Fresh,
    /// Held up: carried out at any time, or never.
    Late,
    /// Carried out; the reply is held up, or lost.
    Answered(Answer),
}

// === impl Server ===

impl Server {
    /// Time has passed.
    pub(super) fn expire(&mut self, now_ms: u64) {
        self.lease = self.lease.filter(|lease| now_ms < lease.expires_ms);
    }

    pub(super) fn is_held_by(&self, owner: Number) -> bool {
        self.lease.is_some_and(|lease| lease.owner == owner)
    }

    pub(super) fn carry_out(&mut self, request: Request, now_ms: u64, variant: Variant) -> Answer {
        let ttl = match variant {
            Variant::StampedAtReply => TTL_MS - STAMPED_LATER_MS,
            Variant::FastRedis => TTL_MS * 2 / 3,
            _ => TTL_MS,
        };
        let expires_ms = now_ms + ttl;
        match request {
            Request::Acquire { owner, floor } => {
                if let Some(lease) = self.lease {
                    let remaining_ms = lease.expires_ms - now_ms;
                    return Answer::Held { remaining_ms, highest: self.sequence };
                }
                self.sequence = self.sequence.max(floor) + 1;
                self.lease = Some(Lease { owner, expires_ms });
                self.taken_ms = None;
                Answer::Acquired { owner, fence: self.sequence }
            }
            Request::Renew { owner, fence } => {
                let is_behind = self.sequence < fence;
                self.sequence = self.sequence.max(fence);
                let is_asked_whose = variant != Variant::RenewWithoutToken;
                match &mut self.lease {
                    None if !is_asked_whose => Answer::Renewed,
                    None => Answer::KeyGone,
                    Some(lease) if is_asked_whose && lease.owner != owner => Answer::OtherOwner,
                    Some(_) if is_behind => Answer::SequenceLost,
                    Some(lease) => {
                        lease.expires_ms = expires_ms;
                        Answer::Renewed
                    }
                }
            }
            Request::Release { owner } => {
                let is_taken =
                    |lease: &mut Lease| lease.owner == owner || variant == Variant::ReleaseWithoutToken;
                self.lease
                    .take_if(is_taken)
                    .map_or(Answer::NotOwner, |lease| Answer::Released { owner: lease.owner })
            }
        }
    }

    /// Somebody deletes the lease, or Redis evicts it. Answers whether there was one.
    pub(super) fn delete(&mut self, now_ms: u64, variant: Variant) -> bool {
        if variant == Variant::ForgottenFence {
            self.sequence = 0;
        }
        let is_taken = self.lease.take().is_some();
        if is_taken {
            self.taken_ms = Some(now_ms);
        }
        is_taken
    }
}
