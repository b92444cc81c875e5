//! What people do to a Deployment of two replicas without ports: roll it out, install and upgrade it with
//! `helm --wait`. All of it waits for Ready pods, and all of it just works.

#![expect(clippy::disallowed_types, reason = "tests measure waits of their own, never a lease")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result};
use fencedlease_cluster::command::run;
use fencedlease_end_to_end::timings::short;
use fencedlease_end_to_end::{Pod, Stage, WRITES_JOURNAL, Workload, seconds};
use serde_json::{Value, json};

/// Two replicas, updated by Kubernetes' own default.
fn two(name: &str) -> Workload {
    Workload::deployment(name).guarded_by("report").replicas(2).rolling().script(WRITES_JOURNAL)
}

#[test]
fn a_rollout_of_two_replicas_goes_through() -> Result<()> {
    let stage = Stage::open("rollout")?;
    let redis = stage.redis_behind_proxy()?;
    stage.lease("report", &redis, &short())?;
    stage.start(&two("report"))?;
    stage.kubectl(&["rollout", "status", "deployment/report", "--timeout=180s"])?;
    let fence = redis.until_written_above(&stage, "report", 0)?;
    let before: Vec<String> = stage.pods("app=report")?.iter().map(|pod| pod.uid().to_owned()).collect();

    let began = Instant::now();
    stage.kubectl(&["rollout", "restart", "deployment/report"])?;
    stage.kubectl(&["rollout", "status", "deployment/report", "--timeout=180s"])?;
    println!("rolled out in {:?}", began.elapsed());
    let after = stage.until_pods("app=report", 2, seconds(30), "both are new and Ready", |pod| {
        pod.is_ready() && !before.iter().any(|uid| uid == pod.uid())
    })?;
    let now = redis.until_written_above(&stage, "report", fence)?;
    let holder = stage.holder("report", seconds(10))?;
    assert!(after.iter().any(|pod| pod.uid() == holder.uid()));
    println!("turns: {:?}, now {now}", redis.journal()?.turns()?);
    assert_eq!(stage.read_lease("report")?.status.and_then(|status| status.last_loss), None);
    Ok(())
}

/// A chart in a folder that goes with it.
struct Chart(PathBuf);

impl Chart {
    fn write(name: &str, manifests: &[Value]) -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("templates"))?;
        fs::write(folder.join("Chart.yaml"), format!("apiVersion: v2\nname: {name}\nversion: 0.1.0\n"))?;
        let chart = Self(folder);
        for (number, manifest) in manifests.iter().enumerate() {
            fs::write(chart.0.join(format!("templates/{number}.yaml")), manifest.to_string())?;
        }
        Ok(chart)
    }

    fn folder(&self) -> Result<&str> {
        let folder: &Path = &self.0;
        folder.to_str().context("the temporary folder's name is not text")
    }
}

impl Drop for Chart {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn helm(stage: &Stage, words: &[&str]) -> Result<String> {
    let mut all = words.to_vec();
    all.extend(["--namespace", stage.namespace()]);
    Ok(run(&mut stage.cluster().kubectl().helm(&all))?)
}

#[test]
fn helm_waits_for_an_installation_and_an_upgrade() -> Result<()> {
    let stage = Stage::open("helm")?;
    let redis = stage.redis_behind_proxy()?;
    let mut spec = short();
    spec["redis"] = json!({"addresses": [redis.address()]});
    let lease = json!({
        "apiVersion": "fencedlease.dev/v1alpha1", "kind": "FencedLease", "metadata": {"name": "report"}, "spec": spec,
    });
    let mut workload = two("report").manifest();
    // What an upgrade changes: a template that is filled in by helm.
    workload["spec"]["template"]["metadata"]["labels"]["round"] = "{{ .Values.round }}".into();
    let chart = Chart::write("guarded-report", &[lease, workload])?;

    let upgrade = ["upgrade", "--install", "report", chart.folder()?, "--wait", "--timeout=180s", "--set"];
    let installed = Instant::now();
    helm(&stage, &[&upgrade[..], &["round=first"]].concat())?;
    println!("helm --wait: installed in {:?}", installed.elapsed());
    assert!(stage.pods("app=report")?.iter().all(Pod::is_ready));
    let fence = redis.until_written_above(&stage, "report", 0)?;

    let upgraded = Instant::now();
    helm(&stage, &[&upgrade[..], &["round=second"]].concat())?;
    println!("helm --wait: upgraded in {:?}", upgraded.elapsed());
    let second = stage.pods("app=report,round=second")?;
    assert!(second.len() == 2 && second.iter().all(Pod::is_ready), "helm did not wait: {second:?}");
    redis.until_written_above(&stage, "report", fence)?;
    let holder = stage.holder("report", seconds(10))?;
    assert!(second.iter().any(|pod| pod.uid() == holder.uid()));
    redis.journal()?.turns()?;

    helm(&stage, &["uninstall", "report", "--wait", "--timeout=180s"])?;
    stage.until_no_pods("app=report", seconds(30))?;
    let left = redis.cli(&["KEYS", "fencedlease:v1:*:lease"])?;
    assert_eq!(left.trim(), "", "the lease was to be released");
    Ok(())
}
