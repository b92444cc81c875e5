//! What the webhook wrote, checked once. What comes out of here cannot be wrong in itself.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use fencedlease_core::{Timing, TimingError};
use fencedlease_wire::SidecarSettings;
use fencedlease_wire::paths::ENV_SETTINGS;
use fencedlease_wire::settings::GateSettings;

use super::gates::{Gate, UrlError};
use super::pod::PodConfig;

/// Why the settings cannot be used. Each text names the field and what to do.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// Not the document that it should be.
    #[error("{ENV_SETTINGS} is not the settings document of this version: {0}; {REMEDY}")]
    Shape(#[from] serde_json::Error),
    /// Timings that cannot keep the promises.
    #[error(transparent)]
    Timing(#[from] TimingError),
    /// A list that may not be empty is.
    #[error("{field} in {ENV_SETTINGS} is empty, and at least one is needed; {REMEDY}")]
    Empty {
        /// Which field.
        field: &'static str,
    },
    /// A container's name that stands there twice.
    #[error("containers in {ENV_SETTINGS} names {name:?} twice; {REMEDY}")]
    Twice {
        /// Which name.
        name: String,
    },
    /// More Redis addresses than this version can use.
    #[error(
        "redis.addresses in {ENV_SETTINGS} has {found} entries, and this version takes one; name a single Redis in spec.redis.addresses"
    )]
    Addresses {
        /// How many.
        found: usize,
    },
    /// An address without a port.
    #[error(
        "redis.addresses in {ENV_SETTINGS} is {found:?}: write host:port, such as redis.shop.svc:6379, in spec.redis.addresses"
    )]
    Address {
        /// What was found.
        found: String,
    },
    /// A gate's name that no folder could have.
    #[error(
        "a gate has the name {found:?}: write 1 to 63 lower-case letters, digits and '-', such as reports"
    )]
    GateName {
        /// What was found.
        found: String,
    },
    /// Two gates of one name.
    #[error("two gates have the name {name:?}: give each its own")]
    GateTwice {
        /// Which name.
        name: String,
    },
    /// A gate's URL that leads nowhere.
    #[error("the url of gate {name} is {found:?}: {error}")]
    GateUrl {
        /// Which gate.
        name: String,
        /// What was found.
        found: String,
        /// What is accepted.
        error: UrlError,
    },
    /// A holding that could not even be warned of its end.
    #[error("maxHoldWarningMs in {ENV_SETTINGS} is {warning} and maxHoldMs {max_hold}: the warning may be at most half of it; set spec.maxHoldWarning to {} ms or less", max_hold / 2)]
    Warning {
        /// The warning.
        warning: u64,
        /// The longest holding.
        max_hold: u64,
    },
}

const REMEDY: &str = "delete the pod, so that its owner makes a new one that passes the present webhook";

/// Reads the document.
pub fn parse(text: &str) -> Result<(SidecarSettings, PodConfig), SettingsError> {
    let settings: SidecarSettings = serde_json::from_str(text)?;
    let timing = Timing::try_new(&settings.timing)?;
    check_containers(&settings.containers)?;
    check_gates(&settings.gates)?;
    let redis = check_address(&settings.redis.addresses)?.to_owned();
    if settings.max_hold_warning_ms > settings.max_hold_ms / 2 {
        return Err(SettingsError::Warning {
            warning: settings.max_hold_warning_ms,
            max_hold: settings.max_hold_ms,
        });
    }
    let config = PodConfig {
        resource: settings.resource.clone(),
        timing,
        max_hold: Duration::from_millis(settings.max_hold_ms),
        max_hold_warning: Duration::from_millis(settings.max_hold_warning_ms),
        containers: settings.containers.clone(),
        init_containers: settings.init_containers,
        restart_policy: settings.restart_policy,
        standby_mode: settings.standby.mode,
        termination_grace: Duration::from_millis(settings.termination_grace_period_ms),
        redis,
        floor: settings.floor,
        gates: settings.gates.clone(),
    };
    Ok((settings, config))
}

fn check_containers(containers: &[String]) -> Result<(), SettingsError> {
    if containers.is_empty() {
        return Err(SettingsError::Empty { field: "containers" });
    }
    match repeated(containers.iter()) {
        Some(name) => Err(SettingsError::Twice { name }),
        None => Ok(()),
    }
}

/// Whether these gates can be used, as far as their settings tell.
pub fn check_gates(gates: &[GateSettings]) -> Result<(), SettingsError> {
    for gate in gates {
        // It becomes the name of a folder.
        let is_plain = gate.name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        if !is_plain || !(1..=63).contains(&gate.name.len()) {
            return Err(SettingsError::GateName { found: gate.name.clone() });
        }
        let wrong = |error| {
            let (name, found) = (gate.name.clone(), gate.url.clone());
            SettingsError::GateUrl { name, found, error }
        };
        Gate::new(gate, Path::new("")).map_err(wrong)?;
    }
    match repeated(gates.iter().map(|gate| &gate.name)) {
        Some(name) => Err(SettingsError::GateTwice { name }),
        None => Ok(()),
    }
}

fn repeated<'a>(names: impl Iterator<Item = &'a String>) -> Option<String> {
    let mut seen = BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(*name)).cloned()
}

fn check_address(addresses: &[String]) -> Result<&str, SettingsError> {
    let [address] = addresses else {
        return Err(match addresses.len() {
            0 => SettingsError::Empty { field: "redis.addresses" },
            found => SettingsError::Addresses { found },
        });
    };
    let complete = address
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0));
    if complete { Ok(address) } else { Err(SettingsError::Address { found: address.clone() }) }
}

#[cfg(test)]
mod tests;
