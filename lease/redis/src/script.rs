//! Which command asks Redis for what?
//!
//! Each is one EVAL with the whole script: EVALSHA would fail after a SCRIPT FLUSH or a failover, and end every
//! holder at once. No script has a `#!lua` header, because Redis above `maxmemory` would then refuse to renew.

use std::time::Duration;

use fencedlease_wire::{Fence, OwnerToken};
use redis::Cmd;

use crate::LeaseKeys;

const ACQUIRE: &str = include_str!("scripts/acquire.lua");
const RENEW: &str = include_str!("scripts/renew.lua");
const RELEASE: &str = include_str!("scripts/release.lua");
const INSPECT: &str = include_str!("scripts/inspect.lua");

/// Asks for the lease.
#[derive(Clone, Debug)]
pub struct Acquire {
    /// New random bits for every attempt.
    pub token: OwnerToken,
    /// How long the lease lasts; whole milliseconds count.
    pub ttl: Duration,
    /// The fence must be above it.
    pub floor: Option<Fence>,
    /// Who asks, for people: the pod's name.
    pub holder: String,
}

/// Extends the lease.
#[derive(Clone, Debug)]
pub struct Renew {
    /// The token that it was acquired with.
    pub token: OwnerToken,
    /// How long it lasts from now on; whole milliseconds count.
    pub ttl: Duration,
    /// The fence that it was acquired with.
    pub fence: Fence,
}

/// Gives the lease back.
#[derive(Clone, Debug)]
pub struct Release {
    /// The token that it was acquired with.
    pub token: OwnerToken,
    /// Whether the workload ended in order, so that no quarantine is needed.
    pub clean: bool,
}

// === impl Acquire ===

impl Acquire {
    pub(crate) fn command(&self, keys: &LeaseKeys) -> Cmd {
        let floor = self.floor.map_or_else(|| "0".to_owned(), |floor| floor.to_string());
        let keys = [&keys.lease, &keys.fence, &keys.holder, &keys.clean];
        eval(ACQUIRE, &keys, &[self.token.as_str(), &milliseconds(self.ttl), &floor, &self.holder])
    }
}

// === impl Renew ===

impl Renew {
    pub(crate) fn command(&self, keys: &LeaseKeys) -> Cmd {
        let keys = [&keys.lease, &keys.fence, &keys.holder];
        eval(RENEW, &keys, &[self.token.as_str(), &milliseconds(self.ttl), &self.fence.to_string()])
    }
}

// === impl Release ===

impl Release {
    pub(crate) fn command(&self, keys: &LeaseKeys) -> Cmd {
        let clean = if self.clean { "1" } else { "0" };
        let words = [self.token.as_str(), clean, &keys.released];
        eval(RELEASE, &[&keys.lease, &keys.clean], &words)
    }
}

pub(crate) fn inspect_command(keys: &LeaseKeys) -> Cmd {
    eval(INSPECT, &[&keys.lease, &keys.fence, &keys.holder, &keys.clean], &[])
}

fn eval(script: &str, keys: &[&String], words: &[&str]) -> Cmd {
    let mut command = Cmd::new();
    command.arg("EVAL").arg(script).arg(keys.len()).arg(keys).arg(words);
    command
}

/// At least 1, because Redis refuses a lease that lasts no time at all after it has counted its fence.
fn milliseconds(duration: Duration) -> String {
    duration.as_millis().max(1).to_string()
}

#[cfg(test)]
mod tests;
