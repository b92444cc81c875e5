//! A cold standby: its container has a liveness probe, which would kill it while it waits, so it does not exist
//! before the pod has the lease.

#![expect(clippy::disallowed_types, reason = "tests measure waits of their own, never a lease")]

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use fencedlease_end_to_end::timings::short;
use fencedlease_end_to_end::{Direction, Fault, Pod, Stage, Workload, seconds};
use serde_json::{Value, json};

/// What `/proc/uptime` rounds away.
const RESOLUTION: Duration = Duration::from_millis(10);

const SERVES: &str =
    r#"echo "serving with fence $FENCEDLEASE_FENCE"; exec httpd -f -p 8080 -h /run/fencedlease"#;

/// A web server that is killed where it does not answer for two seconds.
fn server() -> Result<Value> {
    let workload = Workload::deployment("server").guarded_by("server").replicas(2).script(SERVES);
    let mut manifest = workload.manifest();
    let container = manifest.pointer_mut("/spec/template/spec/containers/0").context("no container")?;
    container["livenessProbe"] =
        json!({"httpGet": {"path": "/fence", "port": 8080}, "periodSeconds": 1, "failureThreshold": 2});
    Ok(manifest)
}

/// The column STATUS of `kubectl get pods`.
fn shown(stage: &Stage, pod: &Pod<'_>) -> Result<String> {
    let line = stage.kubectl(&["get", "pod", pod.name(), "--no-headers"])?;
    Ok(line.split_whitespace().nth(2).unwrap_or_default().to_owned())
}

/// The pod that waits, once it is seen to.
fn cold_standby<'a>(stage: &'a Stage, holder: &Pod<'_>) -> Result<Pod<'a>> {
    stage.eventually(seconds(60), "a cold standby waits", |_| {
        let mut pods = stage.pods("app=server")?;
        pods.retain(|pod| pod.uid() != holder.uid() && pod.phase() == "Pending");
        let Some(pod) = pods.pop() else { return Ok(None) };
        Ok((shown(stage, &pod)? == "Init:0/1" && !pod.is_ready()).then_some(pod))
    })
}

#[test]
fn a_cold_standby_shows_init_follows_a_deleted_holder_and_a_lost_one_is_replaced() -> Result<()> {
    let stage = Stage::open("cold")?;
    let redis = stage.redis_behind_proxy()?;
    stage.lease("server", &redis, &short())?;
    stage.apply(&server()?)?;
    let first = stage.holder("server", seconds(60))?;
    first.until(seconds(30), "is Ready", Pod::is_ready)?;
    let standby = cold_standby(&stage, &first)?;
    assert!(standby.container_id("app").is_err(), "its container was not to exist");
    stage.until_standbys("server", 1, seconds(30))?;
    let fence = stage.fence("server")?;

    let deleted = Instant::now();
    first.delete()?;
    let second = stage.holder_above("server", fence, seconds(30))?;
    // The standby, or the pod that was made in the first one's place: they compete.
    assert_ne!(second.uid(), first.uid());
    let second =
        second.until(seconds(30), "runs and is Ready", |pod| pod.phase() == "Running" && pod.is_ready())?;
    println!("cold: deleted to the next one Ready in {:?}", deleted.elapsed());
    let fence = stage.fence("server")?;
    let (logs, line) = (second.logs("app")?, format!("serving with fence {fence}"));
    assert!(logs.lines().any(|shown| shown == line), "{logs}");

    cold_standby(&stage, &second)?;
    let (death, flag) = (second.watch_death("app", seconds(30))?, second.watch_flag(seconds(30))?);
    redis.set(&second, Fault::Drop { direction: Direction::Both })?;
    redis
        .until_counted(&second, seconds(15), "dropped bytes", |counted| counted.dropped_request_bytes > 0)?;
    let (dead_at, flag) = (death.seen()?, flag.seen()?);
    let deadline = Duration::from_millis(flag.deadline_boottime_ms);
    assert!(dead_at + RESOLUTION < deadline, "dead at {dead_at:?}, deadline {deadline:?}");
    let next = stage.holder_above("server", fence, seconds(30))?;
    assert_ne!(next.uid(), second.uid());
    let message = stage.until_event("server", "Lost", &format!("lost fence {fence}:"), seconds(10))?;
    assert!(message.contains("before the deadline"), "{message}");
    println!("cold: {message}; seen dead {:?} before the deadline", deadline.saturating_sub(dead_at));
    let replaced = cold_standby(&stage, &next)?;
    assert_ne!(replaced.uid(), second.uid());
    redis.heal()?;
    Ok(())
}
