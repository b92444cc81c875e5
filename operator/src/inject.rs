//! How is a pod guarded? A pure function from pod, FencedLease and installation to a JSON patch. A pod that
//! comes again is rebuilt from scratch: equal results are an empty patch.

mod beside;
mod build;
mod checks;
mod dns;
mod installation;
mod names;
mod plan;
mod preview;
mod probes;
mod resources;
mod sidecar;
mod standby;
mod strip;
mod view;

use fencedlease_crds::FencedLease;
use fencedlease_wire::settings::{AfterLoss, StandbySettings};
use json_patch::Patch;
use serde_json::Value;

pub use installation::{Installation, InstallationRedis, Resources, SidecarImage};
pub use names::{
    ADMIN_PORT, CREDENTIALS_DIR, CREDENTIALS_VOLUME, GUARD_PATH, SHARED_VOLUME, SIDECAR, SIDECAR_COMMAND,
    STATE_VOLUME,
};
pub use preview::preview;

use crate::admit::patch::difference;
use crate::admit::{Cause, Problem, Refusal};

/// How a pod becomes a guarded one.
#[derive(Clone, Debug, PartialEq)]
pub struct Injected {
    /// What the API server is to change in the pod; empty where it is guarded as it should be already.
    pub patch: Patch,
    /// What the user should know, one sentence or two each.
    pub warnings: Vec<String>,
    /// How the pod waits for the lease.
    pub standby: StandbySettings,
    /// What becomes of it after LOST.
    pub after_loss: AfterLoss,
}

/// Plans how `pod`, the raw JSON of a request in `namespace`, is guarded by `lease`. Refused is whatever could
/// run anything of the workload outside the lease; the refusal names everything that stands against it.
pub fn inject(
    pod: &Value,
    lease: &FencedLease,
    namespace: &str,
    installation: &Installation,
) -> Result<Injected, Refusal> {
    let refused = |problems: Vec<Problem>| Refusal::new(Cause::Pod, subject(pod, lease, namespace), problems);
    let stripped = strip::strip(pod);
    let view = view::PodView::new(&stripped).map_err(refused)?;
    let plan = plan::plan(&view, lease, namespace, installation).map_err(refused)?;
    let settings = serde_json::to_string(&plan.settings).map_err(|error| {
        refused(vec![Problem::said(format!("the sidecar's settings cannot be written: {error}."))])
    })?;
    let wanted = build::build(&stripped, &plan, &settings, installation);
    let mut warnings = plan.warnings;
    warnings.extend(probes::warnings(&plan.guarded));
    warnings.extend(dns::warning(&view.spec));
    Ok(Injected {
        patch: difference(pod, &wanted),
        standby: plan.settings.standby,
        after_loss: plan.settings.after_loss,
        warnings,
    })
}

fn subject(pod: &Value, lease: &FencedLease, namespace: &str) -> String {
    let metadata = &pod["metadata"];
    let generated = || metadata["generateName"].as_str().map(|prefix| format!("{prefix}…"));
    let name =
        metadata["name"].as_str().map(str::to_owned).or_else(generated).unwrap_or_else(|| "…".to_owned());
    let lease = lease.metadata.name.as_deref().unwrap_or_default();
    format!("Pod {namespace}/{name} cannot be guarded by FencedLease {lease}")
}

#[cfg(test)]
pub(crate) mod tests;
