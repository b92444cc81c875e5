//! How long to wait after a failure: exponential, with full jitter, so that many clients spread.

use std::time::Duration;

/// Delays between attempts that fail one after the other.
#[derive(Clone, Debug)]
#[must_use]
pub struct Backoff {
    least: Duration,
    most: Duration,
    failures: u32,
}

impl Backoff {
    /// Delays drawn from zero up to `least`, then twice that, and so on up to `most`.
    pub fn new(least: Duration, most: Duration) -> Self {
        Self { least, most, failures: 0 }
    }

    /// The delay after one more failure. `random` is uniform in 0..=`u64::MAX`.
    pub fn failed(&mut self, random: u64) -> Duration {
        let ceiling = self.least.saturating_mul(1_u32 << self.failures.min(20)).min(self.most);
        self.failures = self.failures.saturating_add(1);
        fraction(ceiling, random)
    }

    /// Something worked: the next failure is the first again.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// How many failures there were in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

/// A uniform share of `whole`: `random` is uniform in 0..=`u64::MAX`.
pub fn fraction(whole: Duration, random: u64) -> Duration {
    let nanoseconds = (whole.as_nanos() * u128::from(random)) >> 64;
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}
