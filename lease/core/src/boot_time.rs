//! An instant on CLOCK_BOOTTIME.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

/// An instant on CLOCK_BOOTTIME: the time since the machine started, suspends included. The only clock
/// that decides anything here. It has a type of its own because `std::time::Instant` is another clock.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct BootTime(Duration);

impl BootTime {
    /// The instant this long after the machine started.
    pub const fn from_start(since_start: Duration) -> Self {
        Self(since_start)
    }

    /// The instant of this many milliseconds, as it stands on a wire.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(Duration::from_millis(milliseconds))
    }

    /// The time since the machine started.
    pub const fn since_start(self) -> Duration {
        self.0
    }

    /// Whole milliseconds, rounded down: an instant told to others is never later than the true one.
    pub fn as_millis(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }

    /// How long it is from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The instant this long before `self`; the machine's start if there is none.
    #[must_use]
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration))
    }
}

// === impl BootTime ===

impl Add<Duration> for BootTime {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

impl fmt::Display for BootTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}s", self.0.as_secs(), self.0.subsec_millis())
    }
}
