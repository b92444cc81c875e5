//! The `lost` file in the shared volume.

use serde::{Deserialize, Serialize};

use crate::{Fence, HoldingId, LossReason};

/// Written atomically at a loss, for applications and people. Nothing waits for it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LostFlag {
    /// 1.
    pub version: u32,
    /// `namespace/name`.
    pub resource: String,
    /// The fence that no longer counts.
    pub fence: Fence,
    /// Which holding.
    pub holding: HoldingId,
    /// Why.
    pub reason: LossReason,
    /// Why, for people.
    pub message: String,
    /// When the loss was noticed, milliseconds on CLOCK_BOOTTIME.
    pub noticed_at_boottime_ms: u64,
    /// The deadline, milliseconds on CLOCK_BOOTTIME.
    pub deadline_boottime_ms: u64,
    /// The containers that were killed.
    pub killed: Vec<String>,
}
