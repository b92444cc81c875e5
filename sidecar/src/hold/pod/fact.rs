//! What happened, for those who only want to know: logs, metrics, reports.

use std::time::Duration;

use fencedlease_wire::endpoint::RedisStandingKind;
use fencedlease_wire::{EndReason, Fence, HoldingId, LossReason, PlannedEnd};

/// A fact for people, dashboards and the operator.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// A guard is connected.
    GuardConnected {
        /// Of this container.
        container: String,
    },
    /// A guard has no connection any more.
    GuardDisconnected {
        /// Of this container.
        container: String,
        /// Why.
        reason: String,
    },
    /// A guard was turned away.
    GuardRefused {
        /// Of this container, as it says.
        container: String,
        /// Why.
        message: String,
        /// How many more were turned away since the last time that this was told.
        untold: u64,
    },
    /// Somebody else has the lease.
    HeldByOther {
        /// For people.
        message: String,
    },
    /// An attempt to acquire brought no answer that counts.
    AttemptFailed {
        /// How Redis stands.
        kind: RedisStandingKind,
        /// For people.
        message: String,
    },
    /// The pod is ACTIVE.
    Acquired {
        /// With this fence.
        fence: Fence,
        /// Which holding.
        holding: HoldingId,
        /// How long it had waited.
        waited: Duration,
        /// Who held before.
        previous_holder: Option<String>,
        /// From the release that was heard.
        handover: Option<Duration>,
    },
    /// A gate has stored the fence.
    Raised {
        /// Which gate.
        gate: String,
        /// Which fence.
        fence: Fence,
        /// From the acquisition, or its confirmation, to the answer.
        took: Duration,
        /// Requests of older fences that were cut there and whose fate nobody knows.
        unsettled: u64,
    },
    /// A gate did not store the fence, as far as is known.
    RaiseFailed {
        /// Which gate.
        gate: String,
        /// Which fence.
        fence: Fence,
        /// For people.
        message: String,
    },
    /// A gate has a greater fence than Redis handed out, or the same one of another holder.
    GateAhead {
        /// Which gate.
        gate: String,
        /// The fence that it refused.
        fence: Fence,
        /// The highest that it has.
        highest: Fence,
        /// For people.
        message: String,
    },
    /// An acquisition was given back before any workload started.
    Abandoned {
        /// Its fence.
        fence: Fence,
        /// Why.
        message: String,
    },
    /// The workload of a container runs.
    Started {
        /// Which container.
        container: String,
        /// Since the grant.
        after: Duration,
    },
    /// A renewal was confirmed.
    Renewed {
        /// From send to answer.
        took: Duration,
        /// How much later than due it was sent.
        late: Duration,
        /// What remained until the kill instant before it was confirmed.
        remaining: Duration,
    },
    /// The end of `maxHold` is near.
    MaxHoldNear {
        /// How near.
        ends_in: Duration,
    },
    /// The holding is being ended on purpose.
    Ending {
        /// Its fence.
        fence: Fence,
        /// Why.
        reason: PlannedEnd,
        /// For people.
        message: String,
    },
    /// The lease is lost; the workload is being killed.
    LossNoticed {
        /// The fence.
        fence: Fence,
        /// Why.
        reason: LossReason,
        /// For people.
        message: String,
        /// When SIGKILL is due, from now.
        kill_in: Duration,
    },
    /// The lease is lost, and the workload dead, or not dead in time.
    Lost {
        /// The fence.
        fence: Fence,
        /// Which holding.
        holding: HoldingId,
        /// Why.
        reason: LossReason,
        /// For people.
        message: String,
        /// From noticing to proven death.
        dead_after: Option<Duration>,
        /// From proven death to the deadline, in milliseconds.
        before_deadline_ms: Option<i64>,
    },
    /// The lease was given back.
    Released {
        /// The fence.
        fence: Fence,
        /// Which holding.
        holding: HoldingId,
        /// Why.
        reason: EndReason,
        /// How long it was held.
        held: Duration,
        /// From the end's beginning to proven death.
        dead_after: Duration,
    },
}
