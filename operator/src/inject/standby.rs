//! How does a pod wait for the lease, and what becomes of it after LOST?

use fencedlease_crds::{StandbyMode as WantedMode, StandbyReadiness, StandbySpec};
use fencedlease_wire::settings::{AfterLoss, RestartPolicy, StandbyMode, StandbySettings};

use super::view::{Guarded, List, PodView};
use crate::admit::Problem;

/// How a pod waits, and why so.
pub(super) struct Standby {
    pub(super) settings: StandbySettings,
    pub(super) why: String,
}

/// Chooses as the FencedLease asks and the pod allows.
pub(super) fn choose(wanted: StandbySpec, guarded: &[Guarded<'_>]) -> Result<Standby, Problem> {
    let obstacles = in_words(guarded);
    let mode = match wanted.mode {
        WantedMode::Auto | WantedMode::Warm if obstacles.is_none() => StandbyMode::Warm,
        WantedMode::Warm => {
            return Err(Problem::new(
                "spec.standby.mode of the FencedLease",
                &format!("Warm, while {}", obstacles.unwrap_or_default()),
                "Warm for pods without startup probes, postStart hooks, guarded init containers, and liveness probes other than exec",
                "Remove these from the pod template, or set spec.standby.mode to Auto.",
            ));
        }
        WantedMode::Auto | WantedMode::Cold => StandbyMode::Cold,
    };
    let served = guarded.iter().find_map(serves);
    let ready = match (wanted.readiness, mode) {
        (StandbyReadiness::Ready, StandbyMode::Cold) => {
            return Err(Problem::new(
                "spec.standby.readiness of the FencedLease",
                &format!(
                    "Ready, while this pod waits cold ({})",
                    cold_because(wanted.mode, obstacles.as_deref())
                ),
                "Auto or NotReady, because a cold standby's containers do not exist yet",
                "Set spec.standby.readiness to Auto, or let the pod wait warm.",
            ));
        }
        (StandbyReadiness::Ready, StandbyMode::Warm) => true,
        (StandbyReadiness::Auto, StandbyMode::Warm) => served.is_none(),
        (StandbyReadiness::NotReady, _) | (_, StandbyMode::Cold) => false,
    };
    let mode_why = match mode {
        StandbyMode::Warm => {
            "no guarded container has a startup probe, a postStart hook or a liveness probe other than exec, or is an init container"
                .to_owned()
        }
        StandbyMode::Cold => cold_because(wanted.mode, obstacles.as_deref()),
    };
    let ready_why = match (mode, wanted.readiness, served) {
        (StandbyMode::Cold, ..) => "its containers do not exist yet".to_owned(),
        (_, StandbyReadiness::Auto, Some(served)) => served,
        (_, StandbyReadiness::Auto, None) => "no guarded container has ports or a readiness probe".to_owned(),
        _ => format!("spec.standby.readiness is {:?}", wanted.readiness),
    };
    let (waits, word) = match mode {
        StandbyMode::Warm => ("warm", if ready { "Ready" } else { "not Ready" }),
        StandbyMode::Cold => ("cold", "not Ready"),
    };
    let why = format!("waits {waits}: {mode_why}; {word} meanwhile: {ready_why}");
    Ok(Standby { settings: StandbySettings { mode, ready }, why })
}

/// What becomes of the pod after LOST.
pub(super) fn after_loss(
    view: &PodView,
    guarded: &[Guarded<'_>],
    policy: RestartPolicy,
    restart_rules_work: bool,
) -> AfterLoss {
    let regular = guarded.iter().filter(|one| one.list == List::Regular).count();
    let all_guarded = regular == view.spec.containers.len();
    let own_policies = guarded.iter().any(|one| one.container.restart_policy.is_some());
    if policy == RestartPolicy::Never {
        // Nothing comes back by itself: the pod has failed once the guard ends, if no other container runs on.
        return if all_guarded || !view.has_controller() { AfterLoss::Fail } else { AfterLoss::Replace };
    }
    if restart_rules_work && view.has_controller() && all_guarded && !own_policies {
        AfterLoss::Fail
    } else if guarded.iter().any(|one| warm_obstacles(one).next().is_some()) || own_policies {
        AfterLoss::Replace
    } else {
        AfterLoss::Wait
    }
}

fn cold_because(wanted: WantedMode, obstacles: Option<&str>) -> String {
    match obstacles {
        Some(obstacles) if wanted != WantedMode::Cold => obstacles.to_owned(),
        _ => "spec.standby.mode is Cold".to_owned(),
    }
}

/// Why the pod cannot wait warm, if it cannot.
fn in_words(guarded: &[Guarded<'_>]) -> Option<String> {
    let failing: Vec<String> = guarded.iter().flat_map(warm_obstacles).collect();
    let init = guarded.iter().filter(|one| one.list == List::Init);
    let init: Vec<&str> = init.map(|one| one.container.name.as_str()).collect();
    let mut words = Vec::new();
    if !failing.is_empty() {
        words.push(format!("{} would not succeed in a waiting container", failing.join(", ")));
    }
    match init.as_slice() {
        [] => {}
        [one] => words.push(format!("init container {one} has to end before the others begin")),
        all => words.push(format!("init containers {} have to end before the others begin", all.join(", "))),
    }
    (!words.is_empty()).then(|| words.join(", and "))
}

/// What would not succeed while a container waits in the guard.
fn warm_obstacles(guarded: &Guarded<'_>) -> impl Iterator<Item = String> {
    let container = guarded.container;
    let post_start = container.lifecycle.as_ref().is_some_and(|hooks| hooks.post_start.is_some());
    [
        // With `exec` it is answered by the guard, which passes it while the workload waits.
        (container.liveness_probe.as_ref().is_some_and(|probe| probe.exec.is_none()), "liveness probe"),
        (container.startup_probe.is_some(), "startup probe"),
        (post_start, "postStart hook"),
    ]
    .into_iter()
    .filter(|(has, _)| *has)
    .map(|(_, what)| format!("{}'s {what}", container.name))
}

fn serves(guarded: &Guarded<'_>) -> Option<String> {
    let container = guarded.container;
    if container.readiness_probe.is_some() {
        Some(format!("{} has a readiness probe", container.name))
    } else if container.ports.as_ref().is_some_and(|ports| !ports.is_empty()) {
        Some(format!("{} has ports", container.name))
    } else {
        None
    }
}
