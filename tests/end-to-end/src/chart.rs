//! Installing the chart from this checkout, with the images that were built from it.

use fencedlease_cluster::error::Result;
use fencedlease_cluster::kubectl::Kubectl;
use fencedlease_cluster::target::Target;

use crate::images;

/// The namespace that the operator is installed in.
pub const NAMESPACE: &str = "fencedlease-system";
/// The release's name.
pub const RELEASE: &str = "fencedlease";

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/fencedlease");

/// Installs or upgrades the chart and waits until the operator is ready. `more` are further helm arguments.
pub fn install(kubectl: &Kubectl, target: Target, more: &[&str]) -> Result<String> {
    let mut command = kubectl.helm(&["upgrade", "--install", RELEASE, CHART, "--namespace", NAMESPACE]);
    command.args(["--create-namespace", "--wait", "--timeout=180s"]);
    for (part, image) in
        [("operator", "operator"), ("sidecar", "sidecar"), ("redis", "redis"), ("test", "busybox")]
    {
        let reference = images::as_known_to(target, &format!("fencedlease.dev/{image}:dev"));
        let repository = reference.trim_end_matches(":dev");
        command.args(["--set", &format!("{part}.image.repository={repository},{part}.image.tag=dev")]);
    }
    command.args(more);
    fencedlease_cluster::command::run(&mut command)
}

/// Takes the release away.
pub fn uninstall(kubectl: &Kubectl) -> Result<String> {
    let mut command = kubectl.helm(&["uninstall", RELEASE, "--namespace", NAMESPACE, "--wait"]);
    fencedlease_cluster::command::run(&mut command)
}
