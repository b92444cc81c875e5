//! `maxHold` ends a holding however healthy it is, and the work is warned before.

use std::io::Read as _;
use std::process::Stdio;

use anyhow::{Context as _, Result};
use fencedlease_end_to_end::timings::short;
use fencedlease_end_to_end::{Stage, WRITES_JOURNAL, Workload, seconds};
use fencedlease_wire::socket::LeaseView;
use serde_json::Value;

#[test]
fn a_healthy_holder_is_warned_and_ended_and_another_follows() -> Result<()> {
    let stage = Stage::open("max-hold")?;
    let redis = stage.redis_behind_proxy()?;
    let mut spec = short();
    spec["maxHold"] = "1m".into();
    spec["maxHoldWarning"] = "10s".into();
    stage.lease("report", &redis, &spec)?;
    stage.start(&Workload::deployment("report").guarded_by("report").replicas(2).script(WRITES_JOURNAL))?;
    let holder = stage.holder("report", seconds(60))?;
    let fence = stage.fence("report")?;
    // At once: its minute has begun.
    let death = holder.watch_death("app", seconds(90))?;
    let stream = ["curl", "-sSN", "--unix-socket", "/run/fencedlease/lease.sock", "http://lease/v1/events"];
    let mut listener = holder.exec_command("app", &stream).stdout(Stdio::piped()).spawn()?;
    let LeaseView::Active { max_hold_remaining_ms, .. } = holder.lease("app")? else {
        anyhow::bail!("the holder does not hold");
    };
    assert!(max_hold_remaining_ms <= 60_000, "{max_hold_remaining_ms} ms remain");
    stage.until_standbys("report", 1, seconds(40))?;

    death.seen()?;
    let next = stage.holder_above("report", fence, seconds(30))?;
    assert_ne!(next.uid(), holder.uid());
    let mut heard = String::new();
    listener.stdout.take().context("kubectl has no output")?.read_to_string(&mut heard)?;
    listener.wait()?;
    let warnings: Vec<Value> = heard
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|line: &Value| line["type"] == "maxHoldWarning")
        .collect();
    assert_eq!(warnings.len(), 1, "{heard}");
    let warned = warnings[0]["endsInMs"].as_u64().context("no time in the warning")?;
    assert!((8_000..=10_000).contains(&warned), "warned {warned} ms before");

    let ended =
        holder.until(seconds(30), "has ended", |pod| pod.last_end("app").is_ok_and(|end| end.is_some()))?;
    assert_eq!(ended.last_end("app")?.map(|end| end.exit_code), Some(196));
    let message = stage.until_event("report", "Released", &format!("fence {fence} "), seconds(10))?;
    assert!(message.contains("MaxHold"), "{message}");
    println!("maxHold: warned {warned} ms before; {message}");
    stage.until_standbys("report", 1, seconds(60))?;
    redis.journal()?.turns()?;
    Ok(())
}
