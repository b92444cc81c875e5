//! `kubectl drain` of the holder's node waits for Ready pods elsewhere, and just works. No other test may want the node
//! meanwhile.

#![expect(clippy::disallowed_types, reason = "tests measure waits of their own, never a lease")]

use std::time::Instant;

use anyhow::{Context as _, Result};
use fencedlease_crds::Phase;
use fencedlease_end_to_end::timings::short;
use fencedlease_end_to_end::{Pod, Stage, WRITES_JOURNAL, Workload, seconds};
use serde_json::json;

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
    stage.lease("report", &redis, &short())?;
    // Only these pods are drained: the nodes may be shared.
    let (app, selector) = (stage.namespace(), format!("app={}", stage.namespace()));
    stage.apply(&json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "report"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
    }))?;
    let pair = Workload::deployment(app).guarded_by("report").replicas(2).rolling().script(WRITES_JOURNAL);
    stage.start(&pair)?;
    stage.kubectl(&["rollout", "status", &format!("deployment/{app}"), "--timeout=180s"])?;
    let fence = redis.until_written_above(&stage, "report", 0)?;
    let holder = stage.holder("report", seconds(10))?;

    let drained = Drained { stage: &stage, node: holder.node()?.to_owned() };
    let began = Instant::now();
    stage.kubectl(&[
        "drain",
        &drained.node,
        "--ignore-daemonsets",
        "--delete-emptydir-data",
        &format!("--pod-selector={selector}"),
        "--timeout=180s",
    ])?;
    println!("drained in {:?}", began.elapsed());
    assert!(holder.again().map_or(true, |pod| pod.uid() != holder.uid()), "the holder was to be evicted");
    let elsewhere = |pod: &Pod<'_>| pod.is_ready() && pod.node().is_ok_and(|node| node != drained.node);
    stage.until_pods(&selector, 2, seconds(60), "are Ready on another node", elsewhere)?;
    redis.until_written_above(&stage, "report", fence)?;
    println!("turns: {:?}", redis.journal()?.turns()?);
    let status = stage.read_lease("report")?.status.context("no status")?;
    assert_eq!((status.phase, status.last_loss), (Some(Phase::Held), None));
    Ok(())
}
