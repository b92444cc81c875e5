//! Can a FencedLease be used as it is written? The API server's own rules come first; these are the same, and
//! those that it cannot check.

use std::time::Duration;

use fencedlease_core::Timing;
use fencedlease_core::duration::{self, in_seconds};
use fencedlease_crds::{
    FencedLease, FencedLeaseSpec, Phase, RedisSpec, RedisTls, StandbyMode, StandbyReadiness,
};
use fencedlease_wire::settings::{GateSettings, TimingSettings};

use super::annotations::is_object_name;
use super::gates;
use super::problem::{Cause, Problem, Refusal};

const MAX_HOLD: (Duration, Duration) = (Duration::from_mins(1), Duration::from_hours(720));
const MOST_MAX_HOLD_WARNING: Duration = Duration::from_hours(1);

/// A FencedLease's spec whose promises can be kept; there is no other way to have one.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedLease {
    /// The timing as the sidecar gets it.
    pub settings: TimingSettings,
    /// The same with what follows from it.
    pub timing: Timing,
    /// The longest holding, in milliseconds.
    pub max_hold_ms: u64,
    /// How long before its end the application is warned, in milliseconds.
    pub max_hold_warning_ms: u64,
    /// The FencedLease's own Redis.
    pub redis: Option<RedisSpec>,
    /// The gates as the sidecar gets them.
    pub gates: Vec<GateSettings>,
}

/// The spec, if every promise can be kept with it; else everything that is wrong with it.
pub fn resolve(spec: &FencedLeaseSpec) -> Result<ResolvedLease, Vec<Problem>> {
    let mut problems = Vec::new();
    let timing = timing(spec, &mut problems);
    let max_hold = holding(spec, &mut problems);
    if let Some(redis) = &spec.redis {
        problems.extend(redis_problems(redis));
    }
    let gates = gates::resolve(&spec.gates, &mut problems);
    if spec.standby.mode == StandbyMode::Cold && spec.standby.readiness == StandbyReadiness::Ready {
        problems.push(Problem::new(
            "spec.standby.readiness",
            "Ready with spec.standby.mode Cold",
            "Auto or NotReady, because a cold standby's containers do not exist yet",
            "Set spec.standby.readiness to Auto.",
        ));
    }
    match (timing, max_hold) {
        (Some((settings, timing)), Some((max_hold_ms, max_hold_warning_ms))) if problems.is_empty() => {
            let redis = spec.redis.clone();
            Ok(ResolvedLease { settings, timing, max_hold_ms, max_hold_warning_ms, redis, gates })
        }
        _ => Err(problems),
    }
}

/// Whether this FencedLease is admitted, and with which warnings. `old` is what it was before an update;
/// `installation_has_redis` says whether there is a Redis for a spec without one.
pub fn review(
    lease: &FencedLease,
    old: Option<&FencedLease>,
    installation_has_redis: bool,
) -> Result<Vec<String>, Refusal> {
    // An object that is being deleted, or whose spec stays, must not be held up by rules that came later.
    if lease.metadata.deletion_timestamp.is_some() || old.is_some_and(|old| old.spec == lease.spec) {
        return Ok(Vec::new());
    }
    let name = lease.metadata.name.as_deref().unwrap_or("(name generated)");
    let namespace = lease.metadata.namespace.as_deref().unwrap_or("default");
    let subject = format!("FencedLease {namespace}/{name} cannot be used");
    let refused = |problems| Refusal::new(Cause::Lease, subject.clone(), problems);
    let resolved = resolve(&lease.spec).map_err(refused)?;
    if lease.spec.redis.is_none() && !installation_has_redis {
        return Err(refused(vec![no_redis()]));
    }
    let mut warnings: Vec<String> = gates::warning(&resolved.gates).into_iter().collect();
    let Some(old) = old else { return Ok(warnings) };
    if old.spec.redis != lease.spec.redis && is_wanted(old) {
        return Err(refused(vec![redis_moves(old)]));
    }
    warnings.push(
        "Pods that run already keep the FencedLease's old settings until they are replaced; status.outdatedPods counts them."
            .to_owned(),
    );
    Ok(warnings)
}

/// What is said where a FencedLease has no Redis and the installation has none either.
pub fn no_redis() -> Problem {
    Problem::new(
        "spec.redis",
        "unset, and the installation has no Redis of its own",
        "a Redis that keeps the lease",
        "Either set spec.redis.addresses to [\"host:6379\"] here, or give the installation a Redis: helm upgrade with --set 'redis.addresses={host:6379}', or with --set redis.embedded=true to try it out.",
    )
}

/// The number that a duration field says.
fn read(field: &str, text: &str, problems: &mut Vec<Problem>) -> Option<Duration> {
    duration::parse(text)
        .map_err(|error| problems.push(Problem::said(format!("spec.{field}: {error}."))))
        .ok()
}

fn timing(spec: &FencedLeaseSpec, problems: &mut Vec<Problem>) -> Option<(TimingSettings, Timing)> {
    let before = problems.len();
    let mut read = |field, text: &str| milliseconds(read(field, text, problems).unwrap_or_default());
    let settings = TimingSettings {
        ttl_ms: read("ttl", &spec.ttl),
        renew_interval_ms: spec.renew_interval.as_ref().map(|text| read("renewInterval", text)),
        renew_timeout_ms: read("renewTimeout", &spec.renew_timeout),
        grace_period_ms: read("gracePeriod", &spec.grace_period),
        kill_budget_ms: read("killBudget", &spec.kill_budget),
        commit_margin_ms: read("commitMargin", &spec.commit_margin),
    };
    if problems.len() > before {
        return None;
    }
    match Timing::try_new(&settings) {
        Ok(timing) => Some((settings, timing)),
        Err(error) => {
            problems.push(Problem::said(error.to_string()));
            None
        }
    }
}

fn holding(spec: &FencedLeaseSpec, problems: &mut Vec<Problem>) -> Option<(u64, u64)> {
    let max_hold = read("maxHold", &spec.max_hold, problems);
    let warning = read("maxHoldWarning", &spec.max_hold_warning, problems);
    let (max_hold, warning) = (max_hold?, warning?);
    let (least, most) = MAX_HOLD;
    if !(least..=most).contains(&max_hold) {
        let next = "Set it to 24h, or to how long one pod may hold the lease at most.";
        problems.push(Problem::new("spec.maxHold", &spec.max_hold, "1m to 720h", next));
    }
    let most_warning = (max_hold / 2).min(MOST_MAX_HOLD_WARNING);
    if warning > most_warning {
        let accepted = format!("0s to {}: at most 1h, and at most half of maxHold", in_seconds(most_warning));
        let next = "Shorten it, or lengthen spec.maxHold.";
        problems.push(Problem::new("spec.maxHoldWarning", &spec.max_hold_warning, &accepted, next));
    }
    Some((milliseconds(max_hold), milliseconds(warning)))
}

fn redis_problems(redis: &RedisSpec) -> Vec<Problem> {
    let mut problems = Vec::new();
    if redis.addresses.len() != 1 {
        let found = format!("a list of {}", redis.addresses.len());
        let next = "Name the one Redis that keeps the lease; Sentinel and Cluster come with a later release.";
        problems.push(Problem::new("spec.redis.addresses", &found, "exactly one host:port", next));
    }
    for (index, address) in redis.addresses.iter().enumerate() {
        if !is_address(address) {
            let field = format!("spec.redis.addresses[{index}]");
            let accepted = "host:port, such as redis.shop.svc:6379 or [2001:db8::1]:6379";
            let next = "Write host and port only: no scheme, user, password or path; the database is spec.redis.database.";
            problems.push(Problem::new(field, &format!("{address:?}"), accepted, next));
        }
    }
    if !(0..=65535).contains(&redis.database) {
        let next = "Set it to 0, unless the Redis is shared by database.";
        problems.push(Problem::new("spec.redis.database", &redis.database.to_string(), "0 to 65535", next));
    }
    let secret = redis.auth.as_ref().map(|auth| &auth.secret_ref.name);
    if let Some(name) = secret.filter(|name| !is_object_name(name)) {
        let next = "Name a Secret with the key password (and username, if it is not Redis's default user).";
        let accepted = "the name of a Secret of the same namespace";
        problems.push(Problem::new("spec.redis.auth.secretRef.name", &format!("{name:?}"), accepted, next));
    }
    problems.extend(redis.tls.as_ref().into_iter().flat_map(tls));
    problems
}

/// What is wrong with the references of `tls`.
fn tls(tls: &RedisTls) -> Vec<Problem> {
    let authorities =
        tls.ca_ref.as_ref().map(|it| ("spec.redis.tls.caRef.name", &it.name, "ConfigMap or Secret"));
    let own = tls.client_cert_secret_ref.as_ref();
    let own = own.map(|it| ("spec.redis.tls.clientCertSecretRef.name", &it.name, "Secret"));
    let wrong = authorities.into_iter().chain(own).filter(|(_, name, _)| !is_object_name(name));
    wrong
        .map(|(field, name, what)| {
            let accepted = format!("the name of a {what} of the same namespace");
            Problem::new(field, &format!("{name:?}"), &accepted, "Name the object that has the certificates.")
        })
        .collect()
}

/// Whether this is `host:port`, the host a DNS name, an IPv4 address or an IPv6 address in brackets.
pub fn is_address(address: &str) -> bool {
    let Some((host, port)) = address.rsplit_once(':') else { return false };
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let port_fits = digits && port.parse::<u16>().is_ok_and(|port| port > 0);
    let host_fits = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inner) => inner.parse::<std::net::Ipv6Addr>().is_ok(),
        None => is_object_name(&host.to_ascii_lowercase()),
    };
    port_fits && host_fits
}

fn is_wanted(lease: &FencedLease) -> bool {
    lease.status.as_ref().is_some_and(|status| {
        status.holder.is_some()
            || status.standbys > 0
            || matches!(status.phase, Some(Phase::Held | Phase::Waiting | Phase::Unknown))
    })
}

fn redis_moves(old: &FencedLease) -> Problem {
    let status = old.status.as_ref();
    let holder = status.and_then(|status| status.holder.as_ref());
    let standbys = status.map_or(0, |status| status.standbys);
    let found = match holder {
        Some(holder) => {
            format!("changed while {} holds the lease and {standbys} pods wait for it", holder.pod_name)
        }
        None => format!("changed while {standbys} pods wait for the lease"),
    };
    Problem::new(
        "spec.redis",
        &found,
        "a change while no pod uses the lease, since one pod could hold it in each Redis",
        "Scale the workloads that use it to 0, wait until kubectl get fencedleases shows Idle, change spec.redis, and scale back.",
    )
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
