//! What the operator answers. It is made from reports of the sidecars: it informs, and no promise rests on it.

#![expect(unreachable_pub, reason = "KubeSchema repeats each public struct inside a function")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the lease stands.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FencedLeaseStatus {
    /// The generation of the spec that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// How the lease stands, in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,

    /// The pod that holds the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,

    /// The holder's fence, or that of the last holder while nobody holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 999_999_999_999_999_i64))]
    pub fence: Option<i64>,

    /// The greatest fence that is known to have been handed out. The next one is above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 999_999_999_999_999_i64))]
    pub highest_fence: Option<i64>,

    /// How many pods wait for the lease.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub standbys: i64,

    /// How many pods run with an older generation of the spec.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub outdated_pods: i64,

    /// How often the lease has come to a new holder.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub transitions: i64,

    /// The last time that a holder lost the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_loss: Option<LastLoss>,

    /// The timing as resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<ResolvedTiming>,

    /// What is well and what is not.
    #[serde(default)]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

/// How the lease stands, in one word.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum Phase {
    /// No pod wants it.
    Idle,
    /// Pods wait, and none holds it.
    Waiting,
    /// A pod holds it.
    Held,
    /// A pod held it and has not been heard of since.
    Unknown,
    /// The spec cannot be used; the condition Ready says why.
    Invalid,
}

/// The pod that holds the lease.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// The pod's name.
    pub pod_name: String,
    /// The pod's uid.
    #[serde(rename = "podUID")]
    pub pod_uid: String,
    /// The node that it runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The workload that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
    /// Which holding: a random name, new at every acquisition.
    #[serde(rename = "holdingID")]
    pub holding_id: String,
    /// What kills in the pod.
    pub guard: GuardKind,
    /// Since when it holds the lease.
    pub since: Time,
    /// When it was last heard of, written every 20 seconds or so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_report: Option<Time>,
    /// Whether it lost the lease and its processes are not proven dead yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kill_pending: bool,
}

/// A workload that makes pods.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Workload {
    /// Its kind, such as Deployment.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// What kills in the pod.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum GuardKind {
    /// Each guarded container's first process.
    Entrypoint,
}

/// A loss of the lease.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastLoss {
    /// When it was reported.
    pub time: Time,
    /// The pod that lost it.
    pub pod_name: String,
    /// The fence that no longer counts.
    #[schemars(range(min = 1, max = 999_999_999_999_999_i64))]
    pub fence: i64,
    /// Why, in one word, such as RenewalTimeout.
    pub reason: String,
    /// Why, for people.
    pub message: String,
    /// From the loss to the proven death of every process, in milliseconds. Absent: not proven yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_after_milliseconds: Option<i64>,
}

/// The timing that follows from the spec, counted from the last confirmed renewal.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedTiming {
    /// How long the holder may believe that it holds.
    pub validity: String,
    /// When it renews.
    pub renew_interval: String,
    /// When its processes get SIGTERM at the latest.
    pub term_after: String,
    /// When its processes get SIGKILL at the latest.
    pub kill_after: String,
}
