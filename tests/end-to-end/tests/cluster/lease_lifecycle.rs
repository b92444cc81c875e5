//! FencedLeases that are not there yet, go away under a holder, or are made again, and what losses leave behind.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use fencedlease_end_to_end::timings::short;
use fencedlease_end_to_end::{Pod, RedisBehindProxy, Stage, Workload, chart, seconds};
use serde_json::Value;

#[test]
fn pods_wait_for_a_lease_that_is_not_there_yet() -> Result<()> {
    let stage = Stage::open("not yet")?;
    let text = stage.would_refuse(&Workload::pod("one").guarded_by("report").manifest())?;
    assert!(text.contains("has no FencedLease of"), "{text}");
    stage.start(&Workload::deployment("report").guarded_by("report"))?;
    stage.eventually(seconds(30), "the ReplicaSet tells of the refusal", |stage| {
        let sets: Value = stage.get(&["replicasets", "--selector=app=report"])?;
        let conditions = sets["items"][0]["status"]["conditions"].to_string();
        Ok(conditions.contains("has no FencedLease of").then_some(()))
    })?;
    assert!(stage.pods("app=report")?.is_empty());

    stage.lease_of_installation("report", &short())?;
    let holder = stage.holder("report", seconds(120))?;
    assert!(holder.is_injected());
    Ok(())
}

#[test]
fn a_holder_goes_on_when_its_lease_object_is_deleted_and_is_known_again_when_that_is_made_again() -> Result<()>
{
    let stage = Stage::open("gone")?;
    stage.lease_of_installation("report", &short())?;
    stage.start(&Workload::deployment("report").guarded_by("report"))?;
    let holder = stage.holder("report", seconds(60))?;
    let fence = stage.fence("report")?;

    stage.kubectl(&["delete", "fencedlease", "report"])?;
    let text = stage.would_refuse(&Workload::pod("one").guarded_by("report").manifest())?;
    assert!(text.contains("has no FencedLease of"), "{text}");
    // Longer than the ttl: it renews, or it would be gone.
    let uptime = || -> Result<u64> { Ok(holder.shell("app", "cut -d . -f 1 /proc/uptime")?.trim().parse()?) };
    let before = uptime()?;
    stage.eventually(seconds(60), "12 s have passed", |_| Ok((uptime()? >= before + 12).then_some(())))?;
    let held = holder.shell("app", "cat /run/fencedlease/fence")?;
    assert_eq!(held.trim(), fence.to_string());
    assert_eq!(holder.again()?.restarts("app")?, 0);

    stage.lease_of_installation("report", &short())?;
    let again = stage.holder("report", seconds(60))?;
    assert_eq!((again.uid(), stage.fence("report")?), (holder.uid(), fence));
    holder.delete()?;
    let next = stage.holder_above("report", fence, seconds(60))?;
    assert_ne!(next.uid(), holder.uid());
    Ok(())
}

/// Has the holder lose its lease, and gives its pod once it has failed.
fn lose<'a>(stage: &'a Stage, redis: &RedisBehindProxy<'_>, fence: i64) -> Result<(Pod<'a>, i64)> {
    let holder = stage.holder_above("report", fence, seconds(90))?;
    let fence = stage.fence("report")?;
    let key = redis.cli(&["KEYS", "fencedlease:v1:*:lease"])?;
    assert_eq!(redis.cli(&["DEL", key.trim()])?.trim(), "1");
    stage.until_lease("report", seconds(30), "the loss", |status| {
        status.last_loss.as_ref().filter(|loss| loss.fence == fence).map(|_| ())
    })?;
    Ok((holder, fence))
}

#[test]
fn of_the_failed_pods_that_losses_leave_the_newest_three_stay() -> Result<()> {
    let stage = Stage::open("left over")?;
    let redis = stage.redis_behind_proxy()?;
    stage.lease("report", &redis, &short())?;
    stage.start(&Workload::deployment("report").guarded_by("report"))?;
    let (mut lost, mut fence) = (Vec::new(), 0);
    for _ in 0..5 {
        let (pod, of_pod) = lose(&stage, &redis, fence)?;
        lost.push(pod.name().to_owned());
        fence = of_pod;
    }
    let kept: BTreeSet<String> = lost[2..].iter().cloned().collect();
    stage.eventually(seconds(60), "the newest three are the failed pods that are left", |stage| {
        let pods = stage.pods("app=report")?;
        let failed = pods.iter().filter(|pod| pod.phase() == "Failed").map(|pod| pod.name().to_owned());
        Ok((failed.collect::<BTreeSet<String>>() == kept).then_some(()))
    })?;
    let text = stage.pod(&lost[4])?.last_end("app")?.context("the container has not ended")?.message;
    assert!(text.contains("KeyGone"), "{text}");
    Ok(())
}

#[test]
fn the_operator_may_delete_pods_that_it_injected_and_no_others() -> Result<()> {
    let stage = Stage::open("deletes")?;
    stage.lease_of_installation("report", &short())?;
    stage.start(&Workload::pod("plain"))?;
    stage.start(&Workload::pod("guarded").guarded_by("report"))?;
    let operator = format!("--as=system:serviceaccount:{}:fencedlease-operator", chart::NAMESPACE);
    let text = stage.refused(&["delete", "pod", "plain", "--dry-run=server", &operator])?;
    assert!(text.contains("may delete only pods with the label fencedlease.dev/injected"), "{text}");
    stage.kubectl(&["delete", "pod", "guarded", "--dry-run=server", &operator])?;
    stage.kubectl(&["delete", "pod", "plain", "--dry-run=server"])?;
    Ok(())
}
