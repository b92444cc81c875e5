//! How is the operator told what to do? Flags, each with an environment variable.

use std::net::SocketAddr;

use clap::Parser;

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
    /// The pull policy of the sidecar's image: Always, IfNotPresent or Never.
    #[arg(long, env = "FENCEDLEASE_SIDECAR_PULL_POLICY", default_value = "IfNotPresent")]
    pub sidecar_pull_policy: String,
    /// The sidecar's resources, as JSON of Kubernetes' form.
    #[arg(
        long,
        env = "FENCEDLEASE_SIDECAR_RESOURCES",
        default_value = r#"{"requests":{"cpu":"10m","memory":"16Mi"},"limits":{"memory":"64Mi"}}"#
    )]
    pub sidecar_resources: String,

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

impl Args {
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
