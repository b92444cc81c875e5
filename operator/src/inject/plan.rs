//! What is to be done with a pod? Everything is decided here; what follows only writes it down.

use std::time::Duration;

use fencedlease_core::duration::{format, in_seconds};
use fencedlease_crds::{FencedLease, GateSpec};
use fencedlease_wire::settings::{
    AfterLoss, CredentialSource, RedisSettings, RedisTls, RestartPolicy, SidecarSettings,
};
use fencedlease_wire::{Fence, ResourceName};
use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};

use super::installation::{Installation, Resources};
use super::names::ADMIN_PORT;
use super::view::{Guarded, List, PodView};
use super::{checks, resources, standby};
use crate::admit::lease::{self, ResolvedLease};
use crate::admit::{Problem, quantity};
use crate::gate_keys;

/// What Kubernetes takes where a pod does not say how long its end may take.
const DEFAULT_TERMINATION_GRACE_SECONDS: i64 = 30;
/// What an orderly end needs besides gracePeriod and killBudget: the sidecar kills this long before the pod's
/// time is up, and releases the lease in it.
const RELEASE_RESERVE: Duration = Duration::from_secs(3);
/// Below this CPU limit, in processors, guards beside 50 busy processes were seen to miss the deadline once their
/// sidecar was dead: of four each, all at 50m, three at 100m, two at 250m, none at 500m.
const LEAST_CPUS: f64 = 0.5;
/// What the kernel needs to end processes without memory, and for each GiB more.
const KILL_BASE: Duration = Duration::from_secs(1);
const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// Everything that is decided about a pod.
pub(super) struct Plan<'a> {
    pub(super) settings: SidecarSettings,
    pub(super) guarded: Vec<Guarded<'a>>,
    pub(super) standby_why: String,
    pub(super) resources: Resources,
    /// The Secret of the FencedLease's own Redis.
    pub(super) redis_secret: Option<String>,
    /// What its TLS needs.
    pub(super) redis_tls: Option<&'a fencedlease_crds::RedisTls>,
    /// The gates, whose authorities the sidecar needs.
    pub(super) gates: &'a [GateSpec],
    /// The Secret with the key that signs tickets for them.
    pub(super) gate_key: Option<String>,
    pub(super) host_network: bool,
    pub(super) warnings: Vec<String>,
}

/// Decides, or says everything that stands against it.
pub(super) fn plan<'a>(
    view: &'a PodView,
    lease: &'a FencedLease,
    namespace: &str,
    installation: &Installation,
) -> Result<Plan<'a>, Vec<Problem>> {
    let (guarded, mut problems) = view.guarded();
    if view.spec.containers.is_empty() {
        let next = "Add the containers that are to be guarded.";
        problems.push(Problem::new("spec.containers", "empty", "at least one container", next));
    }
    problems.extend(checks::problems(view, &guarded));
    let resolved = lease::resolve(&lease.spec).map_err(|found| problems.extend(found)).ok();
    let redis = redis(lease, installation).map_err(|problem| problems.push(problem)).ok();
    let standby =
        standby::choose(lease.spec.standby, &guarded).map_err(|problem| problems.push(problem)).ok();
    let policy = restart_policy(&view.spec).map_err(|problem| problems.push(problem)).ok();
    let name = lease.metadata.name.as_deref().unwrap_or_default();
    let resource = ResourceName::new(&installation.id, namespace, name)
        .map_err(|error| problems.push(Problem::said(error.to_string())))
        .ok();
    let (Some(resolved), Some(redis), Some(standby), Some(policy), Some(resource)) =
        (resolved, redis, standby, policy, resource)
    else {
        return Err(problems);
    };
    if !problems.is_empty() {
        return Err(problems);
    }
    let after_loss = standby::after_loss(view, &guarded, policy, installation.restart_rules_work);
    let settings = SidecarSettings {
        resource,
        timing: resolved.settings,
        max_hold_ms: resolved.max_hold_ms,
        max_hold_warning_ms: resolved.max_hold_warning_ms,
        redis,
        containers: guarded.iter().map(|one| one.container.name.clone()).collect(),
        init_containers: guarded.iter().filter(|one| one.list == List::Init).count(),
        restart_policy: policy,
        standby: standby.settings,
        after_loss,
        termination_grace_period_ms: termination_grace_seconds(&view.spec).saturating_mul(1000),
        floor: highest_fence(lease),
        gates: resolved.gates.clone(),
        endpoint: Some(installation.endpoint.clone()),
        lease_generation: lease.metadata.generation.unwrap_or_default(),
        admin_port: admin_port(&view.spec),
        log_level: view
            .annotations
            .log_level
            .clone()
            .unwrap_or_else(|| installation.sidecar.log_level.clone()),
    };
    let warnings = warnings(view, &guarded, &resolved, after_loss);
    Ok(Plan {
        settings,
        standby_why: standby.why,
        resources: resources::of(&installation.sidecar.resources, &view.annotations),
        redis_secret: lease
            .spec
            .redis
            .as_ref()
            .and_then(|own| Some(own.auth.as_ref()?.secret_ref.name.clone())),
        redis_tls: lease.spec.redis.as_ref().and_then(|own| own.tls.as_ref()),
        gates: &lease.spec.gates,
        gate_key: (!lease.spec.gates.is_empty()).then(|| gate_keys::secret_name(name)),
        host_network: view.spec.host_network == Some(true),
        guarded,
        warnings,
    })
}

/// The FencedLease's own Redis or the installation's, never a mixture: the installation's password must not
/// go to an address that somebody typed here.
fn redis(lease: &FencedLease, installation: &Installation) -> Result<RedisSettings, Problem> {
    if let Some(own) = &lease.spec.redis {
        let credentials = if own.auth.is_some() { CredentialSource::Mounted } else { CredentialSource::None };
        return Ok(RedisSettings {
            addresses: own.addresses.clone(),
            database: own.database,
            credentials,
            tls: own.tls.as_ref().map(|tls| RedisTls {
                server_name: tls.server_name.clone(),
                own_authorities: tls.ca_ref.is_some(),
                client_certificate: tls.client_cert_secret_ref.is_some(),
            }),
        });
    }
    let shared = installation.redis.as_ref().ok_or_else(lease::no_redis)?;
    let credentials =
        if shared.has_credentials { CredentialSource::Endpoint } else { CredentialSource::None };
    Ok(RedisSettings {
        addresses: shared.addresses.clone(),
        database: shared.database,
        credentials,
        tls: None,
    })
}

fn restart_policy(spec: &PodSpec) -> Result<RestartPolicy, Problem> {
    match spec.restart_policy.as_deref() {
        None | Some("Always") => Ok(RestartPolicy::Always),
        Some("OnFailure") => Ok(RestartPolicy::OnFailure),
        Some("Never") => Ok(RestartPolicy::Never),
        Some(other) => {
            let next = "Correct it, or remove it.";
            Err(Problem::new("spec.restartPolicy", other, "Always, OnFailure or Never", next))
        }
    }
}

/// The highest fence known: the next one must be above it, whatever Redis remembers.
fn highest_fence(lease: &FencedLease) -> Option<Fence> {
    let highest = lease.status.as_ref()?.highest_fence?;
    Fence::new(u64::try_from(highest).ok()?).ok()
}

fn termination_grace_seconds(spec: &PodSpec) -> u64 {
    let seconds = spec.termination_grace_period_seconds.unwrap_or(DEFAULT_TERMINATION_GRACE_SECONDS);
    u64::try_from(seconds).unwrap_or_default()
}

/// The usual port, or the next one that no container of the pod has: they share one network.
fn admin_port(spec: &PodSpec) -> u16 {
    let ports = |container: &Container| {
        let ports = container.ports.iter().flatten().map(|port| port.container_port);
        ports.collect::<Vec<_>>()
    };
    let init = spec.init_containers.iter().flatten();
    let taken: Vec<i32> = spec.containers.iter().chain(init).flat_map(ports).collect();
    (ADMIN_PORT..=u16::MAX).find(|port| !taken.contains(&i32::from(*port))).unwrap_or(ADMIN_PORT)
}

fn warnings(
    view: &PodView,
    guarded: &[Guarded<'_>],
    lease: &ResolvedLease,
    after_loss: AfterLoss,
) -> Vec<String> {
    let mut warnings = Vec::new();
    warnings.extend(grace_warning(&view.spec, lease));
    warnings.extend(memory_warning(&view.spec, guarded, lease));
    warnings.extend(processor_warning(&view.spec, guarded));
    if after_loss == AfterLoss::Replace && !view.has_controller() {
        warnings.push(
            "After a loss of the lease this pod is deleted, because a probe would kill its waiting container, and nothing makes a new one. Run it as a Deployment or a Job."
                .to_owned(),
        );
    }
    warnings
}

fn grace_warning(spec: &PodSpec, lease: &ResolvedLease) -> Option<String> {
    let timing = &lease.timing;
    let needed = timing.grace_period() + timing.kill_budget() + RELEASE_RESERVE;
    let found = Duration::from_secs(termination_grace_seconds(spec));
    (found < needed).then(|| {
        let seconds = needed.as_millis().div_ceil(1000);
        format!(
            "terminationGracePeriodSeconds {} is too short for an orderly end: gracePeriod {} + killBudget {} + {} to release the lease. Set it to {seconds} or more, else the next holder waits up to {} for the lease to expire.",
            found.as_secs(),
            in_seconds(timing.grace_period()),
            in_seconds(timing.kill_budget()),
            in_seconds(RELEASE_RESERVE),
            in_seconds(timing.ttl()),
        )
    })
}

/// The guard lives within its container's limit and has to wake up in time there.
fn processor_warning(spec: &PodSpec, guarded: &[Guarded<'_>]) -> Option<String> {
    let limit = |resources: Option<&ResourceRequirements>| {
        let limit = resources?.limits.as_ref()?.get("cpu")?;
        quantity::parse(&limit.0).filter(|cpus| *cpus < LEAST_CPUS).map(|_| limit.0.clone())
    };
    let of_container = |one: &Guarded<'_>| {
        let limit = limit(one.container.resources.as_ref())?;
        Some(format!("container {} has {limit}", one.container.name))
    };
    let mut small: Vec<String> = guarded.iter().filter_map(of_container).collect();
    small.extend(limit(spec.resources.as_ref()).map(|limit| format!("the whole pod has {limit}")));
    (!small.is_empty()).then(|| {
        format!(
            "A CPU limit below 500m may keep the guard from acting in time if the sidecar is dead too: {}. Set resources.limits.cpu to 500m or more, or leave it out.",
            small.join(", ")
        )
    })
}

/// Memory takes the kernel time to give back, and the lease is not given on before.
fn memory_warning(spec: &PodSpec, guarded: &[Guarded<'_>], lease: &ResolvedLease) -> Option<String> {
    let limit = |container: &Container| {
        let limits = container.resources.as_ref()?.limits.as_ref()?;
        quantity::parse(&limits.get("memory")?.0)
    };
    // Init containers are gone when the others run.
    let regular = guarded.iter().filter(|one| one.list == List::Regular);
    let of_containers: Option<f64> = regular.map(|one| limit(one.container)).sum();
    let of_pod = spec
        .resources
        .as_ref()
        .and_then(|resources| quantity::parse(&resources.limits.as_ref()?.get("memory")?.0));
    let bytes = match (of_containers, of_pod) {
        (Some(containers), Some(pod)) => containers.min(pod),
        (Some(bytes), None) | (None, Some(bytes)) => bytes,
        (None, None) => return None,
    };
    let exact = KILL_BASE + Duration::try_from_secs_f64(bytes / GIB).ok()?;
    let needed = Duration::from_secs(exact.as_secs() + u64::from(exact.subsec_nanos() > 0));
    let budget = lease.timing.kill_budget();
    (needed > budget).then(|| {
        format!(
            "The guarded containers may use {:.1} GiB, which the kernel may need {} to give back, and killBudget is {}. Set spec.killBudget of the FencedLease to {} or more.",
            bytes / GIB,
            in_seconds(needed),
            in_seconds(budget),
            format(needed),
        )
    })
}
