//! The planned ends of a holding: whatever ends it, the lease is released once the workload is dead, and the
//! next holder has a greater fence and never works beside the one before.

#![expect(clippy::disallowed_types, reason = "tests measure waits of their own, never a lease")]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use fencedlease_crds::Phase;
use fencedlease_end_to_end::matrix::shown;
use fencedlease_end_to_end::timings::{TTL, short};
use fencedlease_end_to_end::{NodeShell, Pod, RedisBehindProxy, Stage, WRITES_JOURNAL, Workload, seconds};
use fencedlease_wire::socket::LeaseView;

fn journalist(name: &str) -> Workload {
    Workload::deployment(name).guarded_by(name).script(WRITES_JOURNAL)
}

/// The last word of the keys that a lease has in Redis, such as `lease` and `clean`.
fn keys(redis: &RedisBehindProxy<'_>) -> Result<Vec<String>> {
    let listed = redis.cli(&["KEYS", "fencedlease:v1:*"])?;
    let last = |key: &str| key.trim().rsplit(':').next().unwrap_or_default().to_owned();
    let mut keys: Vec<String> = listed.lines().filter(|key| !key.trim().is_empty()).map(last).collect();
    keys.sort_unstable();
    Ok(keys)
}

/// Waits until nobody wants the lease, and holds Redis to it: no lease, the mark of a clean end.
fn until_idle(stage: &Stage, lease: &str, redis: &RedisBehindProxy<'_>) -> Result<()> {
    stage.until_lease(lease, seconds(30), "phase Idle", |status| {
        (status.phase == Some(Phase::Idle) && status.holder.is_none()).then_some(())
    })?;
    let keys = keys(redis)?;
    assert!(keys.contains(&"clean".to_owned()) && !keys.contains(&"lease".to_owned()), "{keys:?}");
    Ok(())
}

/// What Redis is told, by its own clock.
struct Monitor(Child, BufReader<std::process::ChildStdout>);

impl Monitor {
    fn begin(redis: &RedisBehindProxy<'_>) -> Result<Self> {
        let mut command = redis.pod()?.exec_command("redis", &["redis-cli", "-p", "6380", "MONITOR"]);
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(process.stdout.take().context("kubectl has no output")?);
        let mut first = String::new();
        lines.read_line(&mut first)?;
        assert_eq!(first.trim(), "OK");
        Ok(Self(process, lines))
    }

    /// From the release to the first write of the next workload.
    fn release_to_write(mut self, fence: i64) -> Result<Duration> {
        self.0.kill()?;
        let mut text = String::new();
        self.1.read_to_string(&mut text)?;
        self.0.wait()?;
        let at = |what: &dyn Fn(&str) -> bool| -> Option<f64> {
            text.lines().find(|line| what(&line.to_lowercase()))?.split(' ').next()?.parse().ok()
        };
        let released = at(&|line| line.contains("lua]") && line.contains("\"del\""));
        let wrote =
            at(&|line| line.contains("\"rpush\" \"journal\"") && line.contains(&format!("\"{fence}\"")));
        let (released, wrote) = released.zip(wrote).with_context(|| format!("not both are in {text}"))?;
        Ok(Duration::try_from_secs_f64(wrote - released)?)
    }
}

/// The pid on the node of the workload's shell, whose parent is the guard.
fn shell_of(pod: &Pod<'_>) -> Result<String> {
    let processes = pod.processes("app")?;
    let shells = processes.iter().filter(|process| process.name == "sh");
    // The oldest; a pipe's part may be a second one for a moment.
    let pid = shells.map(|process| process.pid).min().context("no shell runs in the container")?;
    Ok(pid.to_string())
}

/// SIGKILL to the workload, past the guard. Gives when.
fn crash(stage: &Stage, pod: &Pod<'_>) -> Result<Instant> {
    // Held again is a word of the sidecar; the shell, and the container's number in the pod's status, come after it.
    let shell =
        stage.eventually(seconds(30), "the workload's shell runs", |_| Ok(shell_of(&pod.again()?).ok()))?;
    let node = NodeShell::on(stage, pod.node()?)?;
    let at = Instant::now();
    node.run(r#"kill -9 "$1""#, &[&shell])?;
    Ok(at)
}

#[test]
fn a_deleted_holder_hands_over_without_waiting_for_expiry() -> Result<()> {
    let stage = Stage::open("deleted")?;
    let redis = stage.redis_behind_proxy()?;
    stage.lease("report", &redis, &short())?;
    stage.start(&journalist("report").replicas(2))?;
    let holder = stage.holder("report", seconds(60))?;
    stage.until_standbys("report", 1, seconds(60))?;
    let fence = stage.fence("report")?;

    let death = holder.watch_death("app", seconds(30))?;
    let monitor = Monitor::begin(&redis)?;
    let asked = Instant::now();
    holder.delete()?;
    death.seen()?;
    let next = stage.holder_above("report", fence, seconds(30))?;
    let seen = asked.elapsed();
    let next_fence = stage.fence("report")?;
    stage.eventually(seconds(10), "the next workload writes", |_| {
        Ok(redis.journal()?.has(next_fence).then_some(()))
    })?;
    assert_ne!(next.uid(), holder.uid());
    let gap = monitor.release_to_write(next_fence)?;
    let words = stage.until_event("report", "HandedOver", &format!("fence {fence} →"), seconds(10))?;
    println!(
        "deleted: {words}; release to the next workload's first write {gap:?}; seen {seen:?} after the order"
    );
    assert!(gap < TTL / 4, "the next one began {gap:?} after the release");
    assert_eq!(redis.journal()?.turns()?, [fence, next_fence]);
    let message = stage.until_event("report", "Released", &format!("fence {fence} "), seconds(10))?;
    assert!(message.contains("PodDeleted"), "{message}");
    assert_eq!(stage.read_lease("report")?.status.and_then(|status| status.last_loss), None);
    let outcome =
        format!("on Kubernetes, a deleted pod: {gap:?} from the release to the next one's first write");
    Ok(shown(&[55], &outcome)?)
}

#[test]
fn scaled_to_zero_a_lease_is_released_and_its_fence_goes_on() -> Result<()> {
    let stage = Stage::open("scaled")?;
    let redis = stage.redis_behind_proxy()?;
    stage.lease("report", &redis, &short())?;
    stage.start(&journalist("report").replicas(2))?;
    stage.holder("report", seconds(60))?;
    stage.until_standbys("report", 1, seconds(60))?;
    let fence = stage.fence("report")?;
    assert!(keys(&redis)?.contains(&"lease".to_owned()));

    stage.kubectl(&["scale", "deployment/report", "--replicas=0"])?;
    stage.until_no_pods("app=report", seconds(30))?;
    until_idle(&stage, "report", &redis)?;

    stage.kubectl(&["scale", "deployment/report", "--replicas=1"])?;
    stage.holder_above("report", fence, seconds(60))?;
    redis.journal()?.turns()?;
    Ok(())
}

#[test]
fn a_container_that_crashes_comes_back_with_a_greater_fence_and_never_beside_another() -> Result<()> {
    let stage = Stage::open("crashed")?;
    let redis = stage.redis_behind_proxy()?;
    stage.lease("report", &redis, &short())?;
    stage.start(&journalist("report"))?;
    let alone = stage.holder("report", seconds(60))?;
    let first = stage.fence("report")?;
    let crashed = crash(&stage, &alone)?;
    let again = stage.holder_above("report", first, seconds(30))?;
    let second = stage.fence("report")?;
    println!("crashed alone: held again {:?} later, fence {first} → {second}", crashed.elapsed());
    assert_eq!(again.uid(), alone.uid(), "its own container was to come back");
    let back =
        again.until(seconds(30), "runs again", |pod| pod.restarts("app").is_ok_and(|count| count == 1))?;
    assert_eq!(back.last_end("app")?.map(|end| end.exit_code), Some(137));

    stage.kubectl(&["scale", "deployment/report", "--replicas=2"])?;
    stage.until_standbys("report", 1, seconds(60))?;
    let crashed = crash(&stage, &back)?;
    let other = stage.holder_above("report", second, seconds(30))?;
    println!("crashed with a standby: followed {:?} later", crashed.elapsed());
    assert_ne!(other.uid(), back.uid());
    stage.until_standbys("report", 1, seconds(60))?;
    let third = stage.fence("report")?;
    stage
        .eventually(seconds(10), "the last one writes", |_| Ok(redis.journal()?.has(third).then_some(())))?;
    assert_eq!(redis.journal()?.turns()?, [first, second, third]);
    assert_eq!(stage.read_lease("report")?.status.and_then(|status| status.last_loss), None);
    Ok(())
}

#[test]
fn an_application_steps_down_over_the_socket() -> Result<()> {
    let stage = Stage::open("steps-down")?;
    let redis = stage.redis_behind_proxy()?;
    stage.lease("report", &redis, &short())?;
    stage.start(&journalist("report").replicas(2))?;
    let holder = stage.holder("report", seconds(60))?;
    stage.until_standbys("report", 1, seconds(60))?;
    let fence = stage.fence("report")?;
    let standby = stage.pods("app=report")?.into_iter().find(|pod| pod.uid() != holder.uid());
    let standby = standby.context("there is no standby")?;
    assert!(matches!(holder.lease("app")?, LeaseView::Active { ending: None, .. }));

    // It counts as a standby once its sidecar has spoken; its container may come a moment later.
    let (status, body) = stage.eventually(seconds(30), "the standby's container runs", |_| {
        Ok(standby.ask("app", "POST", "/v1/step-down", "").ok())
    })?;
    assert_eq!(status, 409, "{body}");
    let death = holder.watch_death("app", seconds(30))?;
    match holder.ask("app", "POST", "/v1/step-down", "") {
        Ok((status, body)) => assert_eq!(status, 202, "{body}"),
        // The one who asks is in the container, and may be killed with it before it has told the answer.
        Err(error) => assert!(format!("{error:#}").contains("exit code 137"), "{error:#}"),
    }
    death.seen()?;
    let next = stage.holder_above("report", fence, seconds(30))?;
    assert_eq!(next.uid(), standby.uid());
    let ended =
        holder.until(seconds(30), "has ended", |pod| pod.last_end("app").is_ok_and(|end| end.is_some()))?;
    let end = ended.last_end("app")?.context("no end")?;
    assert_eq!(end.exit_code, 196, "{end:?}");
    let message = stage.until_event("report", "Released", &format!("fence {fence} "), seconds(10))?;
    assert!(message.contains("StepDown"), "{message}");
    println!("stepped down: {message}; {}", end.message);
    stage.until_standbys("report", 1, seconds(60))?;
    redis.journal()?.turns()?;
    Ok(())
}

#[test]
fn a_job_that_completes_releases_and_takes_its_sidecar_along() -> Result<()> {
    let stage = Stage::open("job")?;
    let redis = stage.redis_behind_proxy()?;
    stage.lease("report", &redis, &short())?;
    let script = "printf 'RPUSH journal %s\\r\\n' \"$FENCEDLEASE_FENCE\" | timeout 1 nc redis 6379; sleep 2";
    stage.start(&Workload::job("report").guarded_by("report").script(script))?;
    let worker = stage.holder("report", seconds(60))?;
    let fence = stage.fence("report")?;

    stage.kubectl(&["wait", "job/report", "--for=condition=complete", "--timeout=180s"])?;
    let ended = worker.again()?;
    assert_eq!(ended.phase(), "Succeeded");
    assert_eq!(ended.last_end("app")?.map(|end| end.exit_code), Some(0));
    assert_eq!(ended.last_end("fencedlease")?.map(|end| end.exit_code), Some(0));
    until_idle(&stage, "report", &redis)?;
    assert_eq!(redis.journal()?.turns()?, [fence]);
    let message = stage.until_event("report", "Released", &format!("fence {fence} "), seconds(10))?;
    assert!(message.contains("WorkloadEnded"), "{message}");
    Ok(())
}

#[test]
fn a_bare_pod_is_guarded_and_releases_when_it_is_deleted() -> Result<()> {
    let stage = Stage::open("bare")?;
    let redis = stage.redis_behind_proxy()?;
    stage.lease("report", &redis, &short())?;
    stage.start(&Workload::pod("report").guarded_by("report").script(WRITES_JOURNAL))?;
    let pod = stage.holder("report", seconds(60))?;
    assert_eq!(pod.name(), "report");
    assert!(pod.is_injected());
    let fence = stage.fence("report")?;
    pod.until(seconds(10), "works", |pod| {
        let line = format!("working with fence {fence}");
        pod.logs("app").is_ok_and(|logs| logs.lines().any(|shown| shown == line))
    })?;

    let first = pod.uid().to_owned();
    pod.delete()?;
    stage.until_no_pods("app=report", seconds(30))?;
    until_idle(&stage, "report", &redis)?;
    stage.start(&Workload::pod("report").guarded_by("report").script(WRITES_JOURNAL))?;
    let next = stage.holder_above("report", fence, seconds(60))?;
    assert_ne!(next.uid(), first);
    redis.journal()?.turns()?;
    Ok(())
}
