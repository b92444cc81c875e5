//! What *hold* is to be told, from the command line.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fencedlease_core::duration::{self, DurationError};
use fencedlease_core::{Timing, TimingError};
use fencedlease_wire::gate::{GateKey, GateKeyError};
use fencedlease_wire::settings::{
    AfterLoss, CredentialSource, GateSettings, RedisSettings, RedisTls, RestartPolicy, StandbyMode,
    StandbySettings, TimingSettings,
};
use fencedlease_wire::{ResourceName, ResourceNameError, SidecarSettings};

use super::CONTAINER;
use crate::args::ExecArgs;
use crate::hold::settings::{SettingsError, check_gates};

/// Why the command line cannot be used. Each text names the option and what to do.
#[derive(Debug, thiserror::Error)]
pub(super) enum Mistake {
    /// No namespace.
    #[error("--lease is {found:?}: write NAMESPACE/NAME, such as shop/report")]
    Lease {
        /// What was found.
        found: String,
    },
    /// No address.
    #[error("--redis is {found:?}: write HOST:PORT, such as redis.example:6379")]
    Redis {
        /// What was found.
        found: String,
    },
    /// A part of the name that is none.
    #[error("--lease or --installation: {0}")]
    Name(#[from] ResourceNameError),
    /// No duration.
    #[error("--{option}: {error}")]
    Duration {
        /// Which option.
        option: &'static str,
        /// What is wrong.
        error: DurationError,
    },
    /// Timings that cannot keep the promises.
    #[error("{0} (here as --ttl, --renew-interval and so on)")]
    Timing(#[from] TimingError),
    /// A holding that could not even be warned of its end.
    #[error("--max-hold is {found}: write 1m or more")]
    MaxHold {
        /// What was found.
        found: String,
    },
    /// A folder that lacks something.
    #[error("--redis-tls-dir {}: it must have ca.crt, or tls.crt and tls.key, or all three", folder.display())]
    TlsFolder {
        /// Which.
        folder: PathBuf,
    },
    /// No gate.
    #[error("--gate is {found:?}: write NAME=URL, such as reports=https://gate.example:8443")]
    Gate {
        /// What was found.
        found: String,
    },
    /// A file that cannot be read.
    #[error("--{option} {}: {error}", file.display())]
    File {
        /// Which option.
        option: &'static str,
        /// Which file.
        file: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// A gate's key that is none.
    #[error("--gate-key-file {}: {error}", file.display())]
    GateKey {
        /// Which file.
        file: PathBuf,
        /// Why not.
        error: GateKeyError,
    },
    /// Gates that cannot be used.
    #[error("--gate: {0}")]
    Gates(#[from] SettingsError),
    /// Cannot happen with what was checked.
    #[error("cannot write the settings: {0}")]
    Json(#[from] serde_json::Error),
}

/// How long before its end by `maxHold` the command is warned.
const MAX_HOLD_WARNING_MS: u64 = 30_000;

fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// The settings document for *hold*.
pub(super) fn settings(args: &ExecArgs) -> Result<String, Mistake> {
    let (namespace, name) =
        args.lease.split_once('/').ok_or_else(|| Mistake::Lease { found: args.lease.clone() })?;
    let timing = TimingSettings {
        ttl_ms: milliseconds("ttl", &args.ttl)?,
        renew_interval_ms: args
            .renew_interval
            .as_deref()
            .map(|text| milliseconds("renew-interval", text))
            .transpose()?,
        renew_timeout_ms: milliseconds("renew-timeout", &args.renew_timeout)?,
        grace_period_ms: milliseconds("grace-period", &args.grace_period)?,
        kill_budget_ms: milliseconds("kill-budget", &args.kill_budget)?,
        commit_margin_ms: milliseconds("commit-margin", &args.commit_margin)?,
    };
    Timing::try_new(&timing)?;
    if !is_address(&args.redis) {
        return Err(Mistake::Redis { found: args.redis.clone() });
    }
    wait(args)?;
    let max_hold_ms = milliseconds("max-hold", &args.max_hold)?;
    if max_hold_ms < 2 * MAX_HOLD_WARNING_MS {
        return Err(Mistake::MaxHold { found: args.max_hold.clone() });
    }
    let settings = SidecarSettings {
        resource: ResourceName::new(&args.installation, namespace, name)?,
        timing,
        max_hold_ms,
        max_hold_warning_ms: MAX_HOLD_WARNING_MS,
        redis: RedisSettings {
            addresses: vec![args.redis.clone()],
            database: args.redis_database,
            credentials: if args.redis_secret_dir.is_some() {
                CredentialSource::Mounted
            } else {
                CredentialSource::None
            },
            tls: tls(args)?,
        },
        containers: vec![CONTAINER.to_owned()],
        init_containers: 0,
        restart_policy: RestartPolicy::Never,
        standby: StandbySettings { mode: StandbyMode::Warm, ready: true },
        after_loss: AfterLoss::Fail,
        termination_grace_period_ms: milliseconds("stop-timeout", &args.stop_timeout)?,
        floor: None,
        gates: gates(args)?,
        endpoint: None,
        lease_generation: 1,
        admin_port: args.metrics_port,
        log_level: args.log_level.clone(),
    };
    Ok(serde_json::to_string(&settings)?)
}

/// All `--gate`, with a key and authorities that can be read now: people see a typing error at once.
fn gates(args: &ExecArgs) -> Result<Vec<GateSettings>, Mistake> {
    let gate = |text: &String| {
        let (name, url) = text.split_once('=').ok_or_else(|| Mistake::Gate { found: text.clone() })?;
        let own_authorities = args.gate_ca_file.is_some();
        Ok(GateSettings { name: name.to_owned(), url: url.to_owned(), own_authorities })
    };
    let gates: Vec<GateSettings> = args.gate.iter().map(gate).collect::<Result<_, Mistake>>()?;
    check_gates(&gates)?;
    if let Some(file) = &args.gate_key_file {
        let text = read("gate-key-file", file)?;
        GateKey::parse_file(&text).map_err(|error| Mistake::GateKey { file: file.clone(), error })?;
    }
    if let Some(file) = &args.gate_ca_file {
        read("gate-ca-file", file)?;
    }
    Ok(gates)
}

fn read(option: &'static str, file: &Path) -> Result<String, Mistake> {
    fs::read_to_string(file).map_err(|error| Mistake::File { option, file: file.to_owned(), error })
}

/// What the folder has is what is meant.
fn tls(args: &ExecArgs) -> Result<Option<RedisTls>, Mistake> {
    let Some(folder) = &args.redis_tls_dir else {
        let plain = !args.redis_tls && args.redis_server_name.is_none();
        let tls = RedisTls { server_name: args.redis_server_name.clone(), ..RedisTls::default() };
        return Ok((!plain).then_some(tls));
    };
    let has = |name: &str| folder.join(name).exists();
    let client_certificate = has("tls.crt");
    if client_certificate != has("tls.key") || !client_certificate && !has("ca.crt") {
        return Err(Mistake::TlsFolder { folder: folder.clone() });
    }
    let server_name = args.redis_server_name.clone();
    Ok(Some(RedisTls { server_name, own_authorities: has("ca.crt"), client_certificate }))
}

/// How long the lease is waited for; `None` is for ever.
pub(super) fn wait(args: &ExecArgs) -> Result<Option<Duration>, Mistake> {
    args.wait.as_deref().map(|text| parsed("wait", text)).transpose()
}

fn parsed(option: &'static str, text: &str) -> Result<Duration, Mistake> {
    duration::parse(text).map_err(|error| Mistake::Duration { option, error })
}

fn milliseconds(option: &'static str, text: &str) -> Result<u64, Mistake> {
    // At most four times 99,999 hours: it fits.
    Ok(u64::try_from(parsed(option, text)?.as_millis()).unwrap_or(u64::MAX))
}
