//! Starts guards in namespaces of their own, and plays the sidecar.

pub(crate) mod container;
pub(crate) mod sidecar;

use std::time::Duration;

use fencedlease_core::BootTime;
use fencedlease_core::timing::STALL;
use fencedlease_sidecar::clock;
use fencedlease_wire::guard::ToGuard;
use fencedlease_wire::{EndReason, Fence, HoldingId};

/// How long the kernel may take to end killed processes in these tests: the default of `killBudget`.
pub(crate) const KILL_BUDGET: Duration = Duration::from_secs(2);
/// How long anything else may take before a test gives up. Nothing is asserted to be this fast.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The instants of one grant, as a sidecar would compute them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instants {
    pub(crate) term_at: BootTime,
    pub(crate) kill_at: BootTime,
}

impl Instants {
    /// SIGTERM after `term_in`, SIGKILL `grace` + stall later.
    pub(crate) fn after(term_in: Duration, grace: Duration) -> Self {
        // In whole milliseconds, as it stands on the wire.
        let term_at = BootTime::from_millis((clock::now() + term_in).as_millis());
        Self { term_at, kill_at: term_at + STALL + grace }
    }

    /// Far enough away to play no part.
    pub(crate) fn far() -> Self {
        Self::after(Duration::from_mins(1), Duration::from_secs(2))
    }

    /// The last instant at which the holder may believe that it holds.
    pub(crate) fn deadline(self) -> BootTime {
        self.kill_at + STALL + KILL_BUDGET
    }

    pub(crate) fn grant(self, holding: &HoldingId, fence: u64) -> ToGuard {
        ToGuard::Grant {
            holding: holding.clone(),
            fence: Fence::new(fence).unwrap(),
            resource: "shop/ledger".to_owned(),
            term_at_ms: self.term_at.as_millis(),
            kill_at_ms: self.kill_at.as_millis(),
        }
    }

    pub(crate) fn extend(self, holding: &HoldingId) -> ToGuard {
        ToGuard::Extend {
            holding: holding.clone(),
            term_at_ms: self.term_at.as_millis(),
            kill_at_ms: self.kill_at.as_millis(),
        }
    }
}

/// A holding id of these bits.
pub(crate) fn holding(bits: u8) -> HoldingId {
    HoldingId::from_random([bits; 8])
}

/// An end of this holding.
pub(crate) fn end(
    holding: &HoldingId,
    reason: EndReason,
    kill_at: BootTime,
    exit_code: Option<u8>,
) -> ToGuard {
    ToGuard::End {
        holding: holding.clone(),
        reason,
        kill_at_ms: kill_at.as_millis(),
        exit_code,
        message: "ended by the test".to_owned(),
    }
}

/// Tries until `found` answers something, and says what was missing if it never does.
pub(crate) fn eventually<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let until = clock::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(clock::now() < until, "in {PATIENCE:?} there was never {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
