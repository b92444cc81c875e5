//! What of the user's runs in a pod besides the workload: exec probes, hooks, init containers, sessions. Each leaves
//! marks in a Redis that nothing of FencedLease reads: what ran, in which pod, with which fence.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result};
use fencedlease_end_to_end::timings::short;
use fencedlease_end_to_end::{Direction, Fault, Pod, RedisBehindProxy, Stage, Workload, matrix, seconds};
use k8s_openapi::api::core::v1::Event;
use serde_json::{Value, json};

/// What `/proc/uptime` rounds away.
const RESOLUTION: Duration = Duration::from_millis(10);

/// A command that leaves the mark `WHAT POD FENCE` and ends as asked.
fn marks(what: &str, then: &str) -> Value {
    let mark = format!(
        r#"printf 'RPUSH marks "{what} %s %s"\r\n' "$HOSTNAME" "$(cat /run/fencedlease/fence)" | timeout 1 nc "$REDIS_SERVICE_HOST" 6379 >/dev/null; {then}"#
    );
    json!(["sh", "-c", mark])
}

fn exec(what: &str) -> Value {
    json!({"exec": {"command": marks(what, "exit 0")}})
}

fn probe(what: &str) -> Value {
    let mut probe = exec(what);
    probe["periodSeconds"] = 1.into();
    probe["timeoutSeconds"] = 5.into();
    probe
}

/// One thing that ran.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Mark {
    what: String,
    pod: String,
    fence: i64,
}

/// Everything that ran, in the order of arrival.
fn read(redis: &RedisBehindProxy<'_>) -> Result<Vec<Mark>> {
    let printed = redis.cli(&["LRANGE", "marks", "0", "-1"])?;
    let parse = |line: &str| {
        let mut words = line.split_whitespace().map(str::to_owned);
        let (what, pod, fence) = (words.next()?, words.next()?, words.next()?.parse().ok()?);
        Some(Mark { what, pod, fence })
    };
    let lines = printed.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| parse(line).with_context(|| format!("a mark without a fence: {line:?}"))).collect()
}

/// Waits until a pod has left a mark, and gives it.
fn until_mark(stage: &Stage, redis: &RedisBehindProxy<'_>, pod: &str, what: &str) -> Result<Mark> {
    stage.eventually(seconds(30), &format!("{what} runs in pod {pod}"), |_| {
        Ok(read(redis)?.into_iter().find(|mark| mark.pod == pod && mark.what == what))
    })
}

/// The messages of a pod's events with this reason.
fn events(stage: &Stage, pod: &str, reason: &str) -> Result<Vec<String>> {
    let selector = format!("involvedObject.kind=Pod,involvedObject.name={pod},reason={reason}");
    let list: Value = stage.get(&["events", "--field-selector", &selector])?;
    let events: Vec<Event> = serde_json::from_value(list["items"].clone())?;
    Ok(events.into_iter().filter_map(|event| event.message).collect())
}

#[test]
fn a_standbys_probe_and_hook_are_asked_and_do_not_run() -> Result<()> {
    let stage = Stage::open("probes")?;
    let redis = stage.redis_behind_proxy()?;
    stage.lease("worker", &redis, &json!({}))?;
    let mut manifest = Workload::deployment("worker").guarded_by("worker").replicas(2).manifest();
    let container = manifest.pointer_mut("/spec/template/spec/containers/0").context("no container")?;
    // It passes while the container waits, so that the standby can wait warm.
    container["livenessProbe"] = probe("alive");
    container["readinessProbe"] = probe("ready");
    container["lifecycle"] = json!({"preStop": exec("pre-stop")});
    stage.apply(&manifest)?;

    let holder = stage.holder("worker", seconds(60))?;
    holder.until(seconds(30), "is Ready", Pod::is_ready)?;
    stage.until_standbys("worker", 1, seconds(30))?;
    let pods = stage.pods("app=worker")?;
    let standby = pods.iter().find(|pod| pod.uid() != holder.uid()).context("no standby")?;
    stage.eventually(seconds(60), "the standby's probe is asked", |stage| {
        let told = events(stage, standby.name(), "Unhealthy")?;
        let not_run = |text: &String| {
            text.contains("Readiness probe failed: not run: the container waits for the lease")
        };
        Ok(told.iter().any(not_run).then_some(()))
    })?;
    let standby = standby.again()?;
    assert!(!standby.is_ready());
    assert_eq!(standby.restarts("app")?, 0);

    standby.delete()?;
    stage.eventually(seconds(60), "the standby is gone", |stage| {
        let pods: Value = stage.get(&["pods", "--selector", "app=worker"])?;
        let pods = pods["items"].as_array().context("no list")?;
        Ok(pods.iter().all(|pod| pod["metadata"]["uid"] != standby.uid()).then_some(()))
    })?;
    assert_eq!(events(&stage, standby.name(), "FailedPreStopHook")?, Vec::<String>::new());

    let fence = stage.fence("worker")?;
    holder.delete()?;
    assert_eq!(until_mark(&stage, &redis, holder.name(), "pre-stop")?.fence, fence);
    let found = read(&redis)?;
    assert!(found.iter().all(|mark| mark.pod != standby.name()), "{found:?}");
    assert!(
        found.iter().filter(|mark| mark.pod == holder.name()).all(|mark| mark.fence == fence),
        "{found:?}"
    );
    Ok(())
}

/// A Job with an init container, every probe and a postStart hook.
fn job(name: &str) -> Result<Value> {
    let script = r#"trap '' TERM; echo "working with fence $FENCEDLEASE_FENCE"; while :; do sleep 0.2; done"#;
    let mut manifest = Workload::job(name).guarded_by("import").script(script).manifest();
    let spec = manifest.pointer_mut("/spec/template/spec").context("no pod")?;
    let mut first = spec["containers"][0].clone();
    first["name"] = "set-up".into();
    first["command"] = marks("set-up", "exit 0");
    drop(first.as_object_mut().and_then(|first| first.remove("args")));
    spec["initContainers"] = json!([first]);
    let app = &mut spec["containers"][0];
    for (key, what) in [("livenessProbe", "alive"), ("readinessProbe", "ready"), ("startupProbe", "started")]
    {
        app[key] = probe(what);
    }
    app["lifecycle"] = json!({"postStart": exec("post-start")});
    Ok(manifest)
}

fn only_pod<'a>(stage: &'a Stage, app: &str) -> Result<Pod<'a>> {
    stage.eventually(seconds(60), &format!("a pod of {app}"), |_| {
        Ok(stage.pods(&format!("app={app}"))?.into_iter().next())
    })
}

#[test]
fn init_container_probes_hook_and_sessions_run_under_one_fence_and_end_with_it() -> Result<()> {
    let stage = Stage::open("beside")?;
    let redis = stage.redis_behind_proxy()?;
    stage.lease("import", &redis, &short())?;
    stage.apply(&job("first")?)?;
    let first = stage.holder("import", seconds(60))?;
    let first = first.until(seconds(60), "is Ready", Pod::is_ready)?;
    stage.apply(&job("second")?)?;
    let second = only_pod(&stage, "second")?;
    stage.until_standbys("import", 1, seconds(60))?;
    let fence = stage.fence("import")?;
    for what in ["set-up", "post-start", "started", "ready", "alive"] {
        assert_eq!(until_mark(&stage, &redis, first.name(), what)?.fence, fence, "{what}");
    }
    let logs = first.logs("app")?;
    assert!(logs.contains(&format!("working with fence {fence}\n")), "{logs}");
    let before = read(&redis)?;
    assert_eq!(before[0].what, "set-up");
    assert!(before.iter().all(|mark| mark.pod == first.name()), "the standby ran something: {before:?}");

    let deaf = "trap '' TERM; (setsid sleep 1000 &); echo in; while :; do sleep 0.1; done";
    let mut session = first.exec_command("app", &["sh", "-c", deaf]);
    let mut session = session.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    stage.eventually(seconds(20), "the session's child", |_| {
        Ok(first.shell("app", "ps")?.contains("sleep 1000").then_some(()))
    })?;
    let (death, flag) = (first.watch_death("app", seconds(30))?, first.watch_flag(seconds(30))?);
    redis.set(&first, Fault::Drop { direction: Direction::Both })?;
    let (dead_at, flag) = (death.seen()?, flag.seen()?);
    let deadline = Duration::from_millis(flag.deadline_boottime_ms);
    assert!(dead_at + RESOLUTION < deadline, "dead at {dead_at:?}, deadline {deadline:?}");
    assert!(!session.wait()?.success());

    let next = stage.holder_above("import", fence, seconds(60))?;
    assert_eq!(next.uid(), second.uid());
    for what in ["set-up", "post-start", "alive"] {
        let mark = until_mark(&stage, &redis, next.name(), what)?;
        assert!(mark.fence > fence, "{mark:?}");
    }
    let fences: Vec<i64> = read(&redis)?.into_iter().map(|mark| mark.fence).collect();
    assert!(fences.is_sorted(), "a mark came after one with a greater fence: {fences:?}");
    matrix::shown(
        &[38],
        &format!(
            "an exec session with a daemon on a real Kubernetes, beside probes of every kind: none left {:?} before the deadline",
            deadline.saturating_sub(dead_at)
        ),
    )?;
    Ok(())
}

#[test]
fn an_init_container_of_a_deployment_runs_under_the_lease_and_again_after_it_failed() -> Result<()> {
    let stage = Stage::open("set-up")?;
    let redis = stage.redis_behind_proxy()?;
    stage.lease("shop", &redis, &json!({}))?;
    let mut manifest = Workload::deployment("shop").guarded_by("shop").manifest();
    let spec = manifest.pointer_mut("/spec/template/spec").context("no pod")?;
    let mut first = spec["containers"][0].clone();
    first["name"] = "set-up".into();
    drop(first.as_object_mut().and_then(|first| first.remove("args")));
    // Fails the first time, by what it finds in a volume of the pod.
    first["command"] = marks("set-up", "[ -e /data/tried ] && exit 0; touch /data/tried; exit 3");
    first["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    spec["initContainers"] = json!([first]);
    spec["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    stage.apply(&manifest)?;
    let pod = only_pod(&stage, "shop")?;
    let pod = pod.until(seconds(120), "is Ready", Pod::is_ready)?;
    let logs = stage.eventually(seconds(30), "the workload works", |_| {
        let logs = pod.logs("app")?;
        Ok(logs.contains("working with fence").then_some(logs))
    })?;
    let fence: i64 = logs
        .lines()
        .find_map(|line| line.strip_prefix("working with fence ")?.trim().parse().ok())
        .with_context(|| format!("no fence in {logs}"))?;
    let found = read(&redis)?;
    let fences: Vec<i64> = found.iter().map(|mark| mark.fence).collect();
    assert_eq!(fences.len(), 2, "{found:?}");
    assert!(fences[0] < fences[1], "the first failure ends its holding: {found:?}");
    assert_eq!(fences[1], fence, "its success hands the holding on: {found:?}, then {fence}");
    Ok(())
}
