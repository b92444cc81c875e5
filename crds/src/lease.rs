//! What a user writes: the spec, with every static default in the schema.
//!
//! Durations are texts in the Gateway API form (GEP-2257), so that a manifest reads back as it was written.

#![expect(unreachable_pub, reason = "KubeSchema repeats each public struct inside a function")]

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gates::{GateSpec, MOST_GATES};
use crate::rules::{self, ADDRESS_LENGTH, DURATION_LENGTH, DURATION_PATTERN};
use crate::status::FencedLeaseStatus;

/// A resource that one pod at a time may work on. The holder has a lease and a fence, an integer that only
/// grows; when the lease is lost the holder's processes are killed before another pod can have it.
#[derive(Clone, CustomResource, Debug, Deserialize, KubeSchema, PartialEq, Serialize)]
#[kube(
    group = "fencedlease.dev",
    version = "v1alpha1",
    kind = "FencedLease",
    plural = "fencedleases",
    shortname = "fl",
    namespaced,
    doc = "A resource that one pod at a time may work on, with a fence that only grows.",
    status = "FencedLeaseStatus",
    derive = "PartialEq",
    validation = rules::name_fits(),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Holder", type_ = "string", json_path = ".status.holder.podName"),
    printcolumn(name = "Fence", type_ = "integer", json_path = ".status.fence"),
    printcolumn(
        name = "Held",
        type_ = "date",
        json_path = ".status.holder.since",
        description = "For how long the holder has had the lease"
    ),
    printcolumn(name = "Standbys", type_ = "integer", json_path = ".status.standbys"),
    printcolumn(
        name = "Last Loss",
        type_ = "date",
        json_path = ".status.lastLoss.time",
        description = "How long ago a holder lost the lease"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status",
        description = "Whether a pod could hold the lease now"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.holder.nodeName", priority = 1),
    printcolumn(
        name = "Workload",
        type_ = "string",
        json_path = ".status.holder.workload.name",
        priority = 1
    ),
    printcolumn(name = "Loss Reason", type_ = "string", json_path = ".status.lastLoss.reason", priority = 1),
    printcolumn(name = "Outdated", type_ = "integer", json_path = ".status.outdatedPods", priority = 1),
    printcolumn(name = "TTL", type_ = "string", json_path = ".spec.ttl", priority = 1),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason",
        priority = 1
    )
)]
#[x_kube(
    validation = rules::time_to_kill(),
    validation = rules::time_to_commit(),
    validation = rules::warning_within_hold()
)]
#[serde(rename_all = "camelCase")]
pub struct FencedLeaseSpec {
    /// How long the lease lasts in Redis without a renewal. 5s to 10m.
    #[serde(default = "default_ttl")]
    #[schemars(length(max = DURATION_LENGTH), regex(pattern = DURATION_PATTERN))]
    #[x_kube(validation = rules::duration_form("ttl"))]
    #[x_kube(validation = rules::duration_range("ttl", "5s", "600s"))]
    pub ttl: String,

    /// From the send of one renewal to the next. 100ms to 5m; unset is a third of the ttl, shown in the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    #[schemars(length(max = DURATION_LENGTH), regex(pattern = DURATION_PATTERN))]
    #[x_kube(validation = rules::duration_form("renewInterval"))]
    #[x_kube(validation = rules::duration_range("renewInterval", "0.1s", "300s"))]
    pub renew_interval: Option<String>,

    /// How long a renewal may take before the lease counts as lost. 50ms to 1m.
    #[serde(default = "default_renew_timeout")]
    #[schemars(length(max = DURATION_LENGTH), regex(pattern = DURATION_PATTERN))]
    #[x_kube(validation = rules::duration_form("renewTimeout"))]
    #[x_kube(validation = rules::duration_range("renewTimeout", "0.05s", "60s"))]
    pub renew_timeout: String,

    /// From SIGTERM to SIGKILL when the lease is lost by silence. 0s to 5m.
    #[serde(default = "default_grace_period")]
    #[schemars(length(max = DURATION_LENGTH), regex(pattern = DURATION_PATTERN))]
    #[x_kube(validation = rules::duration_form("gracePeriod"))]
    #[x_kube(validation = rules::duration_range("gracePeriod", "0s", "300s"))]
    pub grace_period: String,

    /// How long the kernel may take to end the killed processes; more memory needs more. 200ms to 5m.
    #[serde(default = "default_kill_budget")]
    #[schemars(length(max = DURATION_LENGTH), regex(pattern = DURATION_PATTERN))]
    #[x_kube(validation = rules::duration_form("killBudget"))]
    #[x_kube(validation = rules::duration_range("killBudget", "0.2s", "300s"))]
    pub kill_budget: String,

    /// How much time must remain for a final commit to be allowed to start. 0s to 5m.
    #[serde(default = "default_commit_margin")]
    #[schemars(length(max = DURATION_LENGTH), regex(pattern = DURATION_PATTERN))]
    #[x_kube(validation = rules::duration_form("commitMargin"))]
    #[x_kube(validation = rules::duration_range("commitMargin", "0s", "300s"))]
    pub commit_margin: String,

    /// The longest that one pod may hold the lease; each time up to a tenth less, at random, so that
    /// restarts spread. 1m to 720h.
    #[serde(default = "default_max_hold")]
    #[schemars(length(max = DURATION_LENGTH), regex(pattern = DURATION_PATTERN))]
    #[x_kube(validation = rules::duration_form("maxHold"))]
    #[x_kube(validation = rules::duration_range("maxHold", "1m", "720h"))]
    pub max_hold: String,

    /// How long before the end by maxHold the application is warned. 0s to 1h, at most half of maxHold.
    #[serde(default = "default_max_hold_warning")]
    #[schemars(length(max = DURATION_LENGTH), regex(pattern = DURATION_PATTERN))]
    #[x_kube(validation = rules::duration_form("maxHoldWarning"))]
    #[x_kube(validation = rules::duration_range("maxHoldWarning", "0s", "1h"))]
    pub max_hold_warning: String,

    /// The Redis that keeps the lease. Unset is the installation's. All or nothing: if it is set, nothing of
    /// the installation's is used, its password neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RedisSpec")]
    pub redis: Option<RedisSpec>,

    /// How pods wait while another one holds the lease.
    #[serde(default)]
    pub standby: StandbySpec,

    /// The gates in front of the resource, at most 8. Every one must have stored a pod's fence before that pod may work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MOST_GATES))]
    #[x_kube(validation = rules::gate_names_differ())]
    pub gates: Vec<GateSpec>,
}

/// A Redis of the FencedLease's own.
#[derive(Clone, Debug, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RedisSpec {
    /// Where it answers: exactly one `host:port`.
    #[schemars(length(min = 1, max = 1), inner(length(max = ADDRESS_LENGTH)))]
    #[x_kube(validation = rules::addresses_form())]
    pub addresses: Vec<String>,

    /// The number of the database.
    #[serde(default)]
    #[schemars(range(min = 0, max = 65535))]
    pub database: i64,

    /// How to log in. Unset: this Redis asks for no password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RedisAuth")]
    pub auth: Option<RedisAuth>,

    /// Speak TLS, and check the server's certificate. `{}` is enough where a well-known authority signed it. Unset:
    /// plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RedisTls")]
    pub tls: Option<RedisTls>,
}

/// How Redis is known, and how it knows us.
#[derive(Clone, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RedisTls {
    /// The name that the server's certificate must have. Unset: the host of the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1, max = 253))]
    pub server_name: Option<String>,

    /// The certificate authorities that count, in PEM. Unset: those that browsers trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "AuthoritiesReference")]
    #[x_kube(validation = rules::authorities_form("spec.redis.tls.caRef"))]
    pub ca_ref: Option<AuthoritiesReference>,

    /// A Secret of type kubernetes.io/tls with our own certificate, where Redis asks for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "CertificateReference")]
    pub client_cert_secret_ref: Option<CertificateReference>,
}

/// A Secret of type kubernetes.io/tls of the same namespace.
#[derive(Clone, Debug, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateReference {
    /// The Secret's name.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = rules::object_name_form("spec.redis.tls.clientCertSecretRef.name", "Secret"))]
    pub name: String,
}

/// A key of a ConfigMap or Secret of the same namespace.
#[derive(Clone, Debug, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthoritiesReference {
    /// ConfigMap or Secret.
    #[serde(default)]
    pub kind: AuthoritiesKind,

    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// The key with certificates in PEM.
    #[serde(default = "default_authorities_key")]
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// What holds certificate authorities.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum AuthoritiesKind {
    /// A ConfigMap.
    #[default]
    ConfigMap,
    /// A Secret.
    Secret,
}

/// How to log in to Redis.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RedisAuth {
    /// A Secret with the key `password`, and `username` if it is not Redis's default user.
    pub secret_ref: SecretReference,
}

/// A Secret of the same namespace.
#[derive(Clone, Debug, Deserialize, KubeSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretReference {
    /// The Secret's name.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = rules::object_name_form("spec.redis.auth.secretRef.name", "Secret"))]
    pub name: String,
}

/// How pods wait while another one holds the lease.
#[derive(Clone, Copy, Debug, Default, Deserialize, KubeSchema, PartialEq, Serialize)]
#[x_kube(validation = rules::cold_is_not_ready())]
#[serde(rename_all = "camelCase")]
pub struct StandbySpec {
    /// Warm: the containers exist already and start in milliseconds. Cold: they are created once the pod has
    /// the lease. Auto: warm where the pod's probes and hooks allow it.
    #[serde(default)]
    pub mode: StandbyMode,

    /// Whether a waiting pod is Ready. Auto: a warm one is, unless a guarded container has ports or a
    /// readiness probe.
    #[serde(default)]
    pub readiness: StandbyReadiness,
}

/// Whether a standby's containers exist already.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum StandbyMode {
    /// Warm where the pod's probes and hooks allow it, cold otherwise.
    #[default]
    Auto,
    /// They exist and wait.
    Warm,
    /// They are created once the pod has the lease.
    Cold,
}

/// Whether a waiting pod is Ready.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum StandbyReadiness {
    /// A warm one is, unless a guarded container has ports or a readiness probe.
    #[default]
    Auto,
    /// It is.
    Ready,
    /// It is not, so that Services follow the holder.
    NotReady,
}

impl Default for FencedLeaseSpec {
    fn default() -> Self {
        Self {
            ttl: default_ttl(),
            renew_interval: None,
            renew_timeout: default_renew_timeout(),
            grace_period: default_grace_period(),
            kill_budget: default_kill_budget(),
            commit_margin: default_commit_margin(),
            max_hold: default_max_hold(),
            max_hold_warning: default_max_hold_warning(),
            redis: None,
            standby: StandbySpec::default(),
            gates: Vec::new(),
        }
    }
}

fn default_authorities_key() -> String {
    "ca.crt".to_owned()
}

fn default_ttl() -> String {
    "15s".to_owned()
}

fn default_renew_timeout() -> String {
    "1s".to_owned()
}

fn default_grace_period() -> String {
    "2s".to_owned()
}

fn default_kill_budget() -> String {
    "2s".to_owned()
}

fn default_commit_margin() -> String {
    "2s".to_owned()
}

fn default_max_hold() -> String {
    "24h".to_owned()
}

fn default_max_hold_warning() -> String {
    "1m".to_owned()
}
