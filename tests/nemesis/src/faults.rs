//! Which fault comes next, by seed.

/// Random numbers that the seed decides: SplitMix64.
#[derive(Clone, Debug)]
pub struct Dice(u64);

/// What is done to a holder, or to its Redis.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Fault {
    /// The command ends by itself.
    CommandEnds,
    /// exec gets SIGTERM.
    Terminated,
    /// The holder's connections are reset.
    Cut,
    /// The answers to the holder are dropped.
    AnswersLost,
    /// Everything between holder and Redis is late by more than a renewal may take.
    Delayed,
    /// The holder's requests are kept, and sent on later.
    RequestsHeld,
    /// The answers to the holder are kept, and sent on later.
    AnswersHeld,
    /// Nobody's acquisition is answered while the holder's command ends.
    AcquisitionsUnanswered,
    /// Redis is stopped, and goes on.
    RedisStopped,
    /// Redis is killed, and comes back empty.
    RedisKilled,
    /// Redis is emptied.
    RedisEmptied,
    /// Somebody deletes the lease.
    LeaseDeleted,
    /// The sidecar is stopped, and goes on later.
    SidecarStopped,
    /// The sidecar is killed.
    SidecarKilled,
    /// The guard is stopped for less than the kill budget, and goes on.
    GuardStopped,
    /// The guard is killed.
    GuardKilled,
    /// exec is killed.
    ExecKilled,
}

/// Every kind, and how many of a hundred it is.
pub const SHARES: [(Fault, u64); 17] = [
    (Fault::CommandEnds, 16),
    (Fault::Terminated, 12),
    (Fault::Cut, 12),
    (Fault::AnswersLost, 5),
    (Fault::Delayed, 4),
    (Fault::RequestsHeld, 5),
    (Fault::AnswersHeld, 5),
    (Fault::AcquisitionsUnanswered, 4),
    (Fault::RedisStopped, 4),
    (Fault::RedisKilled, 3),
    (Fault::RedisEmptied, 3),
    (Fault::LeaseDeleted, 5),
    (Fault::SidecarStopped, 4),
    (Fault::SidecarKilled, 5),
    (Fault::GuardStopped, 4),
    (Fault::GuardKilled, 5),
    (Fault::ExecKilled, 4),
];

// === impl Dice ===

impl Dice {
    /// The same seed, the same numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end.max(1)
    }

    /// The next fault.
    pub fn fault(&mut self) -> Fault {
        let mut left = self.below(SHARES.iter().map(|(_, share)| share).sum());
        for (fault, share) in SHARES {
            if left < share {
                return fault;
            }
            left -= share;
        }
        Fault::CommandEnds
    }
}
