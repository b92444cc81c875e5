//! Would a single missed probe end the holding? The kubelet restarts a container whose liveness probe fails, and with
//! it ends the lease; one probe may come while the container still waits in the guard, or while it is being ended.

use k8s_openapi::api::core::v1::Probe;

use super::view::Guarded;

/// What Kubernetes takes where a probe does not say how often it may fail.
const DEFAULT_FAILURES: i32 = 3;
const DEFAULT_PERIOD_SECONDS: i32 = 10;

/// A warning for each liveness probe that leaves no period to spare.
pub(super) fn warnings(guarded: &[Guarded<'_>]) -> Vec<String> {
    guarded.iter().filter_map(of_container).collect()
}

fn of_container(guarded: &Guarded<'_>) -> Option<String> {
    let probe: &Probe = guarded.container.liveness_probe.as_ref()?;
    // One that is run in the container passes meanwhile.
    if probe.exec.is_some() || probe.failure_threshold.unwrap_or(DEFAULT_FAILURES) > 1 {
        return None;
    }
    let period = probe.period_seconds.unwrap_or(DEFAULT_PERIOD_SECONDS);
    Some(format!(
        "{} is 1: one missed probe, such as one while the container still waits in the guard, has it killed and ends the holding. Set it to 2 or more, which leaves a period of {period}s to spare.",
        guarded.field("livenessProbe.failureThreshold")
    ))
}
