//! How is the operator told what to do? Flags, each with an environment variable.

use std::net::SocketAddr;

use clap::{Parser, ValueEnum};
use fencedlease_wire::settings::EndpointSettings;

use crate::admit::lease::is_address;
use crate::inject::{Installation, InstallationRedis, Resources, SidecarImage};

/// Injects the FencedLease sidecar, answers sidecars, and keeps the status of FencedLeases.
#[derive(Clone, Debug, Parser)]
#[command(name = "fencedlease-operator", version)]
pub struct Args {
    /// The namespace that the operator runs in.
    #[arg(long, env = "FENCEDLEASE_NAMESPACE")]
    pub namespace: String,
    /// The Service in front of webhooks and endpoint.
    #[arg(long, env = "FENCEDLEASE_SERVICE", default_value = "fencedlease-operator")]
    pub service: String,
    /// The URL at which sidecars reach the endpoint [default: <https://SERVICE.NAMESPACE.svc:8443>]
    #[arg(long, env = "FENCEDLEASE_ENDPOINT_URL")]
    pub endpoint_url: Option<String>,
    /// What keeps this cluster's leases apart from others' in one Redis. Empty: made once and kept.
    #[arg(long, env = "FENCEDLEASE_INSTALLATION_ID", default_value = "")]
    pub installation_id: String,
    /// The operator's own name in Events; in a pod, its name.
    #[arg(long, env = "FENCEDLEASE_POD_NAME")]
    pub pod_name: Option<String>,

    /// The sidecar's image.
    #[arg(long, env = "FENCEDLEASE_SIDECAR_IMAGE")]
    pub sidecar_image: String,
    /// The pull policy of the sidecar's image.
    #[arg(long, env = "FENCEDLEASE_SIDECAR_PULL_POLICY", default_value = "IfNotPresent")]
    pub sidecar_pull_policy: PullPolicy,
    /// The sidecar's resources, as JSON of Kubernetes' form.
    #[arg(
        long,
        env = "FENCEDLEASE_SIDECAR_RESOURCES",
        default_value = r#"{"requests":{"cpu":"10m","memory":"16Mi"},"limits":{"memory":"64Mi"}}"#
    )]
    pub sidecar_resources: String,

    /// What sidecars log, as `tracing` directives.
    #[arg(long, env = "FENCEDLEASE_SIDECAR_LOG_LEVEL", default_value = "info")]
    pub sidecar_log_level: String,

    /// `host:port` of the installation's Redis; none if each FencedLease brings its own.
    #[arg(long, env = "FENCEDLEASE_REDIS_ADDRESSES", value_delimiter = ',')]
    pub redis_addresses: Vec<String>,
    /// The database number in the installation's Redis.
    #[arg(long, env = "FENCEDLEASE_REDIS_DATABASE", default_value_t = 0)]
    pub redis_database: i64,
    /// The Secret in the operator's namespace with `password`, and `username` if any, of the installation's
    /// Redis. Empty: it asks for none.
    #[arg(long, env = "FENCEDLEASE_REDIS_SECRET", default_value = "")]
    pub redis_secret: String,

    /// Makes that Secret with a random password where it does not exist: for the Redis that comes with the
    /// chart to try it out.
    #[arg(long, env = "FENCEDLEASE_REDIS_SECRET_CREATE", requires = "redis_secret")]
    pub redis_secret_create: bool,

    /// The MutatingWebhookConfiguration that is kept trusting our certificates.
    #[arg(long, env = "FENCEDLEASE_MUTATING_WEBHOOK", default_value = "fencedlease")]
    pub mutating_webhook: String,
    /// The ValidatingWebhookConfiguration that is kept trusting our certificates.
    #[arg(long, env = "FENCEDLEASE_VALIDATING_WEBHOOK", default_value = "fencedlease")]
    pub validating_webhook: String,
    /// The Secret in the operator's namespace that keeps our certificates.
    #[arg(long, env = "FENCEDLEASE_CERTIFICATE_SECRET", default_value = "fencedlease-certificates")]
    pub certificate_secret: String,

    /// Where the webhooks listen.
    #[arg(long, env = "FENCEDLEASE_WEBHOOK_LISTEN", default_value = "[::]:9443")]
    pub webhook_listen: SocketAddr,
    /// Where the endpoint for sidecars listens.
    #[arg(long, env = "FENCEDLEASE_ENDPOINT_LISTEN", default_value = "[::]:8443")]
    pub endpoint_listen: SocketAddr,
    /// Where health and metrics are served, plainly.
    #[arg(long, env = "FENCEDLEASE_ADMIN_LISTEN", default_value = "[::]:8080")]
    pub admin_listen: SocketAddr,
    /// What is logged: `tracing` directives such as `info` or `fencedlease_operator=debug`.
    #[arg(long, env = "FENCEDLEASE_LOG_LEVEL", default_value = "info")]
    pub log_level: String,
    /// Logs as one JSON object a line instead of text.
    #[arg(long, env = "FENCEDLEASE_LOG_JSON")]
    pub log_json: bool,
}

/// When an image is pulled.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum PullPolicy {
    /// At each start.
    #[value(name = "Always")]
    Always,
    /// Where it is missing.
    #[value(name = "IfNotPresent")]
    IfNotPresent,
    /// Never.
    #[value(name = "Never")]
    Never,
}

impl PullPolicy {
    fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::IfNotPresent => "IfNotPresent",
            Self::Never => "Never",
        }
    }
}

/// Why the flags cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ArgsError {
    /// The resources are no JSON of Kubernetes' form.
    #[error(
        "--sidecar-resources {found:?} cannot be read; write JSON such as {{\"requests\":{{\"cpu\":\"10m\"}},\"limits\":{{\"memory\":\"64Mi\"}}}}"
    )]
    Resources {
        /// The flag's value.
        found: String,
        /// What the parser says.
        #[source]
        source: serde_json::Error,
    },
    /// An address of Redis that is none, or several.
    #[error(
        "--redis-addresses {found:?} cannot be used; name exactly one host:port, such as redis.shop.svc:6379, or leave it empty if each FencedLease brings its own"
    )]
    RedisAddresses {
        /// The flag's value.
        found: String,
    },
}

impl Args {
    /// What injection must know of the installation. Its id, the certificate authorities and what the cluster
    /// can do are found out while running, and are empty here.
    pub fn installation(&self) -> Result<Installation, ArgsError> {
        let resources: Resources = serde_json::from_str(&self.sidecar_resources)
            .map_err(|source| ArgsError::Resources { found: self.sidecar_resources.clone(), source })?;
        let addresses = self.redis_addresses();
        if addresses.len() > 1 || !addresses.iter().all(|address| is_address(address)) {
            return Err(ArgsError::RedisAddresses { found: addresses.join(",") });
        }
        let redis = (!addresses.is_empty()).then(|| InstallationRedis {
            addresses,
            database: self.redis_database,
            has_credentials: self.redis_secret().is_some(),
        });
        Ok(Installation {
            id: String::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sidecar: SidecarImage {
                image: self.sidecar_image.clone(),
                pull_policy: self.sidecar_pull_policy.as_str().to_owned(),
                resources,
                log_level: self.sidecar_log_level.clone(),
            },
            endpoint: EndpointSettings { url: self.endpoint_url(), ca_pem: String::new() },
            redis,
            restart_rules_work: false,
        })
    }

    /// The URL at which sidecars reach the endpoint.
    pub fn endpoint_url(&self) -> String {
        self.endpoint_url
            .clone()
            .unwrap_or_else(|| format!("https://{}.{}.svc:8443", self.service, self.namespace))
    }

    /// The Secret with the installation's Redis credentials, where it asks for any.
    pub fn redis_secret(&self) -> Option<String> {
        Some(self.redis_secret.clone()).filter(|name| !name.is_empty())
    }

    /// The addresses of the installation's Redis: none where the flag is empty.
    pub fn redis_addresses(&self) -> Vec<String> {
        self.redis_addresses.iter().filter(|address| !address.is_empty()).cloned().collect()
    }

    /// The names that our certificate must be valid for: the Service's, and the host in `--endpoint-url`.
    pub fn certificate_names(&self) -> Vec<String> {
        let (service, namespace) = (&self.service, &self.namespace);
        let mut names = vec![
            format!("{service}.{namespace}.svc"),
            format!("{service}.{namespace}.svc.cluster.local"),
            format!("{service}.{namespace}"),
        ];
        let host = self.endpoint_url.as_deref().and_then(host);
        names.extend(host.filter(|host| !names.contains(host)));
        names
    }
}

/// The host of `https://host:port/…`, an IPv6 address without its brackets.
fn host(url: &str) -> Option<String> {
    let uri: axum::http::Uri = url.parse().ok()?;
    Some(uri.host()?.trim_matches(['[', ']']).to_owned())
}

#[cfg(test)]
mod tests;
