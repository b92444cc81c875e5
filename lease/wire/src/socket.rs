//! JSON of the application's socket, `lease.sock`. Times in milliseconds, keys in camelCase.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{EndReason, Fence, HoldingId};

/// Answer of `GET /v1/lease`, and the first line of `GET /v1/events`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
pub enum LeaseView {
    /// This pod holds the lease.
    Active {
        /// `namespace/name`.
        resource: String,
        /// The fence to write with.
        fence: Fence,
        /// Which holding.
        holding: HoldingId,
        /// Until the kill instant: what an application may count on.
        remaining_ms: u64,
        /// The kill instant on CLOCK_BOOTTIME.
        kill_at_boottime_ms: u64,
        /// Until `maxHold` ends the holding.
        max_hold_remaining_ms: u64,
        /// Since the last confirmed acquire or renew was sent.
        renewed_ms_ago: u64,
        /// Why the holding is being ended, once it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        ending: Option<EndReason>,
        /// Headers for a gate, signed at this moment; in `GET /v1/lease` alone, where the FencedLease names gates.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
    /// This pod waits for the lease.
    Waiting {
        /// `namespace/name`.
        resource: String,
        /// The pod that holds it, as far as Redis tells.
        #[serde(skip_serializing_if = "Option::is_none")]
        holder: Option<String>,
        /// Until the next attempt at the latest.
        retry_in_ms: u64,
        /// Why the last attempt failed, if it did.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The lease was lost.
    Lost {
        /// `namespace/name`.
        resource: String,
        /// The fence that no longer counts.
        fence: Fence,
        /// Why.
        reason: EndReason,
        /// Why, for people.
        message: String,
    },
    /// The holding was ended on purpose and the lease given back.
    Released {
        /// `namespace/name`.
        resource: String,
        /// The fence that no longer counts.
        fence: Fence,
        /// Why.
        reason: EndReason,
    },
}

/// A line of `GET /v1/events` after the first. State changes are sent as [`LeaseView`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum EventLine {
    /// A renewal was confirmed.
    Alive {
        /// Until the kill instant.
        remaining_ms: u64,
    },
    /// `maxHold` ends the holding soon.
    MaxHoldWarning {
        /// Until then.
        ends_in_ms: u64,
    },
}

/// Body of `POST /v1/commit-check`; may be absent.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommitCheck {
    /// The fence that the application is about to commit with.
    #[serde(default)]
    pub fence: Option<Fence>,
    /// How long the commit needs; only raises `commitMargin`.
    #[serde(default)]
    pub need_ms: Option<u64>,
}

/// Answer of `POST /v1/commit-check`: 200 when allowed, 409 when not.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum CommitVerdict {
    /// The commit may start.
    Allowed {
        /// Always true.
        allowed: bool,
        /// The fence to write with.
        fence: Fence,
        /// Until the kill instant.
        remaining_ms: u64,
        /// Headers for a gate, signed at this moment; none where the FencedLease names no gates.
        headers: BTreeMap<String, String>,
    },
    /// It may not.
    Refused {
        /// Always false.
        allowed: bool,
        /// Why.
        reason: CommitRefusal,
        /// Why, for people.
        message: String,
    },
}

/// Why a commit may not start.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum CommitRefusal {
    /// Too little remains, or the workload is being ended.
    TooLate,
    /// The lease was lost.
    Lost,
    /// This pod does not hold the lease yet.
    Waiting,
    /// The application's fence is not the present one.
    FenceMismatch,
}

/// Body of `POST /v1/fence-rejected`: a resource refused the application's fence.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FenceRejection {
    /// The fence that was refused.
    pub fence: Fence,
    /// What refused it.
    pub resource_kind: ResourceKind,
    /// What the resource said, for people; [`FenceRejection::MAX_MESSAGE_BYTES`] at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What can refuse a fence: a closed list, since it is a metric's label.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ResourceKind {
    /// PostgreSQL.
    Postgresql,
    /// MariaDB or MySQL.
    Mysql,
    /// S3, or what speaks like it.
    S3,
    /// Google Cloud Storage.
    Gcs,
    /// Redis.
    Redis,
    /// Kafka or another queue.
    Queue,
    /// The gate.
    Gate,
    /// Anything else.
    Other,
}

impl FenceRejection {
    /// The longest message, in bytes.
    pub const MAX_MESSAGE_BYTES: usize = 1024;
}

impl ResourceKind {
    /// The label of the metric that counts by kind.
    pub const LABEL: &str = "resource_kind";
    /// Every kind, for metrics that must exist before they count.
    pub const ALL: [Self; 8] = [
        Self::Postgresql,
        Self::Mysql,
        Self::S3,
        Self::Gcs,
        Self::Redis,
        Self::Queue,
        Self::Gate,
        Self::Other,
    ];

    /// The word in JSON and in the metric's label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Postgresql => "postgresql",
            Self::Mysql => "mysql",
            Self::S3 => "s3",
            Self::Gcs => "gcs",
            Self::Redis => "redis",
            Self::Queue => "queue",
            Self::Gate => "gate",
            Self::Other => "other",
        }
    }
}

/// Body of every other error.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ErrorBody {
    /// What went wrong.
    pub error: ErrorDetail,
}

/// What went wrong, for programs and for people.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ErrorDetail {
    /// A stable CamelCase word.
    pub code: String,
    /// What was wrong and what to do.
    pub message: String,
}
