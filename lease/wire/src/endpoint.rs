//! What a sidecar says to the operator's endpoint, and what it hears. No promise rests on a report.
//!
//! Requests carry `Authorization: Bearer` with the projected token. `POST /v1/report` takes a [`Report`]
//! and answers a [`ReportAnswer`]; `GET /v1/credentials?namespace=N&lease=L` answers [`Credentials`].
//! Errors are [`crate::socket::ErrorBody`] with 400, 401, 403, 404 or 503.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{EndReason, Fence, HoldingId, LossReason};

/// Path of reports.
pub const REPORT_PATH: &str = "/v1/report";
/// Path of credentials.
pub const CREDENTIALS_PATH: &str = "/v1/credentials";
/// How often a sidecar tells how it stands, in seconds. A holder that is silent for three times as long is
/// `Unknown`.
pub const STANDING_INTERVAL_SECONDS: u64 = 10;

/// One fact about one pod and its lease. The pod is the one that the token names.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Namespace of pod and FencedLease.
    pub namespace: String,
    /// The FencedLease's name.
    pub lease: String,
    /// The pod's name.
    pub pod_name: String,
    /// The node's name.
    pub node_name: String,
    /// The FencedLease's generation that the pod was injected with.
    pub lease_generation: i64,
    /// Random for each run of the sidecar process; with `sequence` it orders the reports of a pod.
    pub run: HoldingId,
    /// 1 for the first report of a run, and so on.
    pub sequence: u64,
    /// What happened.
    pub fact: Fact,
}

/// What happened.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Fact {
    /// The pod holds the lease now.
    Acquired {
        /// With this fence.
        fence: Fence,
        /// Which holding.
        holding: HoldingId,
        /// How long it had waited.
        waited_ms: u64,
        /// The pod that held before, as far as Redis tells.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        previous_holder: Option<String>,
        /// From the previous holder's release to this acquisition, where a release was heard.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        handover_ms: Option<u64>,
    },
    /// The pod lost the lease. Sent when death is proven, or when it could not be proven in time.
    Lost {
        /// The fence that no longer counts.
        fence: Fence,
        /// Which holding.
        holding: HoldingId,
        /// Why.
        reason: LossReason,
        /// Why, for people.
        message: String,
        /// From loss noticed to proven death; `None` if it is not proven yet.
        dead_after_ms: Option<u64>,
        /// From proven death to the deadline; negative if death came later.
        before_deadline_ms: Option<i64>,
    },
    /// The lease was given back after proven death.
    Released {
        /// The fence that no longer counts.
        fence: Fence,
        /// Which holding.
        holding: HoldingId,
        /// Why it ended.
        reason: EndReason,
        /// How long it was held.
        held_ms: u64,
        /// From the end's beginning to proven death.
        dead_after_ms: u64,
    },
    /// How the pod stands, sent regularly.
    Standing {
        /// Its state.
        standing: Standing,
        /// The greatest fence that it knows of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        highest_fence: Option<Fence>,
        /// What Redis last answered.
        redis: RedisStanding,
        /// What the gates last answered; absent where the FencedLease names none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gates: Option<GatesStanding>,
    },
    /// The pod ends in order and will not speak again.
    Gone,
}

/// A pod's state towards its lease.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Standing {
    /// It waits.
    Waiting,
    /// It holds.
    Holding {
        /// With this fence.
        fence: Fence,
        /// Which holding.
        holding: HoldingId,
    },
    /// It lost the lease, and the workload is not proven dead yet.
    Killing {
        /// The fence that no longer counts.
        fence: Fence,
    },
    /// It lost or released the lease and does not compete.
    Ended,
}

/// What Redis last answered a sidecar.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RedisStanding {
    /// The kind of answer.
    pub kind: RedisStandingKind,
    /// What it was, for people; empty if all is well.
    pub message: String,
}

/// The kind of Redis's last answer: the reasons of the condition `RedisReachable`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum RedisStandingKind {
    /// It answers.
    Connected,
    /// It was not asked yet.
    NotAsked,
    /// No answer, or no connection.
    Timeout,
    /// User or password are wrong.
    AuthFailed,
    /// The user lacks a right.
    PermissionDenied,
    /// It is a replica.
    NotMaster,
    /// The connection could not be encrypted, or the server is not who it should be.
    TlsFailed,
    /// The credentials could not be had.
    SecretNotFound,
    /// Another error.
    Failed,
}

/// How the gates took the last fence that a sidecar raised.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GatesStanding {
    /// The kind of answer; the worst, where gates differ.
    pub kind: GatesStandingKind,
    /// Which gate, what it said and what to do, for people; empty if all is well.
    pub message: String,
}

/// The kind of the gates' last answer: the reasons of the condition `GatesReady`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum GatesStandingKind {
    /// Every gate has stored the fence.
    Raised,
    /// None was asked yet.
    NotAsked,
    /// A gate did not answer, cannot store, or does not believe our ticket.
    GateUnreachable,
    /// A gate has stored a greater fence than Redis handed out.
    GateAhead,
}

/// Answer to a report.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportAnswer {
    /// The certificate authorities that the endpoint may be signed by from now on, in PEM.
    pub ca_pem: String,
}

/// User and password of the installation's Redis.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Credentials {
    /// The user, if not Redis's default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The password, if one is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// As in [`ReportAnswer`].
    pub ca_pem: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}
