//! The operator of this checkout: installed once for each run of a test program, taken away for a while.

use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};
use fencedlease_cluster::progress::Progress;
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;

use crate::chart;
use crate::cluster::Cluster;
use crate::images;

const DEPLOYMENT: &str = "deployment/fencedlease-operator";
/// Says which build of the image the pods run, whose tag is the same for all.
const BUILD: &str = "end-to-end.test/operator-image";

static INSTALLED: Mutex<bool> = Mutex::new(false);

/// Builds the images, hands them to the cluster and installs the chart with its embedded Redis, unless this
/// test program has done so. It does work only for what changed.
pub(crate) fn install_once(cluster: &Cluster) -> Result<()> {
    // A test that failed in here leaves the flag as it was, and so whole.
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    let progress = Progress::start();
    images::hand_over(cluster, &images::OURS, &progress).context("cannot hand our images to the cluster")?;
    let build = images::digest(cluster, "operator", &progress)?;
    progress.step("Installing the chart of this checkout");
    chart::install(cluster.kubectl(), cluster.target(), &["--set", "redis.embedded=true"])
        .context("cannot install the chart")?;
    let patch = json!({"spec": {"template": {"metadata": {"annotations": {BUILD: build}}}}});
    run(cluster, &["patch", DEPLOYMENT, "--patch", &patch.to_string()])?;
    wait_for_rollout(cluster)?;
    *installed = true;
    Ok(())
}

/// An operator that is scaled to zero. It comes back when this is dropped, or told to.
#[derive(Debug)]
pub struct OperatorAway {
    cluster: Cluster,
    replicas: i32,
    returned: bool,
}

impl OperatorAway {
    pub(crate) fn begin(cluster: &Cluster) -> Result<Self> {
        let deployment: Deployment = cluster.get(&[DEPLOYMENT, "--namespace", chart::NAMESPACE])?;
        let replicas = deployment.spec.replicas.unwrap_or(1);
        let away = Self { cluster: cluster.clone(), replicas, returned: false };
        run(cluster, &["scale", DEPLOYMENT, "--replicas=0"])?;
        let pods = [
            "wait",
            "pod",
            "--selector=app.kubernetes.io/component=operator",
            "--for=delete",
            "--timeout=180s",
        ];
        run(cluster, &pods)?;
        Ok(away)
    }

    /// Brings the operator back and waits until it is ready.
    pub fn end(mut self) -> Result<()> {
        self.come_back()?;
        wait_for_rollout(&self.cluster)
    }

    fn come_back(&mut self) -> Result<()> {
        self.returned = true;
        run(&self.cluster, &["scale", DEPLOYMENT, &format!("--replicas={}", self.replicas)]).map(|_| ())
    }
}

impl Drop for OperatorAway {
    fn drop(&mut self) {
        if !self.returned
            && let Err(error) = self.come_back().and_then(|()| wait_for_rollout(&self.cluster))
        {
            eprintln!("the operator does not come back: {error:#}");
        }
    }
}

fn wait_for_rollout(cluster: &Cluster) -> Result<()> {
    run(cluster, &["rollout", "status", DEPLOYMENT, "--timeout=180s"]).map(|_| ())
}

fn run(cluster: &Cluster, words: &[&str]) -> Result<String> {
    let mut all = vec!["--namespace", chart::NAMESPACE];
    all.extend(words);
    Ok(cluster.kubectl().run(&all)?)
}
