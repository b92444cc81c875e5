//! Which timings keep the promises. One function decides, for CRD, webhook and sidecar alike.
//!
//! With `t_s` the instant just before the last confirmed acquire or renew was sent:
//!
//! ```text
//! validity      = ttl / (1 + drift) − margin
//! deadline      = t_s + validity
//! kill instant  = deadline − stall − killBudget
//! term instant  = kill instant − stall − gracePeriod
//!
//! (R)  renewInterval + renewTimeout + 3·stall + gracePeriod + killBudget  <  validity
//! (C)  renewInterval + renewTimeout + stall + commitMargin  <  kill instant − t_s
//! ```
//!
//! In whole milliseconds, with the constants below:
//! (R) is `6·(renewInterval + renewTimeout + gracePeriod + killBudget + 2000) < 5·ttl`,
//! (C) is `6·(renewInterval + renewTimeout + killBudget + commitMargin + 1500) < 5·ttl`.

use std::ops::RangeInclusive;
use std::time::Duration;

use fencedlease_wire::settings::TimingSettings;

use crate::BootTime;
use crate::duration::in_seconds;

/// How late a thread may be scheduled before that is a loss of its own.
pub const STALL: Duration = Duration::from_millis(500);
/// What validity keeps back for everything that has no name.
pub const MARGIN: Duration = Duration::from_millis(500);
/// How much faster than the holder's clock Redis's may run, as a fraction: 1/5. Two hosts whose clocks
/// are being slewed by chrony can differ by 18 %.
pub const DRIFT: f64 = 0.2;

/// A timing that keeps the promises; there is no other way to have one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timing {
    ttl: Duration,
    renew_interval: Duration,
    renew_timeout: Duration,
    grace_period: Duration,
    kill_budget: Duration,
    commit_margin: Duration,
}

/// Why a timing cannot keep the promises. The texts name the field, the value and the remedy.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TimingError {
    /// A field outside its range.
    #[error("spec.{field} is {}: it must lie between {} and {}", in_seconds(*.found), in_seconds(*.least), in_seconds(*.most))]
    OutOfRange {
        /// The field's name in the spec.
        field: &'static str,
        /// Its value.
        found: Duration,
        /// The smallest value accepted.
        least: Duration,
        /// The greatest value accepted.
        most: Duration,
    },
    /// Rule (R): a renewal that times out would be noticed too late to end the workload in time.
    #[error(
        "spec.ttl {} is too short: renewInterval {} + renewTimeout {} + 3 × stall 0.5s + gracePeriod {} + killBudget {} = {} must be below ttl/1.2 − 0.5s = {}. Set ttl to {} or more{}",
        in_seconds(.timing.ttl), in_seconds(.timing.renew_interval), in_seconds(.timing.renew_timeout),
        in_seconds(.timing.grace_period), in_seconds(.timing.kill_budget), in_seconds(.timing.renewal_needs()),
        in_seconds(.timing.validity()), in_seconds(*.ttl_needed), alternative(*.shorter_grace, "gracePeriod")
    )]
    TooShortToKill {
        /// The timing that was asked for.
        timing: Box<Timing>,
        /// The ttl from which on every ttl satisfies both rules.
        ttl_needed: Duration,
        /// The greatest gracePeriod that alone would mend it, if one does.
        shorter_grace: Option<Duration>,
    },
    /// Rule (C): a healthy holder would be told that it is too late to commit.
    #[error(
        "spec.commitMargin {} is too long: renewInterval {} + renewTimeout {} + stall 0.5s + commitMargin {} = {} must be below the {} from a renewal to the kill instant. Set ttl to {} or more{}",
        in_seconds(.timing.commit_margin), in_seconds(.timing.renew_interval), in_seconds(.timing.renew_timeout),
        in_seconds(.timing.commit_margin), in_seconds(.timing.commit_needs()), in_seconds(.timing.kill_after()),
        in_seconds(*.ttl_needed), alternative(*.shorter_margin, "commitMargin")
    )]
    TooShortToCommit {
        /// The timing that was asked for.
        timing: Box<Timing>,
        /// The ttl from which on every ttl satisfies both rules.
        ttl_needed: Duration,
        /// The greatest commitMargin that alone would mend it, if one does.
        shorter_margin: Option<Duration>,
    },
}

impl Timing {
    /// The timing of these settings, if it keeps rules (R) and (C) and every field lies in its range.
    pub fn try_new(settings: &TimingSettings) -> Result<Self, TimingError> {
        let ms = Duration::from_millis;
        let timing = Self {
            ttl: ms(settings.ttl_ms),
            renew_interval: ms(settings.renew_interval_ms.unwrap_or(settings.ttl_ms / 3)),
            renew_timeout: ms(settings.renew_timeout_ms),
            grace_period: ms(settings.grace_period_ms),
            kill_budget: ms(settings.kill_budget_ms),
            commit_margin: ms(settings.commit_margin_ms),
        };
        timing.check_ranges(settings.renew_interval_ms.is_some())?;
        timing.check_rules(settings.renew_interval_ms.is_some())?;
        Ok(timing)
    }

    /// How long the lease lasts in Redis.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// From one renewal's send to the next one's.
    pub fn renew_interval(&self) -> Duration {
        self.renew_interval
    }

    /// How long a renewal may take.
    pub fn renew_timeout(&self) -> Duration {
        self.renew_timeout
    }

    /// From SIGTERM to SIGKILL.
    pub fn grace_period(&self) -> Duration {
        self.grace_period
    }

    /// How long the kernel may take to end killed processes.
    pub fn kill_budget(&self) -> Duration {
        self.kill_budget
    }

    /// How much must remain for a final commit to start.
    pub fn commit_margin(&self) -> Duration {
        self.commit_margin
    }

    /// How long after `t_s` the holder may believe that it holds: `ttl / 1.2 − margin`, rounded down.
    pub fn validity(&self) -> Duration {
        (self.ttl * 5 / 6).saturating_sub(MARGIN)
    }

    /// From `t_s` to the kill instant.
    pub fn kill_after(&self) -> Duration {
        self.validity().saturating_sub(STALL + self.kill_budget)
    }

    /// From `t_s` to the term instant.
    pub fn term_after(&self) -> Duration {
        self.kill_after().saturating_sub(STALL + self.grace_period)
    }

    /// The last instant at which the holder may believe that it holds.
    #[must_use]
    pub fn deadline(&self, confirmed_at: BootTime) -> BootTime {
        confirmed_at + self.validity()
    }

    /// When SIGKILL is sent at the latest.
    #[must_use]
    pub fn kill_at(&self, confirmed_at: BootTime) -> BootTime {
        confirmed_at + self.kill_after()
    }

    /// When SIGTERM is sent at the latest.
    #[must_use]
    pub fn term_at(&self, confirmed_at: BootTime) -> BootTime {
        confirmed_at + self.term_after()
    }

    /// The left side of rule (R).
    fn renewal_needs(&self) -> Duration {
        self.renew_interval + self.renew_timeout + STALL * 3 + self.grace_period + self.kill_budget
    }

    /// The left side of rule (C).
    fn commit_needs(&self) -> Duration {
        self.renew_interval + self.renew_timeout + STALL + self.commit_margin
    }

    fn check_ranges(&self, renew_interval_is_set: bool) -> Result<(), TimingError> {
        let ranges = [
            ("ttl", self.ttl, TTL_RANGE),
            ("renewTimeout", self.renew_timeout, RENEW_TIMEOUT_RANGE),
            ("gracePeriod", self.grace_period, GRACE_PERIOD_RANGE),
            ("killBudget", self.kill_budget, KILL_BUDGET_RANGE),
            ("commitMargin", self.commit_margin, COMMIT_MARGIN_RANGE),
        ];
        let interval =
            renew_interval_is_set.then_some(("renewInterval", self.renew_interval, RENEW_INTERVAL_RANGE));
        for (field, found, range) in ranges.into_iter().chain(interval) {
            if !range.contains(&found) {
                let (least, most) = range.into_inner();
                return Err(TimingError::OutOfRange { field, found, least, most });
            }
        }
        Ok(())
    }

    fn check_rules(&self, renew_interval_is_set: bool) -> Result<(), TimingError> {
        let timing = || Box::new(*self);
        let ttl_needed = self.ttl_needed(renew_interval_is_set);
        // Both sides times 6, so that whole milliseconds decide and nothing is rounded.
        let five_ttl = self.ttl * 5;
        let room = |without: Duration| {
            let six_more = five_ttl.checked_sub(without * 6)?;
            // The greatest whole number of milliseconds strictly below a sixth of it.
            let most = u64::try_from(six_more.as_millis().checked_sub(1)? / 6).ok()?;
            Some(Duration::from_millis(most))
        };
        let kill_side = self.renewal_needs() + MARGIN;
        let commit_side = self.commit_needs() + MARGIN + STALL + self.kill_budget;
        let (kill_holds, commit_holds) = (kill_side * 6 < five_ttl, commit_side * 6 < five_ttl);
        if !kill_holds {
            let shorter_grace = room(kill_side.saturating_sub(self.grace_period)).filter(|_| commit_holds);
            return Err(TimingError::TooShortToKill { timing: timing(), ttl_needed, shorter_grace });
        }
        if !commit_holds {
            let shorter_margin = room(commit_side.saturating_sub(self.commit_margin));
            return Err(TimingError::TooShortToCommit { timing: timing(), ttl_needed, shorter_margin });
        }
        Ok(())
    }

    /// The smallest ttl from which on every ttl satisfies both rules, the other fields as they are.
    fn ttl_needed(&self, renew_interval_is_set: bool) -> Duration {
        let common = self.renew_timeout + self.kill_budget + STALL * 3;
        let rest = common + (self.grace_period + STALL).max(self.commit_margin);
        let milliseconds = rest.as_millis();
        let needed = if renew_interval_is_set {
            (self.renew_interval.as_millis() + milliseconds) * 6 / 5 + 1
        } else {
            // From 6·⌊ttl/3⌋ + 6·rest < 5·ttl: twice the rest, or one more where a third of that is whole.
            2 * milliseconds + u128::from((2 * milliseconds).is_multiple_of(3))
        };
        Duration::from_millis(u64::try_from(needed).unwrap_or(u64::MAX))
    }
}

fn alternative(shorter: Option<Duration>, field: &str) -> String {
    shorter.map_or_else(
        || ".".to_owned(),
        |most| format!(", or shorten {field} to {} or less.", in_seconds(most)),
    )
}

const fn range(least_ms: u64, most_ms: u64) -> RangeInclusive<Duration> {
    RangeInclusive::new(Duration::from_millis(least_ms), Duration::from_millis(most_ms))
}

const TTL_RANGE: RangeInclusive<Duration> = range(5_000, 600_000);
const RENEW_INTERVAL_RANGE: RangeInclusive<Duration> = range(100, 300_000);
const RENEW_TIMEOUT_RANGE: RangeInclusive<Duration> = range(50, 60_000);
const GRACE_PERIOD_RANGE: RangeInclusive<Duration> = range(0, 300_000);
const KILL_BUDGET_RANGE: RangeInclusive<Duration> = range(200, 300_000);
const COMMIT_MARGIN_RANGE: RangeInclusive<Duration> = range(0, 300_000);

#[cfg(test)]
mod tests;
