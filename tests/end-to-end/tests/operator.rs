//! What the operator tells of leases, and what goes on without it.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use fencedlease_crds::FencedLeaseStatus;
use fencedlease_end_to_end::{Direction, Fault, Pod, RedisBehindProxy, Stage, Workload, chart, seconds};
use fencedlease_wire::socket::LeaseView;
use serde_json::{Value, json};

/// What `/proc/uptime` rounds away.
const RESOLUTION: Duration = Duration::from_millis(10);
/// How often a holder that has nothing to tell is heard of, and some more, in milliseconds.
const STANDING: u64 = 11_000;

/// As short as the rules allow with room to spare on a busy machine.
fn short() -> Value {
    json!({"ttl": "8s", "renewTimeout": "500ms", "gracePeriod": "500ms", "killBudget": "1s", "commitMargin": "500ms"})
}

fn active(pod: &Pod<'_>) -> Result<(i64, u64)> {
    match pod.lease("app")? {
        LeaseView::Active { fence, kill_at_boottime_ms, .. } => {
            Ok((i64::try_from(fence.get())?, kill_at_boottime_ms))
        }
        other => bail!("{} does not hold: {other:?}", pod.name()),
    }
}

/// Drops what goes between the holder and Redis, and waits until its last process is dead, before the kill instant.
fn lose(redis: &RedisBehindProxy<'_>, holder: &Pod<'_>) -> Result<()> {
    let death = holder.watch_death("app", seconds(30))?;
    redis.set(holder, Fault::Drop { direction: Direction::Both })?;
    let deadline = Cell::new(Duration::ZERO);
    redis.until_counted(holder, seconds(15), "dropped bytes", |counted| {
        // The last one that was told before the renewal was dropped.
        if let Ok((_, kill_at)) = active(holder) {
            deadline.set(deadline.get().max(Duration::from_millis(kill_at)));
        }
        counted.dropped_request_bytes > 0
    })?;
    let (dead_at, deadline) = (death.seen()?, deadline.get());
    println!("dead {:?} before the kill instant", deadline.saturating_sub(dead_at));
    assert!(dead_at <= deadline + RESOLUTION, "dead at {dead_at:?}, to be killed at {deadline:?}");
    Ok(())
}

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

    lose(&redis, &holder)?;
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
    assert_eq!((now("OUTDATED"), now("TTL"), now("REASON")), ("0", "8s", "AsSpecified"));
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

    lose(&redis, &holder)?;
    let (next, _) = stage.eventually(seconds(30), "the standby holds", |_| Ok(active(standby).ok()))?;
    assert!(next > fence, "{next} follows {fence}");
    redis.heal()?;
    away.end()?;

    let now = stage.holder_above("report", fence, seconds(60))?;
    assert_eq!((now.name(), stage.fence("report")?), (standby.name(), next));
    stage.until_standbys("report", 1, seconds(120))?;
    stage.until_lease("report", seconds(60), "that it is held", |status| {
        (condition(status, "Held")? == ("True".to_owned(), "HolderActive".to_owned())).then_some(())
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
