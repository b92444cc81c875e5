//! Which gates have stored a new fence, and when is one asked again? Plain data for one holding: whom to ask comes
//! out, what a gate answered goes in, each with its instant.

use std::time::Duration;

use fencedlease_core::BootTime;
use fencedlease_core::backoff::Backoff;
use fencedlease_wire::Fence;
use fencedlease_wire::settings::GateSettings;

/// How long one gate may take to answer: longer than the drain that a gate has by default.
pub(super) const RAISE_TIMEOUT: Duration = Duration::from_secs(5);
/// A call has its deadline elsewhere; one without any outcome is given up this much later.
const PATIENCE: Duration = Duration::from_secs(1);
/// The gates have at least this long together, so that a restart of one does not cost the lease.
const LEAST_TIME: Duration = Duration::from_secs(30);
/// The delays between two calls to a gate grow from this,
const LEAST_BACKOFF: Duration = Duration::from_millis(100);
/// to this.
const MOST_BACKOFF: Duration = Duration::from_secs(2);

/// One fence on its way to every gate.
#[derive(Clone, Debug)]
#[must_use]
pub(super) struct Raise {
    until: BootTime,
    gates: Vec<Gate>,
}

#[derive(Clone, Debug)]
struct Gate {
    stage: Stage,
    backoff: Backoff,
    /// What went wrong last.
    trouble: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    /// To be asked at this instant.
    Due(BootTime),
    /// Asked; without an outcome until then it is asked again.
    Asked { call: u64, until: BootTime },
    /// It has stored the fence.
    Stored,
}

/// How long all gates together may take, under these settings of a lease.
pub(super) fn time_for_gates(ttl: Duration, max_hold: Duration) -> Duration {
    ttl.max(LEAST_TIME).min(max_hold / 2)
}

impl Raise {
    /// Begins now, at so many gates.
    pub(super) fn new(gates: usize, time: Duration, now: BootTime) -> Self {
        let gate = || Gate {
            stage: Stage::Due(now),
            backoff: Backoff::new(LEAST_BACKOFF, MOST_BACKOFF),
            trouble: None,
        };
        Self { until: now + time, gates: (0..gates).map(|_| gate()).collect() }
    }

    /// A gate that is to be asked now; to be told with [`Self::asked`].
    pub(super) fn due(&self, now: BootTime) -> Option<usize> {
        self.gates.iter().position(|gate| matches!(gate.stage, Stage::Due(at) if at <= now))
    }

    /// The gate was asked by this call.
    pub(super) fn asked(&mut self, index: usize, call: u64, now: BootTime) {
        if let Some(gate) = self.gates.get_mut(index) {
            gate.stage = Stage::Asked { call, until: now + RAISE_TIMEOUT + PATIENCE };
        }
    }

    /// The gate that this call asked. `None` for a call that does not count any more.
    pub(super) fn gate_of(&self, call: u64) -> Option<usize> {
        let is_it = |gate: &Gate| matches!(gate.stage, Stage::Asked { call: asked, .. } if asked == call);
        self.gates.iter().position(is_it)
    }

    /// A gate whose call has had no outcome for too long.
    pub(super) fn silent(&self, now: BootTime) -> Option<usize> {
        self.gates.iter().position(|gate| matches!(gate.stage, Stage::Asked { until, .. } if until <= now))
    }

    /// The gate has stored the fence.
    pub(super) fn stored(&mut self, index: usize) {
        if let Some(gate) = self.gates.get_mut(index) {
            gate.stage = Stage::Stored;
            gate.trouble = None;
        }
    }

    /// The gate has not stored it as far as is known, and is asked again after a delay. `random` is uniform.
    pub(super) fn failed(&mut self, index: usize, trouble: String, now: BootTime, random: u64) {
        if let Some(gate) = self.gates.get_mut(index) {
            // Never in the same instant, so that waking always leads somewhere.
            let delay = gate.backoff.failed(random).max(Duration::from_millis(1));
            gate.stage = Stage::Due(now + delay);
            gate.trouble = Some(trouble);
        }
    }

    /// Whether every gate has stored the fence.
    pub(super) fn is_done(&self) -> bool {
        self.gates.iter().all(|gate| gate.stage == Stage::Stored)
    }

    /// When the lease is given back to somebody who can reach the gates.
    pub(super) fn until(&self) -> BootTime {
        self.until
    }

    /// When time alone changes anything next.
    pub(super) fn next_instant(&self) -> BootTime {
        let stages = self.gates.iter().filter_map(|gate| match gate.stage {
            Stage::Due(at) => Some(at),
            Stage::Asked { until, .. } => Some(until),
            Stage::Stored => None,
        });
        stages.fold(self.until, BootTime::min)
    }

    /// What went wrong at gates that have not stored the fence, for people; empty if nothing did.
    pub(super) fn trouble(&self, names: &[GateSettings]) -> String {
        let troubles = self.gates.iter().zip(names).filter_map(|(gate, name)| {
            gate.trouble.as_ref().map(|trouble| format!("{}: {trouble}", in_words(name)))
        });
        troubles.collect::<Vec<_>>().join("; ")
    }

    /// What is waited for, for people.
    pub(super) fn message(&self, fence: Fence, names: &[GateSettings]) -> String {
        let missing = self.gates.iter().zip(names).filter(|(gate, _)| gate.stage != Stage::Stored);
        let missing: Vec<&str> = missing.map(|(_, name)| name.name.as_str()).collect();
        let waits = format!("has fence {fence}, and waits for gate {} to store it", missing.join(", "));
        match self.trouble(names) {
            trouble if trouble.is_empty() => waits,
            trouble => format!("{waits}. {trouble}"),
        }
    }
}

/// A gate as people know it.
pub(super) fn in_words(gate: &GateSettings) -> String {
    format!("gate {} ({})", gate.name, gate.url)
}
