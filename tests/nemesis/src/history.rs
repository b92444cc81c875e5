//! What happened to one lease, and whether it may have: pure, over recorded instants on CLOCK_BOOTTIME.

use std::collections::{BTreeMap, BTreeSet};

/// Nanoseconds on CLOCK_BOOTTIME. All processes of a run share one kernel, so one clock.
pub type Nanos = u64;

/// What Redis executed, in its order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Executed {
    /// A script set the lease.
    Acquired {
        /// When.
        at: Nanos,
        /// The owner token.
        token: String,
        /// The fence that the script answered.
        fence: u64,
        /// The run whose name stands in the holder's text.
        run: u64,
    },
    /// A script extended the lease.
    Renewed {
        /// When.
        at: Nanos,
        /// The owner token.
        token: String,
    },
    /// A script deleted the lease.
    Released {
        /// When.
        at: Nanos,
        /// The owner token.
        token: String,
    },
    /// Somebody else deleted it, or Redis lost it. Two holders are not ruled out until the old one notices.
    TakenAway {
        /// When.
        at: Nanos,
    },
}

/// The life of the processes of one run, as they stamped it themselves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stamps {
    /// Whose they are.
    pub run: u64,
    /// The fence that the workload was started with.
    pub fence: u64,
    /// The first instant of the first process.
    pub first: Nanos,
    /// The last instant of the last process.
    pub last: Nanos,
}

/// What a sidecar said of its holding, in its order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Said {
    /// It holds.
    Active {
        /// With this fence.
        fence: u64,
    },
    /// It has lost what it held.
    Lost {
        /// With this fence.
        fence: u64,
        /// When it noticed, to the millisecond.
        at: Nanos,
    },
}

/// All that is known of one lease.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// How long a grant lasts in Redis.
    pub ttl: Nanos,
    /// In Redis's order.
    pub redis: Vec<Executed>,
    /// One for each run that held.
    pub stamps: Vec<Stamps>,
    /// When runs ended, which is the proof that nothing of them is left.
    pub ended: BTreeMap<u64, Nanos>,
    /// What each run's sidecar said.
    pub said: BTreeMap<u64, Vec<Said>>,
}

/// What must never happen. The numbers are runs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Violation {
    /// Workloads of two runs lived at the same time.
    Overlap(u64, u64),
    /// A workload lived when the next acquisition was executed.
    TakenOverAlive(u64, u64),
    /// A workload lived when its lease was released.
    ReleasedAlive(u64),
    /// A workload ran with a fence that was not its run's, or not any more.
    RunWithoutLease(u64),
    /// A later acquisition got a fence that is not greater.
    FenceOrder(u64, u64),
    /// Two acquisitions with one owner token.
    TokenReused(u64, u64),
    /// A process of the workload outlived the end of its run.
    StampAfterEnd(u64),
    /// A sidecar that had lost said that it holds.
    HeldAfterLoss(u64),
}

/// One acquisition and what became of it in Redis.
struct Grant<'a> {
    at: Nanos,
    token: &'a str,
    fence: u64,
    run: u64,
    /// The last instant at which it was granted anew.
    granted_at: Nanos,
    released_at: Option<Nanos>,
    /// Taken away before the next acquisition.
    taken_away: bool,
}

/// Everything in this history that must never happen; empty if nothing did.
pub fn check(history: &History) -> Vec<Violation> {
    let grants = grants(&history.redis);
    let mut found = Vec::new();
    check_order(&grants, &mut found);
    for stamps in &history.stamps {
        check_run(history, &grants, *stamps, &mut found);
    }
    check_overlap(history, &grants, &mut found);
    for (run, said) in &history.said {
        let mut lost = BTreeSet::new();
        for word in said {
            match word {
                Said::Lost { fence, .. } => {
                    lost.insert(*fence);
                }
                Said::Active { fence } if lost.contains(fence) => found.push(Violation::HeldAfterLoss(*run)),
                Said::Active { .. } => {}
            }
        }
    }
    found
}

fn grants(redis: &[Executed]) -> Vec<Grant<'_>> {
    let mut grants: Vec<Grant<'_>> = Vec::new();
    for executed in redis {
        match executed {
            Executed::Acquired { at, token, fence, run } => grants.push(Grant {
                at: *at,
                token,
                fence: *fence,
                run: *run,
                granted_at: *at,
                released_at: None,
                taken_away: false,
            }),
            Executed::Renewed { at, token } => {
                if let Some(grant) = grants.iter_mut().rev().find(|grant| grant.token == token) {
                    grant.granted_at = *at;
                }
            }
            Executed::Released { at, token } => {
                if let Some(grant) = grants.iter_mut().rev().find(|grant| grant.token == token) {
                    grant.released_at = Some(*at);
                }
            }
            Executed::TakenAway { .. } => {
                if let Some(grant) = grants.last_mut() {
                    grant.taken_away = true;
                }
            }
        }
    }
    grants
}

fn check_order(grants: &[Grant<'_>], found: &mut Vec<Violation>) {
    let mut tokens: BTreeMap<&str, u64> = BTreeMap::new();
    for pair in grants.windows(2) {
        if pair[1].fence <= pair[0].fence {
            found.push(Violation::FenceOrder(pair[0].run, pair[1].run));
        }
    }
    for grant in grants {
        if let Some(first) = tokens.insert(grant.token, grant.run) {
            found.push(Violation::TokenReused(first, grant.run));
        }
    }
}

fn check_run(history: &History, grants: &[Grant<'_>], stamps: Stamps, found: &mut Vec<Violation>) {
    if history.ended.get(&stamps.run).is_some_and(|ended| stamps.last > *ended) {
        found.push(Violation::StampAfterEnd(stamps.run));
    }
    let held = grants.iter().position(|grant| (grant.run, grant.fence) == (stamps.run, stamps.fence));
    let Some(index) = held.filter(|index| grants[*index].at < stamps.first) else {
        found.push(Violation::RunWithoutLease(stamps.run));
        return;
    };
    let grant = &grants[index];
    let next = grants.get(index + 1);
    let excused = is_excused(history, grant, stamps);
    if next.is_some_and(|next| next.at < stamps.first) && !excused {
        found.push(Violation::RunWithoutLease(stamps.run));
    } else if let Some(next) = next.filter(|next| next.at <= stamps.last && !excused) {
        found.push(Violation::TakenOverAlive(stamps.run, next.run));
    }
    if grant.released_at.is_some_and(|released| released <= stamps.last) {
        found.push(Violation::ReleasedAlive(stamps.run));
    }
}

fn check_overlap(history: &History, grants: &[Grant<'_>], found: &mut Vec<Violation>) {
    let mut stamps = history.stamps.clone();
    stamps.sort_by_key(|stamps| stamps.first);
    for (index, older) in stamps.iter().enumerate() {
        for newer in &stamps[index + 1..] {
            if newer.first > older.last {
                break;
            }
            let grant = grants.iter().find(|grant| (grant.run, grant.fence) == (older.run, older.fence));
            if !grant.is_some_and(|grant| is_excused(history, grant, *older)) {
                found.push(Violation::Overlap(older.run, newer.run));
            }
        }
    }
}

/// Whose key was taken away learns it at the next renewal, and ends before what it was granted runs out.
fn is_excused(history: &History, grant: &Grant<'_>, stamps: Stamps) -> bool {
    grant.taken_away && stamps.last < grant.granted_at + history.ttl
}

#[cfg(test)]
mod tests;
