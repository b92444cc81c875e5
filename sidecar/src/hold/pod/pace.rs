//! What repeats itself is told the first time, and then now and then with how often it was left out.

use std::time::Duration;

use fencedlease_core::BootTime;

/// How often a kind is told at most.
const INTERVAL: Duration = Duration::from_mins(1);

/// Remembers what was told. One entry a kind, so the kinds must be few.
#[derive(Clone, Debug)]
pub struct Pace<K> {
    told: Vec<Told<K>>,
}

#[derive(Clone, Debug)]
struct Told<K> {
    kind: K,
    at: BootTime,
    untold: u64,
}

impl<K: PartialEq> Pace<K> {
    /// Nothing was told yet.
    pub const fn new() -> Self {
        Self { told: Vec::new() }
    }

    /// Something of this kind happened. Answers whether it is to be told, and how many before it were not.
    pub fn tell(&mut self, kind: K, now: BootTime) -> Option<u64> {
        let Some(told) = self.told.iter_mut().find(|told| told.kind == kind) else {
            self.told.push(Told { kind, at: now, untold: 0 });
            return Some(0);
        };
        if now < told.at + INTERVAL {
            told.untold += 1;
            return None;
        }
        told.at = now;
        Some(std::mem::take(&mut told.untold))
    }
}

impl<K: PartialEq> Default for Pace<K> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
