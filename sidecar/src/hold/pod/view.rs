//! What others may know of the pod: plain data, from which answers are computed at their own instant.

use std::collections::BTreeMap;
use std::time::Duration;

use fencedlease_core::{BootTime, HoldingState};
use fencedlease_wire::endpoint::{GatesStanding, RedisStanding, Standing};
use fencedlease_wire::settings::StandbyMode;
use fencedlease_wire::socket::{CommitCheck, CommitRefusal, CommitVerdict, LeaseView};
use fencedlease_wire::{EndReason, Fence, HoldingId};

use super::Pod;

/// A snapshot of the pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Published {
    /// `namespace/name`.
    pub resource: String,
    /// Where it stands.
    pub state: State,
    /// It could hold now: it waits or holds.
    pub competes: bool,
    /// The guarded containers whose guards are not waiting, in a pod that does not hold.
    pub missing: Vec<String>,
    /// Whether it has been ACTIVE in this run or the one before.
    pub was_active: bool,
    /// Whether its containers exist only after the first acquisition.
    pub is_cold: bool,
    /// What Redis last answered.
    pub redis: RedisStanding,
    /// When it last answered.
    pub redis_answered_at: Option<BootTime>,
    /// What the gates last answered; `None` where there are none.
    pub gates: Option<GatesStanding>,
    /// How long Redis may be silent.
    pub ttl: Duration,
    /// The greatest fence known.
    pub highest_fence: Option<Fence>,
}

/// Where the pod stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum State {
    /// It waits, or its containers are not ready to.
    Waiting {
        /// Who holds, as far as Redis tells.
        holder: Option<String>,
        /// When it tries next, for the lease or to reach a gate.
        next_try: BootTime,
        /// What went wrong last.
        message: Option<String>,
    },
    /// It holds.
    Active {
        /// With this fence.
        fence: Fence,
        /// Which holding.
        holding: HoldingId,
        /// `t_s`.
        confirmed_at: BootTime,
        /// From here on no commit may start.
        term_at: BootTime,
        /// What an application may count on ends here.
        kill_at: BootTime,
        /// When `maxHold` ends it.
        ends_at: BootTime,
        /// How much must remain for a commit to start.
        commit_margin: Duration,
        /// Why it is being ended.
        ending: Option<EndReason>,
        /// The application is to know that `maxHold` is near.
        max_hold_is_near: bool,
    },
    /// The lease is lost, and the pod not a standby again.
    Lost {
        /// The fence.
        fence: Fence,
        /// Why.
        reason: EndReason,
        /// For people.
        message: String,
        /// Its workload is not proven dead.
        killing: bool,
    },
    /// The lease was given back.
    Released {
        /// The fence.
        fence: Fence,
        /// Why.
        reason: EndReason,
    },
}

pub(super) fn publish(pod: &Pod) -> Published {
    let competes = pod.is_ready_to_hold() || pod.held.as_ref().is_some_and(|held| !held.holding.is_over());
    Published {
        resource: pod.config.resource.to_string(),
        state: state(pod),
        competes,
        missing: pod.guards.missing(),
        was_active: pod.was_active,
        is_cold: pod.config.standby_mode == StandbyMode::Cold,
        redis: pod.redis.clone(),
        redis_answered_at: pod.redis_answered_at,
        gates: (!pod.config.gates.is_empty()).then(|| pod.gates.clone()),
        ttl: pod.config.timing.ttl(),
        highest_fence: pod.highest_fence,
    }
}

fn state(pod: &Pod) -> State {
    if let Some(held) = &pod.held
        && held.is_open()
        && let HoldingState::Active | HoldingState::Ending { .. } = held.holding.state()
    {
        let holding = &held.holding;
        return State::Active {
            fence: holding.fence(),
            holding: holding.id().clone(),
            confirmed_at: holding.confirmed_at(),
            term_at: holding.term_at(),
            kill_at: holding.kill_at(),
            ends_at: holding.ends_at(),
            commit_margin: holding.timing().commit_margin(),
            ending: holding.end_reason(),
            max_hold_is_near: held.warned,
        };
    }
    if let Some(held) = &pod.held
        && let Some(raise) = &held.raise
        && !held.holding.is_over()
    {
        return State::Waiting {
            holder: None,
            next_try: raise.next_instant(),
            message: Some(raise.message(held.holding.fence(), &pod.config.gates)),
        };
    }
    match &pod.last {
        Some(last) if matches!(last.reason, EndReason::Lost(_)) => State::Lost {
            fence: last.fence,
            reason: last.reason,
            message: last.message.clone(),
            killing: pod.held.is_some() || pod.orphans.is_some(),
        },
        Some(last) if !pod.is_ready_to_hold() => State::Released { fence: last.fence, reason: last.reason },
        _ => State::Waiting {
            holder: pod.holder.clone(),
            next_try: pod.standby.next_try(),
            message: pod.trouble.clone(),
        },
    }
}

// === impl Published ===

impl Published {
    /// The answer to `GET /v1/lease` at `now`.
    pub fn lease_view(&self, now: BootTime) -> LeaseView {
        let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let resource = self.resource.clone();
        match &self.state {
            State::Waiting { holder, next_try, message } => LeaseView::Waiting {
                resource,
                holder: holder.clone(),
                retry_in_ms: ms(next_try.since(now)),
                message: message.clone().or_else(|| self.waits_for_guards()),
            },
            State::Active { fence, holding, confirmed_at, kill_at, ends_at, ending, .. } => {
                LeaseView::Active {
                    resource,
                    fence: *fence,
                    holding: holding.clone(),
                    remaining_ms: ms(kill_at.since(now)),
                    kill_at_boottime_ms: kill_at.as_millis(),
                    max_hold_remaining_ms: ms(ends_at.since(now)),
                    renewed_ms_ago: ms(now.since(*confirmed_at)),
                    ending: *ending,
                    headers: BTreeMap::new(),
                }
            }
            State::Lost { fence, reason, message, .. } => {
                LeaseView::Lost { resource, fence: *fence, reason: *reason, message: message.clone() }
            }
            State::Released { fence, reason } => {
                LeaseView::Released { resource, fence: *fence, reason: *reason }
            }
        }
    }

    /// Whether a final commit may start at `now`.
    pub fn commit_verdict(&self, check: CommitCheck, now: BootTime) -> CommitVerdict {
        let refused = |reason, message: String| CommitVerdict::Refused { allowed: false, reason, message };
        let State::Active { fence, term_at, kill_at, commit_margin, ending, .. } = &self.state else {
            return match &self.state {
                State::Waiting { .. } | State::Active { .. } => refused(
                    CommitRefusal::Waiting,
                    "this pod does not hold the lease; start the work when it is ACTIVE".into(),
                ),
                State::Lost { fence, message, .. } => {
                    refused(CommitRefusal::Lost, format!("fence {fence} was lost: {message}"))
                }
                State::Released { fence, reason } => {
                    refused(CommitRefusal::Lost, format!("fence {fence} was given back: {reason}"))
                }
            };
        };
        if let Some(asked) = check.fence
            && asked != *fence
        {
            let message = format!(
                "fence is {asked}, the present one is {fence}; the work under {asked} must not be committed"
            );
            return refused(CommitRefusal::FenceMismatch, message);
        }
        if let Some(reason) = ending {
            return refused(CommitRefusal::TooLate, format!("the holding is being ended: {reason}"));
        }
        let remaining = kill_at.since(now);
        let needed = check.need_ms.map(Duration::from_millis).unwrap_or_default().max(*commit_margin);
        if now >= *term_at || remaining <= needed {
            let message = format!(
                "{} ms remain, more than {} ms are needed; ask again after the next renewal, and raise ttl if none leaves so much",
                remaining.as_millis(),
                needed.as_millis()
            );
            return refused(CommitRefusal::TooLate, message);
        }
        CommitVerdict::Allowed {
            allowed: true,
            fence: *fence,
            remaining_ms: u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX),
            headers: BTreeMap::new(),
        }
    }

    /// What the operator is told regularly.
    pub fn standing(&self) -> Standing {
        match &self.state {
            State::Active { fence, holding, .. } => {
                Standing::Holding { fence: *fence, holding: holding.clone() }
            }
            State::Lost { fence, killing: true, .. } => Standing::Killing { fence: *fence },
            State::Lost { .. } | State::Released { .. } => Standing::Ended,
            State::Waiting { .. } => Standing::Waiting,
        }
    }

    /// What keeps the pod from being Ready at `now`; `None` if nothing does.
    pub fn not_ready(&self, standby_is_ready: bool, now: BootTime) -> Option<String> {
        if let Some(silence) = self.redis_silence(now) {
            return Some(silence);
        }
        match &self.state {
            State::Lost { fence, reason, .. } => Some(format!("the lease was lost: {reason}, fence {fence}")),
            State::Waiting { .. } | State::Released { .. } if !standby_is_ready => {
                Some("this pod waits for the lease, and standbys of this lease are not Ready".to_owned())
            }
            State::Active { .. } | State::Waiting { .. } | State::Released { .. } => None,
        }
    }

    /// What keeps the startup probe from passing; `None` if nothing does.
    pub fn not_started(&self) -> Option<String> {
        let missing = "this pod waits for the lease; its containers start when it is ACTIVE";
        (self.is_cold && !self.was_active).then(|| missing.to_owned())
    }

    fn redis_silence(&self, now: BootTime) -> Option<String> {
        let wrong = !self.redis.message.is_empty();
        match self.redis_answered_at {
            Some(at) if wrong && now.since(at) > self.ttl => Some(format!(
                "Redis has not answered for {} s: {}",
                now.since(at).as_secs(),
                self.redis.message
            )),
            None if wrong => Some(format!("Redis has not answered yet: {}", self.redis.message)),
            None | Some(_) => None,
        }
    }

    fn waits_for_guards(&self) -> Option<String> {
        (!self.missing.is_empty() && !self.is_cold)
            .then(|| format!("waits for the guards of: {}", self.missing.join(", ")))
    }
}
