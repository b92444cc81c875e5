//! When a standby tries to acquire: at the published release or at the expiry that it was told, with
//! jitter; after a failure with a growing delay.

use std::time::Duration;

use crate::BootTime;
use crate::backoff::{Backoff, fraction};

/// After a release the attempts of many standbys spread over this.
const RELEASE_JITTER: Duration = Duration::from_millis(10);
/// After failures the delays grow up to this.
const MOST_BACKOFF: Duration = Duration::from_secs(5);
/// And start with this.
const LEAST_BACKOFF: Duration = Duration::from_millis(100);

/// A pod that waits for the lease. The random numbers passed in are uniform in 0..=`u64::MAX`.
#[derive(Clone, Debug)]
#[must_use]
pub struct Standby {
    ttl: Duration,
    next_try: BootTime,
    /// What was said to [`Self::not_before`]: no release makes it sooner.
    earliest: BootTime,
    backoff: Backoff,
}

impl Standby {
    /// A standby that may try at once.
    pub fn new(ttl: Duration, now: BootTime) -> Self {
        Self { ttl, next_try: now, earliest: now, backoff: Backoff::new(LEAST_BACKOFF, MOST_BACKOFF) }
    }

    /// When to try next.
    pub fn next_try(&self) -> BootTime {
        self.next_try
    }

    /// Nothing before `instant`, whatever is heard: a pod that could not use what it got leaves it to others.
    pub fn not_before(&mut self, instant: BootTime) {
        self.earliest = self.earliest.max(instant);
        self.next_try = self.next_try.max(instant);
    }

    /// Redis said that the lease is held for `remaining` more: asleep until then, and up to a tenth of the
    /// ttl longer. A lease without an expiry is not ours to wait for exactly: asked again after a ttl.
    pub fn held(&mut self, remaining: Option<Duration>, now: BootTime, random: u64) {
        self.backoff.succeeded();
        let remaining = remaining.unwrap_or(self.ttl).min(self.ttl);
        self.next_try = now + remaining + fraction(self.ttl / 10, random);
    }

    /// A release was published: try within a few milliseconds, unless a back-off or [`Self::not_before`] holds.
    pub fn released(&mut self, now: BootTime, random: u64) {
        if self.backoff.failures() == 0 {
            self.next_try = self.next_try.min(now + fraction(RELEASE_JITTER, random)).max(self.earliest);
        }
    }

    /// An attempt failed, or its outcome is unknown.
    pub fn failed(&mut self, now: BootTime, random: u64) {
        self.next_try = now + self.backoff.failed(random);
    }
}

#[cfg(test)]
mod tests;
