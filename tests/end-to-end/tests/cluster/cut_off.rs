//! A holder that is cut off from Redis: lost, dead before its deadline, followed, and replaced.

use std::time::Duration;

use anyhow::{Context as _, Result};
use fencedlease_end_to_end::{Stage, Workload, seconds};
use serde_json::json;

/// What `/proc/uptime` rounds away.
const RESOLUTION: Duration = Duration::from_millis(10);
/// From the kill instant to the deadline: killBudget of 2 s and the stall that is allowed for.
const KILL_TO_DEADLINE: Duration = Duration::from_millis(2500);

#[test]
fn a_holder_that_is_cut_off_is_dead_before_its_deadline_and_followed() -> Result<()> {
    let stage = Stage::open("cut-off")?;
    let redis = stage.redis_behind_proxy()?;
    stage.lease("report", &redis, &json!({"ttl": "15s"}))?;
    stage.start(&Workload::deployment("report").guarded_by("report").replicas(2))?;

    let holder = stage.holder("report", seconds(60))?;
    stage.until_standbys("report", 1, seconds(60))?;
    let fence = stage.fence("report")?;
    let started = format!("working with fence {fence}");
    assert!(holder.logs("app")?.lines().any(|line| line == started));
    assert_eq!(holder.shell("app", "cat /run/fencedlease/fence")?.trim(), fence.to_string());

    let (dead_at, flag) = redis.cut_off(&holder)?;
    let deadline = Duration::from_millis(flag.deadline_boottime_ms).saturating_sub(KILL_TO_DEADLINE);
    assert!(dead_at <= deadline + RESOLUTION, "dead at {dead_at:?}, to be killed at {deadline:?}");

    let next = stage.holder_above("report", fence, seconds(30))?;
    assert_ne!(next.uid(), holder.uid());
    let loss = stage.until_lease("report", seconds(10), "the loss", |status| status.last_loss.clone())?;
    assert_eq!((loss.pod_name.as_str(), loss.fence), (holder.name(), fence));
    let dead_after = loss.dead_after_milliseconds.context("death was not proven")?;
    println!(
        "lost to {}: dead {dead_after} ms after the loss was noticed, {:?} before the kill instant",
        loss.reason,
        deadline.saturating_sub(dead_at)
    );

    redis.heal()?;
    stage.until_standbys("report", 1, seconds(60))?;
    Ok(())
}
