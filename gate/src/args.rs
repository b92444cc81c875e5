//! How is the gate told what to do? Flags, each with an environment variable.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use fencedlease_wire::Fence;
use fencedlease_wire::gate::GuardedResource;
use hyper::Uri;

use crate::check::Mark;
use crate::desk::Waits;
use crate::listener::Bounds;
use crate::route::{Guard, Reads};
use crate::service::Limits;
use crate::store::Record;

/// Checks fences in front of an HTTP backend which cannot.
#[derive(Clone, Debug, Parser)]
#[command(name = "fencedlease-gate", version)]
pub struct Args {
    /// Where clients connect.
    #[arg(long, env = "FENCEDLEASE_GATE_LISTEN", default_value = "0.0.0.0:8443")]
    pub listen: SocketAddr,
    /// Where health, metrics and the page of the highest fences are served.
    #[arg(long, env = "FENCEDLEASE_GATE_ADMIN", default_value = "0.0.0.0:8080")]
    pub admin: SocketAddr,
    /// The backend: <http://HOST:PORT>, or https with --backend-ca.
    #[arg(long, env = "FENCEDLEASE_GATE_BACKEND", value_parser = backend)]
    pub backend: BackendAddress,
    /// PEM file with the authorities of the backend's certificate.
    #[arg(long, env = "FENCEDLEASE_GATE_BACKEND_CA")]
    pub backend_ca: Option<PathBuf>,
    /// The folder of the store. One gate has it at a time.
    #[arg(long, env = "FENCEDLEASE_GATE_DATA", default_value = "/var/lib/fencedlease-gate")]
    pub data: PathBuf,
    /// The folder with one key file for each resource, named NAMESPACE_NAME.
    #[arg(long, env = "FENCEDLEASE_GATE_KEYS", default_value = "/etc/fencedlease-gate/keys")]
    pub keys: PathBuf,
    /// NAMESPACE/NAME=/PATH/: the paths below belong to that FencedLease. May stand more than once.
    #[arg(long, env = "FENCEDLEASE_GATE_GUARD", value_delimiter = ',', required = true, value_parser = guard)]
    pub guard: Vec<Guard>,
    /// What reads without a ticket may do.
    #[arg(long, env = "FENCEDLEASE_GATE_READS", value_enum, default_value_t = Reads::Open)]
    pub reads: Reads,
    /// NAMESPACE/NAME=FENCE: take nothing below. Needed where a store was lost; never lowers what is stored.
    #[arg(long, env = "FENCEDLEASE_GATE_FLOOR", value_delimiter = ',', value_parser = floor)]
    pub floor: Vec<Record>,
    /// PEM file with the certificate that is shown to clients; unset: no TLS.
    #[arg(long, env = "FENCEDLEASE_GATE_TLS_CERT", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// PEM file with its key.
    #[arg(long, env = "FENCEDLEASE_GATE_TLS_KEY", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// How far a ticket's time may be from this clock, in ms.
    #[arg(long, env = "FENCEDLEASE_GATE_FRESHNESS_MS", default_value = "60000", value_parser = ms)]
    pub freshness_ms: Duration,
    /// How long requests of an older fence that the backend has wholly may go on after a raise, in ms; also how
    /// long a gate lets nobody pass after one that was killed.
    #[arg(long, env = "FENCEDLEASE_GATE_DRAIN_MS", default_value = "2000", value_parser = ms)]
    pub drain_ms: Duration,
    /// How long a request waits to be let in, in ms. Longer than the drain.
    #[arg(long, env = "FENCEDLEASE_GATE_ADMISSION_TIMEOUT_MS", default_value = "10000", value_parser = ms)]
    pub admission_timeout_ms: Duration,
    /// How long nothing may move between client and backend, in ms.
    #[arg(long, env = "FENCEDLEASE_GATE_IDLE_TIMEOUT_MS", default_value = "30000", value_parser = ms)]
    pub idle_timeout_ms: Duration,
    /// How long connecting to the backend may take, in ms.
    #[arg(long, env = "FENCEDLEASE_GATE_CONNECT_TIMEOUT_MS", default_value = "5000", value_parser = ms)]
    pub connect_timeout_ms: Duration,
    /// How long a client may take for a request's headers, in ms.
    #[arg(long, env = "FENCEDLEASE_GATE_HEADER_TIMEOUT_MS", default_value = "30000", value_parser = ms)]
    pub header_timeout_ms: Duration,
    /// How long requests may go on after SIGTERM, in ms.
    #[arg(long, env = "FENCEDLEASE_GATE_END_TIMEOUT_MS", default_value = "20000", value_parser = ms)]
    pub end_timeout_ms: Duration,
    /// The longest body, in bytes.
    #[arg(long, env = "FENCEDLEASE_GATE_MAX_BODY_BYTES", default_value_t = 5 << 30)]
    pub max_body_bytes: u64,
    /// The most that a request's headers have, in bytes.
    #[arg(long, env = "FENCEDLEASE_GATE_MAX_HEADER_BYTES", default_value_t = 32 << 10)]
    pub max_header_bytes: u32,
    /// How many clients may be connected; others wait.
    #[arg(long, env = "FENCEDLEASE_GATE_MAX_CONNECTIONS", default_value_t = 1024)]
    pub max_connections: usize,

    /// What is logged, as `tracing` directives.
    #[arg(long, env = "FENCEDLEASE_LOG_LEVEL", default_value = "info")]
    pub log_level: String,
    /// Log as JSON.
    #[arg(long, env = "FENCEDLEASE_LOG_JSON")]
    pub log_json: bool,
}

/// Where the backend is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BackendAddress {
    /// Its name, which its certificate must have.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether it speaks TLS.
    pub is_tls: bool,
}

impl Args {
    /// How long the doors wait, after a last end that was clean or was not.
    pub fn waits(&self, ended_cleanly: bool) -> Waits {
        Waits {
            drain: self.drain_ms,
            closed: if ended_cleanly { Duration::ZERO } else { self.drain_ms },
            admission: self.admission_timeout_ms,
        }
    }

    /// What a request may take.
    pub fn limits(&self) -> Limits {
        Limits {
            freshness: self.freshness_ms,
            max_body_bytes: self.max_body_bytes,
            idle_timeout: self.idle_timeout_ms,
        }
    }

    /// What clients may hold.
    pub fn bounds(&self) -> Bounds {
        Bounds {
            max_connections: self.max_connections,
            max_header_bytes: self.max_header_bytes,
            header_timeout: self.header_timeout_ms,
            write_timeout: self.idle_timeout_ms,
            end_timeout: self.end_timeout_ms,
        }
    }

    /// What no single flag can be refused for.
    pub fn problem(&self) -> Option<String> {
        let (drain, admission) = (self.drain_ms.as_millis(), self.admission_timeout_ms.as_millis());
        if admission <= drain {
            return Some(format!(
                "--admission-timeout-ms {admission} must be greater than --drain-ms {drain}: a new holder waits for the drain"
            ));
        }
        if self.backend.is_tls != self.backend_ca.is_some() {
            return Some("--backend https://… and --backend-ca go together: give both or neither".to_owned());
        }
        let prefixes: std::collections::BTreeSet<&str> =
            self.guard.iter().map(|guard| guard.prefix.as_str()).collect();
        if prefixes.len() < self.guard.len() {
            return Some("--guard has one path twice: a path belongs to one FencedLease".to_owned());
        }
        let is_guarded = |floor: &Record| self.guard.iter().any(|guard| guard.resource == floor.resource);
        let other = self.floor.iter().find(|floor| !is_guarded(floor))?;
        Some(format!("--floor names {}, which no --guard has", other.resource))
    }
}

fn ms(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("give a whole number of milliseconds, 1 or more".to_owned()),
        Ok(ms) => Ok(Duration::from_millis(ms)),
    }
}

fn guard(text: &str) -> Result<Guard, String> {
    let (resource, prefix) =
        text.split_once('=').ok_or("write NAMESPACE/NAME=/PATH/, for example shop/report=/reports/")?;
    let resource = resource.parse::<GuardedResource>().map_err(|error| error.to_string())?;
    if prefix.starts_with('/') && prefix.ends_with('/') {
        Ok(Guard { resource, prefix: prefix.to_owned() })
    } else {
        Err(format!("the path {prefix:?} must begin and end with '/'; '/' alone is every path"))
    }
}

fn floor(text: &str) -> Result<Record, String> {
    let (resource, fence) =
        text.split_once('=').ok_or("write NAMESPACE/NAME=FENCE, for example shop/report=42")?;
    let resource = resource.parse::<GuardedResource>().map_err(|error| error.to_string())?;
    let fence = fence.parse::<Fence>().map_err(|error| error.to_string())?;
    Ok(Record { resource, mark: Mark { fence, holder: None }, time_ms: 0 })
}

fn backend(text: &str) -> Result<BackendAddress, String> {
    let wrong = || format!("{text:?} is no backend; write http://HOST:PORT or https://HOST:PORT");
    let uri: Uri = text.parse().map_err(|_| wrong())?;
    let is_tls = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        _ => return Err(wrong()),
    };
    let has_path = uri.path_and_query().is_some_and(|path| path.as_str() != "/");
    let host = uri.host().filter(|host| !host.is_empty() && !has_path).ok_or_else(wrong)?;
    let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    Ok(BackendAddress { host: host.trim_matches(['[', ']']).to_owned(), port, is_tls })
}

#[cfg(test)]
mod tests;
