//! What the webhook tells the sidecar, as one JSON document in one environment variable. Nothing secret.

use serde::{Deserialize, Serialize};

use crate::{Fence, ResourceName};

/// Everything that a sidecar must know of its lease, its pod's containers and its way to Redis.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SidecarSettings {
    /// What is guarded.
    pub resource: ResourceName,
    /// The FencedLease's timing, resolved.
    pub timing: TimingSettings,
    /// How long a holding may last at most, in milliseconds; each is up to a tenth shorter at random.
    pub max_hold_ms: u64,
    /// How long before that the application is warned, in milliseconds.
    pub max_hold_warning_ms: u64,
    /// Where the lease is kept.
    pub redis: RedisSettings,
    /// The containers that are guarded, in the order of the pod's spec.
    pub containers: Vec<String>,
    /// How many of them, the first, are init containers: each runs once, and to its end before the next begins.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub init_containers: usize,
    /// The pod's own restart policy.
    pub restart_policy: RestartPolicy,
    /// How the pod waits.
    pub standby: StandbySettings,
    /// What happens to the pod after LOST.
    pub after_loss: AfterLoss,
    /// The pod's `terminationGracePeriodSeconds`, in milliseconds.
    pub termination_grace_period_ms: u64,
    /// The highest fence known when the pod was injected; the next one is above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floor: Option<Fence>,
    /// The gates in front of the resource: each is told the fence before the pod is ACTIVE.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateSettings>,
    /// The operator's endpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<EndpointSettings>,
    /// `metadata.generation` of the FencedLease, told back in reports.
    pub lease_generation: i64,
    /// Port of probes and metrics on the pod's address.
    pub admin_port: u16,
    /// What is logged, as `tracing` filter directives, such as `info`.
    pub log_level: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The timing fields of a FencedLease in whole milliseconds. Valid only once `Timing::try_new` said so.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TimingSettings {
    /// How long the lease lasts in Redis.
    pub ttl_ms: u64,
    /// From one renewal's send to the next; `None` is a third of the ttl, rounded down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renew_interval_ms: Option<u64>,
    /// How long a renewal may take.
    pub renew_timeout_ms: u64,
    /// From SIGTERM to SIGKILL.
    pub grace_period_ms: u64,
    /// How long the kernel may take to end the killed processes.
    pub kill_budget_ms: u64,
    /// How much must remain for a final commit to start.
    pub commit_margin_ms: u64,
}

/// Where the lease is kept.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RedisSettings {
    /// `host:port` of a single Redis.
    pub addresses: Vec<String>,
    /// The database number.
    pub database: i64,
    /// Where user and password come from.
    pub credentials: CredentialSource,
    /// How the connection is encrypted, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<RedisTls>,
}

/// TLS to Redis. What it needs lies below [`crate::paths::REDIS_TLS_DIR`].
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RedisTls {
    /// The name that Redis's certificate must have; unset: the host of the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Only the certificate authorities in the file `ca.crt` count; else those that browsers trust.
    pub own_authorities: bool,
    /// We prove who we are with the files `tls.crt` and `tls.key`.
    pub client_certificate: bool,
}

/// Where Redis's user and password come from. They are never part of the settings.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CredentialSource {
    /// This Redis asks for none.
    None,
    /// Files `password` and `username` below [`crate::paths::REDIS_SECRET_DIR`].
    Mounted,
    /// The operator's endpoint.
    Endpoint,
}

/// The pod's restart policy.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum RestartPolicy {
    /// Containers come back whatever they exited with.
    Always,
    /// Containers come back after a failure.
    OnFailure,
    /// Containers never come back.
    Never,
}

/// How the pod waits while another one holds the lease.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StandbySettings {
    /// Whether the containers exist already while it waits.
    pub mode: StandbyMode,
    /// Whether the waiting pod is Ready.
    pub ready: bool,
}

/// Whether a standby's containers exist already.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum StandbyMode {
    /// The containers are up and wait in the guard.
    Warm,
    /// The sidecar's startup probe holds them back until the pod is ACTIVE.
    Cold,
}

/// What becomes of the pod after LOST.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum AfterLoss {
    /// Restart rules let the pod fail, and its owner makes a new one.
    Fail,
    /// The container is restarted and waits in the guard for a lease of its own.
    Wait,
    /// The operator deletes the pod, since a probe would kill the waiting container.
    Replace,
}

/// How the operator's endpoint is reached.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EndpointSettings {
    /// `https://host:port`.
    pub url: String,
    /// The certificate authorities that it may be signed by, in PEM.
    pub ca_pem: String,
}

/// How one gate is reached. The key that signs tickets is the file [`crate::paths::GATE_KEY_FILE`].
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GateSettings {
    /// Its name in the FencedLease, for people and for the folder of its certificate authorities.
    pub name: String,
    /// `https://host:port` or `http://host:port`.
    pub url: String,
    /// Only the certificate authorities in `NAME/ca.crt` below [`crate::paths::GATE_TLS_DIR`] count; else those
    /// that browsers trust.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_authorities: bool,
}
