//! What must be known of the installation to inject a pod? Plain data, the same for every pod.

use std::collections::BTreeMap;

use fencedlease_wire::settings::EndpointSettings;
use serde::Deserialize;

/// Everything that injection depends on besides pod and FencedLease.
#[derive(Clone, Debug, PartialEq)]
pub struct Installation {
    /// What keeps this cluster's leases apart from others' in one Redis.
    pub id: String,
    /// The operator's version, shown in the pod's status annotation.
    pub version: String,
    /// The sidecar as the chart's values have it.
    pub sidecar: SidecarImage,
    /// How sidecars reach the operator, and by which certificate authorities they know it.
    pub endpoint: EndpointSettings,
    /// The Redis for FencedLeases without one of their own.
    pub redis: Option<InstallationRedis>,
    /// Whether this cluster keeps container restart rules.
    pub restart_rules_work: bool,
}

/// The sidecar as the chart's values have it.
#[derive(Clone, Debug, PartialEq)]
pub struct SidecarImage {
    /// The image.
    pub image: String,
    /// `Always`, `IfNotPresent` or `Never`.
    pub pull_policy: String,
    /// What it requests and what it may use.
    pub resources: Resources,
    /// What it logs, as `tracing` filter directives.
    pub log_level: String,
}

/// Requests and limits as Kubernetes writes them: quantities by the resource's name.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Resources {
    /// What is set aside.
    #[serde(default)]
    pub requests: BTreeMap<String, String>,
    /// What may be used at most.
    #[serde(default)]
    pub limits: BTreeMap<String, String>,
}

/// The installation's own Redis.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct InstallationRedis {
    /// `host:port` of a single Redis.
    pub addresses: Vec<String>,
    /// The number of the database.
    pub database: i64,
    /// Whether it asks for a password, which sidecars then fetch from the endpoint.
    pub has_credentials: bool,
}
