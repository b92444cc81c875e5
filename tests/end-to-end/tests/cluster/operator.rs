//! What the operator tells of leases.

use std::time::Duration;

use anyhow::{Context as _, Result};
use fencedlease_crds::FencedLeaseStatus;
use fencedlease_end_to_end::timings::{KILL_TO_DEADLINE, short};
use fencedlease_end_to_end::{Stage, Workload, seconds};

/// What `/proc/uptime` rounds away.
const RESOLUTION: Duration = Duration::from_millis(10);

/// Status and reason of a condition.
fn condition(status: &FencedLeaseStatus, of: &str) -> Option<(String, String)> {
    let found = status.conditions.iter().find(|condition| condition.type_ == of)?;
    Some((found.status.clone(), found.reason.clone()))
}

/// The titles of a table and the words of its one row; what stands under no title is an error.
fn row(table: &str) -> Result<Vec<(String, String)>> {
    let mut lines = table.lines();
    let (titles, values) = (lines.next().context("no titles")?, lines.next().context("no row")?);
    let begins = |at: &usize| {
        let before = titles[..*at].chars().rev().take(2);
        !titles[*at..].starts_with(' ') && (*at == 0 || before.eq([' ', ' ']))
    };
    let starts: Vec<usize> = (0..titles.len()).filter(begins).collect();
    let cell = |line: &str, at: usize| {
        let end = starts.get(at + 1).copied().unwrap_or(line.len()).min(line.len());
        line.get(starts[at].min(line.len())..end).unwrap_or_default().trim().to_owned()
    };
    Ok((0..starts.len()).map(|at| (cell(titles, at), cell(values, at))).collect())
}

fn table(stage: &Stage, more: &[&str]) -> Result<Vec<(String, String)>> {
    let mut words = vec!["get", "fencedleases"];
    words.extend(more);
    row(&stage.kubectl(&words)?)
}

fn titles(row: &[(String, String)]) -> Vec<&str> {
    row.iter().map(|(title, _)| title.as_str()).collect()
}

fn value<'a>(row: &'a [(String, String)], title: &str) -> &'a str {
    row.iter().find(|(one, _)| one == title).map_or("", |(_, value)| value.as_str())
}

#[test]
fn kubectl_get_shows_the_holder_and_after_a_loss_what_became_of_it() -> Result<()> {
    let stage = Stage::open("shown")?;
    let redis = stage.redis_behind_proxy()?;
    stage.lease("report", &redis, &short())?;
    stage.start(&Workload::deployment("report").guarded_by("report").replicas(2))?;
    let holder = stage.holder("report", seconds(60))?;
    stage.until_standbys("report", 1, seconds(60))?;
    let fence = stage.fence("report")?;

    let shown = table(&stage, &[])?;
    let usual = ["NAME", "PHASE", "HOLDER", "FENCE", "HELD", "STANDBYS", "LAST LOSS", "READY", "AGE"];
    assert_eq!(titles(&shown), usual);
    let now = |title| value(&shown, title);
    assert_eq!((now("NAME"), now("PHASE"), now("HOLDER")), ("report", "Held", holder.name()));
    assert_eq!((now("FENCE"), now("STANDBYS")), (fence.to_string().as_str(), "1"));
    assert_eq!((now("LAST LOSS"), now("READY")), ("", "True"));
    assert!(now("HELD").ends_with('s') && now("AGE").ends_with('s'), "{shown:?}");
    let conditions = stage.until_lease("report", seconds(20), "Redis as connected", |status| {
        let of = |name| condition(status, name);
        (of("RedisReachable")?.1 == "Connected").then(|| {
            ["Ready", "Held", "RedisReachable", "FenceDurable", "PodsCurrent", "AdmissionOK"].map(of)
        })
    })?;
    let expected = [
        ("True", "AsSpecified"),
        ("True", "HolderActive"),
        ("True", "Connected"),
        ("False", "BestEffort"),
        ("True", "UpToDate"),
        ("True", "Admitted"),
    ];
    assert_eq!(conditions, expected.map(|(status, reason)| Some((status.to_owned(), reason.to_owned()))));
    let held = format!("{} holds {}/report with fence {fence}", holder.name(), stage.namespace());
    stage.until_event("report", "Acquired", &held, seconds(10))?;

    let (dead_at, flag) = redis.cut_off(&holder)?;
    let kill_at = Duration::from_millis(flag.deadline_boottime_ms).saturating_sub(KILL_TO_DEADLINE);
    assert!(dead_at <= kill_at + RESOLUTION, "dead at {dead_at:?}, to be killed at {kill_at:?}");
    let next = stage.holder_above("report", fence, seconds(30))?;
    let loss = stage.until_lease("report", seconds(20), "the loss and the death", |status| {
        status.last_loss.clone().filter(|loss| loss.dead_after_milliseconds.is_some())
    })?;
    println!("lost to {}: dead {:?} ms after it was noticed", loss.reason, loss.dead_after_milliseconds);
    assert_eq!((loss.pod_name.as_str(), loss.fence), (holder.name(), fence));

    let shown = table(&stage, &["--output=wide"])?;
    let wide = ["NODE", "WORKLOAD", "LOSS REASON", "OUTDATED", "TTL", "REASON"];
    assert_eq!(titles(&shown), [&usual[..], &wide[..]].concat());
    let now = |title| value(&shown, title);
    assert_eq!((now("PHASE"), now("HOLDER"), now("NODE")), ("Held", next.name(), next.node()?));
    assert!(now("LAST LOSS").ends_with('s'), "{shown:?}");
    assert_eq!((now("WORKLOAD"), now("LOSS REASON")), ("report", loss.reason.as_str()));
    assert_eq!((now("OUTDATED"), now("TTL"), now("REASON")), ("0", "10s", "AsSpecified"));
    let words = format!("{} lost fence {fence}: {}", holder.name(), loss.reason);
    let event = stage.until_event("report", "Lost", &words, seconds(10))?;
    println!("{event}");
    assert!(event.contains("All processes dead") && event.contains("before the deadline"), "{event}");
    let on_the_pod = format!("involvedObject.name={},reason=Lost", holder.name());
    stage.eventually(seconds(10), "the pod has the event too", |stage| {
        let events = stage.kubectl(&["get", "events", "--field-selector", &on_the_pod])?;
        Ok(events.contains("Warning").then_some(()))
    })
}
