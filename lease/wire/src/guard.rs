//! What guard and sidecar say to each other on `guard.sock`: one JSON object a line, at most
//! [`MAX_LINE_BYTES`] long. Instants are milliseconds on CLOCK_BOOTTIME.

use serde::{Deserialize, Serialize};

use crate::{EndReason, Fence, HoldingId};

/// The longest line, newline included. A longer one is answered by closing the connection.
pub const MAX_LINE_BYTES: usize = 4096;

/// The longest message for people in a line, in characters: however JSON has to escape them, the line stays far
/// below [`MAX_LINE_BYTES`], whose excess would cost the word that matters.
pub const MAX_MESSAGE_CHARS: usize = 500;

/// A message for people as it may stand in a line: its first [`MAX_MESSAGE_CHARS`] characters.
pub fn bounded(message: &str) -> String {
    message.chars().take(MAX_MESSAGE_CHARS).collect()
}

/// From a guard to the sidecar.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum FromGuard {
    /// The first line. A pidfd of the guard itself comes with it as SCM_RIGHTS.
    Hello {
        /// The container's name, as the webhook wrote it into the guard's arguments.
        container: String,
        /// What makes this life of the container known when it comes back after the sidecar was away.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        secret: Option<String>,
        /// The holding under which the workload was started, if it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holding: Option<HoldingId>,
        /// Whether the guard has begun to end the workload.
        #[serde(default)]
        acted: bool,
    },
    /// The workload runs. Sent after each grant that was taken.
    Started {
        /// Under this holding.
        holding: HoldingId,
    },
    /// The workload could not be started; the guard exits with this code.
    StartFailed {
        /// Under this holding.
        holding: HoldingId,
        /// 126 or 127.
        exit_code: u8,
        /// Why, for people.
        message: String,
    },
    /// The guard acted at one of its own instants, found itself late, or did not take a grant (a workload
    /// runs already, or the term instant has passed).
    Acted {
        /// Under this holding.
        holding: HoldingId,
        /// Why.
        message: String,
    },
    /// The guard got SIGTERM from outside, usually because the pod is being deleted, and passed it on.
    Terminating {
        /// Under this holding.
        holding: HoldingId,
    },
    /// The workload's first process ended by itself. Tells how, never that the container is dead:
    /// only the pidfd proves that.
    Ended {
        /// Under this holding.
        holding: HoldingId,
        /// Its exit code, or 128 plus the signal.
        exit_code: u8,
    },
}

/// From the sidecar to a guard.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum ToGuard {
    /// Answer to the first hello of a life.
    Welcome {
        /// To be told at the next hello of this life.
        secret: String,
    },
    /// The workload may start.
    Grant {
        /// Under this holding.
        holding: HoldingId,
        /// With this fence.
        fence: Fence,
        /// `namespace/name`, for the environment.
        resource: String,
        /// When the guard sends SIGTERM if it hears nothing newer.
        term_at_ms: u64,
        /// When it kills.
        kill_at_ms: u64,
    },
    /// A renewal was confirmed. Only the holding named moves its instants.
    Extend {
        /// The holding.
        holding: HoldingId,
        /// As in `grant`.
        term_at_ms: u64,
        /// As in `grant`.
        kill_at_ms: u64,
    },
    /// End the workload: SIGTERM now, SIGKILL at `kill_at_ms` or at the kill instant, whichever is earlier.
    /// An instant in the past is SIGKILL at once.
    End {
        /// The holding.
        holding: HoldingId,
        /// Why.
        reason: EndReason,
        /// When to kill.
        kill_at_ms: u64,
        /// What the guard exits with; `None` keeps the workload's own code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<u8>,
        /// For the termination message.
        message: String,
    },
    /// This guard can never be granted anything: exit with this code.
    Dismiss {
        /// The exit code.
        exit_code: u8,
        /// For the termination message.
        message: String,
    },
}

#[cfg(test)]
mod tests;
