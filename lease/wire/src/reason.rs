//! Why a holding ended: one closed list for files, JSON, metrics, events and status.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a lease was lost. The names are the same in every text that a user meets.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[non_exhaustive]
pub enum LossReason {
    /// No answer to a renewal within `renewTimeout`.
    RenewalTimeout,
    /// Redis answered a renewal with an error.
    RenewalError,
    /// The connection closed while a renewal was unanswered.
    ConnectionClosed,
    /// Redis says that the lease belongs to another owner token.
    OtherOwner,
    /// Redis says that there is no lease.
    KeyGone,
    /// The stored sequence is below the holder's fence: Redis has lost data.
    SequenceLost,
    /// The machine was suspended while the lease was held.
    Suspended,
    /// The thread that watches the instants woke up later than `stall` allows.
    WatchLate,
    /// A guard cannot be heard any more, and its container is not proven dead.
    GuardGone,
    /// The sidecar was restarted while it held the lease.
    SidecarRestarted,
}

/// Why a holding was ended on purpose.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[non_exhaustive]
pub enum PlannedEnd {
    /// `maxHold` is over.
    MaxHold,
    /// The application asked to step down.
    StepDown,
    /// A guarded container ended by itself.
    WorkloadEnded,
    /// The pod is being deleted.
    PodDeleted,
}

/// Why a holding ended: lost, or ended on purpose.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(untagged)]
pub enum EndReason {
    /// The lease was lost.
    Lost(LossReason),
    /// The holding was ended on purpose.
    Planned(PlannedEnd),
}

impl LossReason {
    /// Every reason, for metrics that must exist before they count.
    pub const ALL: [Self; 10] = [
        Self::RenewalTimeout,
        Self::RenewalError,
        Self::ConnectionClosed,
        Self::OtherOwner,
        Self::KeyGone,
        Self::SequenceLost,
        Self::Suspended,
        Self::WatchLate,
        Self::GuardGone,
        Self::SidecarRestarted,
    ];

    /// The name in JSON, metrics and texts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RenewalTimeout => "RenewalTimeout",
            Self::RenewalError => "RenewalError",
            Self::ConnectionClosed => "ConnectionClosed",
            Self::OtherOwner => "OtherOwner",
            Self::KeyGone => "KeyGone",
            Self::SequenceLost => "SequenceLost",
            Self::Suspended => "Suspended",
            Self::WatchLate => "WatchLate",
            Self::GuardGone => "GuardGone",
            Self::SidecarRestarted => "SidecarRestarted",
        }
    }

    /// Whether it is what Redis answered, or that it did not: people then want to know which Redis.
    pub fn is_about_redis(self) -> bool {
        matches!(self, Self::RenewalTimeout | Self::RenewalError | Self::ConnectionClosed)
            || self.is_stated_by_redis()
    }

    /// Whether Redis itself said that the lease is not ours. Then somebody else may hold it already,
    /// so the workload gets no grace.
    pub fn is_stated_by_redis(self) -> bool {
        matches!(self, Self::OtherOwner | Self::KeyGone | Self::SequenceLost)
    }
}

impl PlannedEnd {
    /// The name in JSON, metrics and texts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MaxHold => "MaxHold",
            Self::StepDown => "StepDown",
            Self::WorkloadEnded => "WorkloadEnded",
            Self::PodDeleted => "PodDeleted",
        }
    }
}

impl EndReason {
    /// The name in JSON, metrics and texts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lost(reason) => reason.as_str(),
            Self::Planned(reason) => reason.as_str(),
        }
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for PlannedEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
