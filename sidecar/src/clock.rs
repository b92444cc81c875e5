//! CLOCK_BOOTTIME: what time it is, how to sleep until an instant, and whether the machine was suspended.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use fencedlease_core::BootTime;
use rustix::io::Errno;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

/// The present instant on CLOCK_BOOTTIME.
pub fn now() -> BootTime {
    BootTime::from_start(duration(clock_gettime(ClockId::Boottime)))
}

/// A timer that becomes readable at an instant on CLOCK_BOOTTIME, for use with `poll`. An instant that
/// passed during a suspend is readable at wake-up.
#[derive(Debug)]
pub struct BootTimer(OwnedFd);

/// Two reads of CLOCK_BOOTTIME with one of CLOCK_MONOTONIC between them. Two plain reads can lie 184 ms
/// apart on a busy machine that never slept, so only a bracket says what the offset is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClockReading {
    /// CLOCK_BOOTTIME before.
    pub boot_before: Duration,
    /// CLOCK_MONOTONIC between.
    pub monotonic: Duration,
    /// CLOCK_BOOTTIME after.
    pub boot_after: Duration,
}

/// Notices suspends: BOOTTIME gains on MONOTONIC only while the machine sleeps.
#[derive(Clone, Copy, Debug)]
pub struct SuspendWatch {
    /// The offset lies between these two.
    least: Duration,
    most: Duration,
}

impl ClockReading {
    /// Reads the clocks, a few times if something came between, and keeps the narrowest bracket.
    pub fn take() -> Self {
        let mut best = Self::once();
        for _ in 0..4 {
            if best.width() < NARROW {
                break;
            }
            let next = Self::once();
            if next.width() < best.width() {
                best = next;
            }
        }
        best
    }

    fn once() -> Self {
        let boot_before = duration(clock_gettime(ClockId::Boottime));
        let monotonic = duration(clock_gettime(ClockId::Monotonic));
        let boot_after = duration(clock_gettime(ClockId::Boottime));
        Self { boot_before, monotonic, boot_after }
    }

    fn width(&self) -> Duration {
        self.boot_after.saturating_sub(self.boot_before)
    }
}

impl SuspendWatch {
    /// A watch that starts with this reading.
    pub fn new(reading: ClockReading) -> Self {
        let (least, most) = offset(reading);
        Self { least, most }
    }

    /// Takes the next reading and tells how long the machine has surely slept since the last one;
    /// `None` if the readings can be explained without a suspend.
    pub fn observe(&mut self, reading: ClockReading) -> Option<Duration> {
        let (least, most) = offset(reading);
        if least > self.most {
            let slept = least.saturating_sub(self.most);
            *self = Self { least, most };
            return Some(slept);
        }
        // Both brackets hold the same offset, so it lies in what they share: a wide reading on a busy
        // machine does not make the watch forget a narrow one.
        self.least = self.least.max(least);
        self.most = self.most.min(most);
        None
    }
}

// === impl BootTimer ===

impl BootTimer {
    /// A timer that is not set.
    pub fn new() -> Result<Self, Errno> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self(timerfd_create(TimerfdClockId::Boottime, flags)?))
    }

    /// Sets it to this instant, or to none. An instant in the past makes it readable at once; one that
    /// was readable is so no more.
    pub fn set(&self, at: Option<BootTime>) -> Result<(), Errno> {
        let value = at.map_or(Timespec { tv_sec: 0, tv_nsec: 0 }, |at| {
            // All zero would unset it.
            let since_start = at.since_start().max(Duration::from_nanos(1));
            Timespec {
                tv_sec: i64::try_from(since_start.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: since_start.subsec_nanos().into(),
            }
        });
        let spec = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &spec)?;
        Ok(())
    }
}

impl AsFd for BootTimer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A bracket below this is as good as it gets.
const NARROW: Duration = Duration::from_micros(50);

fn offset(reading: ClockReading) -> (Duration, Duration) {
    let least = reading.boot_before.saturating_sub(reading.monotonic);
    let most = reading.boot_after.saturating_sub(reading.monotonic);
    (least, most)
}

fn duration(time: Timespec) -> Duration {
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests;
