//! What the story needs: a cluster, the chart, a Redis behind a proxy, a guarded Deployment.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use fencedlease_cluster::cluster::up;
use fencedlease_cluster::kubectl::Kubectl;
use fencedlease_cluster::paths::Paths;
use fencedlease_cluster::progress::Progress;
use fencedlease_cluster::target::{Target, check_current};
use fencedlease_end_to_end::{Cluster, chart, images};

use crate::NAMESPACE;

const REDIS: &str = include_str!("../../../manifests/redis-behind-proxy.yaml");
const REPORT: &str = include_str!("../../../../../examples/report.yaml");
/// The example's image, and the one that this host can make without a registry.
const SHELL_IMAGES: [&str; 2] = ["docker.io/library/busybox:1.37", "fencedlease.dev/busybox:dev"];

/// A cluster with the operator, its installation's Redis being the one of the demo's namespace.
pub(crate) fn cluster_with_chart(paths: &Paths, kubectl: &Kubectl, progress: &Progress) -> Result<()> {
    let target = Target::from_env()?;
    match target {
        Target::Own => up(paths, 1, progress)?,
        Target::Current => check_current(kubectl, 1, progress)?,
    }
    let cluster = Cluster::in_use()?;
    images::hand_over(
        &cluster,
        &[&images::FOR_TESTS[..], &images::FOR_LATE_WRITE[..], &images::FOR_GATES[..], &images::OURS[..]]
            .concat(),
        progress,
    )?;
    progress.step("Installing the chart, with the demo's Redis as the installation's");
    let redis = format!("redis.addresses={{redis.{NAMESPACE}.svc:6379}}");
    chart::install(kubectl, target, &["--set", &redis])?;
    Ok(())
}

/// The Redis, and the proxy in front of it, in a namespace that is empty otherwise.
pub(crate) fn redis_behind_proxy(kubectl: &Kubectl, progress: &Progress) -> Result<()> {
    progress.step("A Redis, and a proxy in front of it that can cut off one pod");
    kubectl.run(&["delete", "namespace", NAMESPACE, "--ignore-not-found"])?;
    kubectl.run(&["create", "namespace", NAMESPACE])?;
    kubectl.run(&["label", "namespace", NAMESPACE, "pod-security.kubernetes.io/warn=restricted"])?;
    apply(kubectl, REDIS)?;
    kubectl.run(&["rollout", "status", "deployment/redis", "--namespace", NAMESPACE, "--timeout=180s"])?;
    Ok(())
}

/// The example's FencedLease and Deployment, until one pod holds and one waits.
pub(crate) fn guarded_deployment(kubectl: &Kubectl, progress: &Progress) -> Result<()> {
    let [documented, local] = SHELL_IMAGES;
    progress.step("Applying examples/report.yaml: a FencedLease, and a Deployment of two that asks for it");
    apply(kubectl, &REPORT.replace(documented, local))?;
    wait("one pod to hold the lease and one to wait", Duration::from_secs(60), || {
        let lease = lease(kubectl)?;
        let held = lease["status"]["phase"] == "Held" && lease["status"]["standbys"] == 1;
        Ok(held.then_some(()))
    })
}

/// Applies manifests in the demo's namespace.
pub(crate) fn apply(kubectl: &Kubectl, manifests: &str) -> Result<String> {
    let mut command = kubectl.command(&["apply", "--namespace", NAMESPACE, "--filename=-"]);
    Ok(fencedlease_cluster::command::run_with_input(
        &mut command,
        &images::as_known_to(Target::from_env()?, manifests),
    )?)
}

/// The demo's FencedLease as it stands.
pub(crate) fn lease(kubectl: &Kubectl) -> Result<serde_json::Value> {
    Ok(kubectl.json(&["get", "fencedlease", "report", "--namespace", NAMESPACE])?)
}

/// Asks again every 100 ms until there is an answer.
pub(crate) fn wait<T>(what: &str, most: Duration, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask().with_context(|| format!("cannot see {what}"))? {
            return Ok(answer);
        }
        if begun.elapsed() > most {
            bail!("waited {} s for {what}, in vain", most.as_secs());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
