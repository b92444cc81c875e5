//! The operator away or without its certificates. Every other test counts on it.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail};
use fencedlease_end_to_end::timings::short;
use fencedlease_end_to_end::{Pod, Stage, Workload, chart, seconds};
use fencedlease_wire::socket::LeaseView;
use serde_json::Value;

/// How often a holder that has nothing to tell is heard of, and some more, in milliseconds.
const STANDING: u64 = 11_000;

fn active(pod: &Pod<'_>) -> Result<(i64, u64)> {
    match pod.lease("app")? {
        LeaseView::Active { fence, kill_at_boottime_ms, .. } => {
            Ok((i64::try_from(fence.get())?, kill_at_boottime_ms))
        }
        other => bail!("{} does not hold: {other:?}", pod.name()),
    }
}

#[test]
fn without_the_operator_a_holder_renews_and_a_standby_follows() -> Result<()> {
    let stage = Stage::open_alone("away")?;
    let redis = stage.redis_behind_proxy()?;
    stage.lease("report", &redis, &short())?;
    stage.start(&Workload::deployment("report").guarded_by("report").replicas(2))?;
    let holder = stage.holder("report", seconds(60))?;
    stage.until_standbys("report", 1, seconds(60))?;
    let fence = stage.fence("report")?;
    let pods = stage.pods("app=report")?;
    let standby = pods.iter().find(|pod| pod.uid() != holder.uid()).context("no standby")?;

    let away = stage.operator_away()?;
    let mut renewals = BTreeSet::new();
    stage.start(&Workload::pod("plain"))?;
    let refusal = stage.apply_refused(&Workload::pod("asks").guarded_by("report").manifest())?;
    assert!(refusal.contains("failed calling webhook \"new-pods.fencedlease.dev\""), "{refusal}");
    stage.eventually(seconds(60), "two renewals and a standing report's time have passed", |_| {
        let (now, renewed) = active(&holder)?;
        assert_eq!(now, fence);
        renewals.insert(renewed);
        let (first, last) = (renewals.first().copied(), renewals.last().copied());
        let passed = last.unwrap_or_default() - first.unwrap_or_default();
        Ok((renewals.len() >= 3 && passed > STANDING).then_some(()))
    })?;
    let plain = stage.pod("plain")?.until(seconds(20), "runs", |pod| pod.phase() == "Running")?;
    assert!(!plain.is_injected());

    redis.cut_off(&holder)?;
    let (next, _) = stage.eventually(seconds(30), "the standby holds", |_| Ok(active(standby).ok()))?;
    assert!(next > fence, "{next} follows {fence}");
    redis.heal()?;
    away.end()?;

    let now = stage.holder_above("report", fence, seconds(60))?;
    assert_eq!((now.name(), stage.fence("report")?), (standby.name(), next));
    stage.until_standbys("report", 1, seconds(120))?;
    stage.until_lease("report", seconds(60), "that it is held", |status| {
        let held = status.conditions.iter().find(|condition| condition.type_ == "Held")?;
        (held.status == "True" && held.reason == "HolderActive").then_some(())
    })
}

#[test]
fn deleted_certificates_come_back_and_admission_goes_on() -> Result<()> {
    let stage = Stage::open_alone("certificates")?;
    stage.lease_of_installation("report", &short())?;
    let secret = ["secret", "fencedlease-operator-certificates", "--namespace", chart::NAMESPACE];
    let before: Value = stage.cluster().get(&secret)?;
    assert!(before["data"]["ca.crt"].is_string(), "no bundle in the Secret");

    let mut delete = vec!["delete"];
    delete.extend(secret);
    stage.cluster().kubectl().run(&delete)?;
    let after = stage.eventually(seconds(20), "the Secret is there again", |stage| {
        Ok(Some(stage.cluster().get::<Value>(&secret)?))
    })?;
    assert_ne!(before["metadata"]["uid"], after["metadata"]["uid"]);
    // What running sidecars trust stays trusted: they would be cut off from the operator otherwise.
    assert_eq!(before["data"]["ca.crt"], after["data"]["ca.crt"]);

    stage.eventually(seconds(20), "an annotated pod is admitted", |stage| {
        stage.start(&Workload::pod("app").guarded_by("report")).map(Some)
    })?;
    let holder = stage.holder("report", seconds(60))?;
    assert_eq!(holder.name(), "app");
    Ok(())
}
