//! What people do to a Deployment of two replicas without ports: roll it out, install and upgrade it with
//! `helm --wait`, drain its node. All of it waits for Ready pods, and all of it just works.

#![expect(clippy::disallowed_types, reason = "tests measure waits of their own, never a lease")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result};
use fencedlease_cluster::command::run;
use fencedlease_crds::Phase;
use fencedlease_end_to_end::{Pod, RedisBehindProxy, Stage, WRITES_JOURNAL, Workload, seconds};
use serde_json::{Value, json};

/// Short, and within the rules.
fn timings() -> Value {
    json!({
        "ttl": "8s", "renewTimeout": "500ms", "gracePeriod": "500ms", "killBudget": "1s", "commitMargin": "500ms",
    })
}

/// Two replicas, updated by Kubernetes' own default.
fn two(name: &str) -> Workload {
    Workload::deployment(name).guarded_by("report").replicas(2).rolling().script(WRITES_JOURNAL)
}

/// Waits until somebody holds with a fence above this one and has written, and gives the fence.
fn working_above(stage: &Stage, redis: &RedisBehindProxy<'_>, fence: i64) -> Result<i64> {
    stage.holder_above("report", fence, seconds(60))?;
    stage.eventually(seconds(30), "the holder writes", |stage| {
        let now = stage.fence("report")?;
        Ok(redis.journal()?.has(now).then_some(now))
    })
}

#[test]
fn a_rollout_of_two_replicas_goes_through() -> Result<()> {
    let stage = Stage::open("rollout")?;
    let redis = stage.redis_behind_proxy()?;
    stage.lease("report", &redis, &timings())?;
    stage.start(&two("report"))?;
    stage.kubectl(&["rollout", "status", "deployment/report", "--timeout=60s"])?;
    let fence = working_above(&stage, &redis, 0)?;
    let before: Vec<String> = stage.pods("app=report")?.iter().map(|pod| pod.uid().to_owned()).collect();

    let began = Instant::now();
    stage.kubectl(&["rollout", "restart", "deployment/report"])?;
    stage.kubectl(&["rollout", "status", "deployment/report", "--timeout=90s"])?;
    println!("rolled out in {:?}", began.elapsed());
    let after = stage.until_pods("app=report", 2, seconds(30), "both are new and Ready", |pod| {
        pod.is_ready() && !before.iter().any(|uid| uid == pod.uid())
    })?;
    let now = working_above(&stage, &redis, fence)?;
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
    let mut spec = timings();
    spec["redis"] = json!({"addresses": [redis.address()]});
    let lease = json!({
        "apiVersion": "fencedlease.dev/v1alpha1", "kind": "FencedLease", "metadata": {"name": "report"}, "spec": spec,
    });
    let mut workload = two("report").manifest();
    // What an upgrade changes: a template that is filled in by helm.
    workload["spec"]["template"]["metadata"]["labels"]["round"] = "{{ .Values.round }}".into();
    let chart = Chart::write("guarded-report", &[lease, workload])?;

    let upgrade = ["upgrade", "--install", "report", chart.folder()?, "--wait", "--timeout=90s", "--set"];
    let installed = Instant::now();
    helm(&stage, &[&upgrade[..], &["round=first"]].concat())?;
    println!("helm --wait: installed in {:?}", installed.elapsed());
    assert!(stage.pods("app=report")?.iter().all(Pod::is_ready));
    let fence = working_above(&stage, &redis, 0)?;

    let upgraded = Instant::now();
    helm(&stage, &[&upgrade[..], &["round=second"]].concat())?;
    println!("helm --wait: upgraded in {:?}", upgraded.elapsed());
    let second = stage.pods("app=report,round=second")?;
    assert!(second.len() == 2 && second.iter().all(Pod::is_ready), "helm did not wait: {second:?}");
    working_above(&stage, &redis, fence)?;
    let holder = stage.holder("report", seconds(10))?;
    assert!(second.iter().any(|pod| pod.uid() == holder.uid()));
    redis.journal()?.turns()?;

    helm(&stage, &["uninstall", "report", "--wait", "--timeout=60s"])?;
    stage.until_no_pods("app=report", seconds(30))?;
    let left = redis.cli(&["KEYS", "fencedlease:v1:*:lease"])?;
    assert_eq!(left.trim(), "", "the lease was to be released");
    Ok(())
}

/// A node that takes no pods until this is dropped.
struct Drained<'a> {
    stage: &'a Stage,
    node: String,
}

impl Drop for Drained<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.stage.kubectl(&["uncordon", &self.node]) {
            eprintln!("node {} stays cordoned: {error:#}", self.node);
        }
    }
}

#[test]
fn the_holders_node_is_drained_under_a_disruption_budget() -> Result<()> {
    let stage = Stage::open_alone("drain")?;
    let nodes = stage.cluster().nodes()?;
    assert!(nodes.len() > 1, "a drain needs a second node: only {nodes:?} take pods");
    let redis = stage.redis_behind_proxy()?;
    stage.lease("report", &redis, &timings())?;
    // Only these pods are drained: the nodes may be shared.
    let (app, selector) = (stage.namespace(), format!("app={}", stage.namespace()));
    stage.apply(&json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "report"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
    }))?;
    stage.start(&two(app))?;
    stage.kubectl(&["rollout", "status", &format!("deployment/{app}"), "--timeout=60s"])?;
    let fence = working_above(&stage, &redis, 0)?;
    let holder = stage.holder("report", seconds(10))?;

    let drained = Drained { stage: &stage, node: holder.node()?.to_owned() };
    let began = Instant::now();
    stage.kubectl(&[
        "drain",
        &drained.node,
        "--ignore-daemonsets",
        "--delete-emptydir-data",
        &format!("--pod-selector={selector}"),
        "--timeout=90s",
    ])?;
    println!("drained in {:?}", began.elapsed());
    assert!(holder.again().map_or(true, |pod| pod.uid() != holder.uid()), "the holder was to be evicted");
    let elsewhere = |pod: &Pod<'_>| pod.is_ready() && pod.node().is_ok_and(|node| node != drained.node);
    stage.until_pods(&selector, 2, seconds(60), "are Ready on another node", elsewhere)?;
    working_above(&stage, &redis, fence)?;
    println!("turns: {:?}", redis.journal()?.turns()?);
    let status = stage.read_lease("report")?.status.context("no status")?;
    assert_eq!((status.phase, status.last_loss), (Some(Phase::Held), None));
    Ok(())
}
