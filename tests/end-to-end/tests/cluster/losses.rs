//! Losses that nobody planned: whatever ends the right to work, every process of the holder is dead before its
//! deadline, another pod follows with a greater fence, and the lost pod is replaced by a standby.

#![expect(clippy::disallowed_types, reason = "tests measure waits of their own, never a lease")]

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use fencedlease_crds::LastLoss;
use fencedlease_end_to_end::matrix::shown;
use fencedlease_end_to_end::timings::{GRACE, KILL_TO_DEADLINE, TTL, short};
use fencedlease_end_to_end::{Direction, Fault, NodeShell, Pod, RedisBehindProxy, Stage, Workload, seconds};
use fencedlease_wire::socket::LeaseView;
use serde_json::{Value, json};

/// What `/proc/uptime` rounds away.
const RESOLUTION: Duration = Duration::from_millis(10);

/// Ends only by SIGKILL.
const STUBBORN: &str = "trap '' TERM; while :; do sleep 0.2; done";

fn open<'a>(stage: &'a Stage, workload: &Workload) -> Result<RedisBehindProxy<'a>> {
    let redis = stage.redis_behind_proxy()?;
    stage.lease("report", &redis, &short())?;
    stage.start(workload)?;
    Ok(redis)
}

fn pair() -> Workload {
    Workload::deployment("report").guarded_by("report").replicas(2)
}

/// The holder, its fence and the one that waits.
fn both(stage: &Stage) -> Result<(Pod<'_>, i64, Pod<'_>)> {
    let holder = stage.holder("report", seconds(60))?;
    stage.until_standbys("report", 1, seconds(60))?;
    let fence = stage.fence("report")?;
    let standby = stage.pods("app=report")?.into_iter().find(|pod| pod.uid() != holder.uid());
    Ok((holder, fence, standby.context("there is no standby")?))
}

/// The deadline of a holder whose renewals are not confirmed any more.
fn deadline_told(holder: &Pod<'_>) -> Result<Duration> {
    match holder.lease("app")? {
        LeaseView::Active { kill_at_boottime_ms, .. } => {
            Ok(Duration::from_millis(kill_at_boottime_ms) + KILL_TO_DEADLINE)
        }
        other => bail!("it does not hold any more: {other:?}"),
    }
}

/// The same where the sidecar can say nothing, from what the lease still lasts in Redis; never too late. It is too
/// early by the time from one question to the other, which is long on a busy machine: the best of a few counts.
fn deadline_reckoned(stage: &Stage, holder: &Pod<'_>, redis: &RedisBehindProxy<'_>) -> Result<Duration> {
    // Asked of the node: the container may have ended by now.
    let node = NodeShell::on(stage, holder.node()?)?;
    let key = lease_key(redis)?;
    // How much longer a lease lasts in Redis than it is valid: ttl − (ttl / 1.2 − 0.5 s).
    let lasts_longer = TTL / 6 + Duration::from_millis(501);
    let reckon = || -> Result<Duration> {
        let now: f64 = node.run("cut -d' ' -f1 /proc/uptime", &[])?.trim().parse()?;
        let lasts: u64 = redis.cli(&["PTTL", key.trim()])?.trim().parse().context("no lease")?;
        Ok((Duration::try_from_secs_f64(now)? + Duration::from_millis(lasts)).saturating_sub(lasts_longer))
    };
    let first = reckon()?;
    // A lease that is gone by then has no say.
    Ok((0..2).filter_map(|_| reckon().ok()).fold(first, Duration::max))
}

fn lease_key(redis: &RedisBehindProxy<'_>) -> Result<String> {
    redis.cli(&["KEYS", "fencedlease:v1:*:lease"])
}

/// The states, such as `TT`, of a container's processes that run this program; a probe's may come and go beside them.
fn states(stage: &Stage, pod: &Pod<'_>, container: &str, program: &str) -> Result<String> {
    let script = r#"for pid; do cut -d')' -f2 "/proc/$pid/stat" | cut -c2; done"#;
    let mut processes = pod.processes(container)?;
    processes.retain(|process| process.name == program);
    let pids: Vec<String> = processes.iter().map(|it| it.pid.to_string()).collect();
    let pids: Vec<&str> = pids.iter().map(String::as_str).collect();
    Ok(NodeShell::on(stage, pod.node()?)?.run(script, &pids)?.split_whitespace().collect())
}

/// Holds the death to the deadline and says by how much it was kept, for rows of the fault matrix too.
#[track_caller]
fn in_time(
    what: &str,
    rows: &[u8],
    dead_at: Duration,
    deadline: Duration,
    noticed: Option<Duration>,
) -> Result<()> {
    let left = deadline.saturating_sub(dead_at);
    let outcome = match noticed {
        Some(noticed) => format!("noticed to dead {noticed:?}, {left:?} left to the deadline"),
        None => format!("nobody proved it to the sidecar; {left:?} left to the deadline"),
    };
    println!("{what}: {outcome}");
    assert!(dead_at + RESOLUTION < deadline, "{what}: dead at {dead_at:?}, deadline {deadline:?}");
    Ok(shown(rows, &format!("on Kubernetes: {outcome}"))?)
}

/// What the status says of the loss of this fence, once death is proven.
fn reported(stage: &Stage, holder: &Pod<'_>, fence: i64) -> Result<(LastLoss, Duration)> {
    let loss = stage.until_lease("report", seconds(20), "the loss and the proven death", |status| {
        status.last_loss.clone().filter(|loss| loss.dead_after_milliseconds.is_some())
    })?;
    assert_eq!((loss.pod_name.as_str(), loss.fence), (holder.name(), fence));
    let dead_after = loss.dead_after_milliseconds.context("not proven")?;
    Ok((loss, Duration::from_millis(u64::try_from(dead_after)?)))
}

/// Another pod follows with a greater fence; the lost one has ended with 195, and a new one is in its place. Either
/// of the two that are left may be the next holder: the new one may be there before the lease runs out.
fn follows_and_is_back(
    stage: &Stage,
    what: &str,
    lost: &Pod<'_>,
    fence: i64,
    standby: &Pod<'_>,
) -> Result<()> {
    let since = Instant::now();
    let next = stage.holder_above("report", fence, seconds(30))?;
    assert_ne!(next.uid(), lost.uid());
    let followed = since.elapsed();
    ended_as_lost(lost)?;
    let new = stage.eventually(seconds(40), "a new pod is guarded and one of the two waits", |_| {
        let mut pods = stage.pods("app=report")?;
        pods.retain(|pod| pod.uid() != lost.uid());
        let waits = |pod: &Pod<'_>| matches!(pod.lease("app"), Ok(LeaseView::Waiting { .. }));
        if pods.len() != 2 || !pods.iter().any(waits) {
            return Ok(None);
        }
        Ok(pods.into_iter().find(|pod| pod.uid() != standby.uid()))
    })?;
    stage.until_standbys("report", 1, seconds(20))?;
    println!("{what}: followed {followed:?} and replaced {:?} after the death was seen", since.elapsed());
    assert!(new.is_injected());
    Ok(())
}

fn ended_as_lost(lost: &Pod<'_>) -> Result<()> {
    let ended =
        lost.until(seconds(30), "has ended", |pod| pod.last_end("app").is_ok_and(|it| it.is_some()))?;
    let end = ended.last_end("app")?.context("no end")?;
    assert_eq!(end.exit_code, 195, "{end:?}");
    assert!(end.message.contains("lost"), "{end:?}");
    assert_eq!(ended.restarts("app")?, 0, "the container was started again after the loss");
    Ok(())
}

#[test]
fn of_two_replicas_one_holds_and_the_other_runs_nothing() -> Result<()> {
    let stage = Stage::open("pair")?;
    open(&stage, &pair().script("echo \"fence $FENCEDLEASE_FENCE\"; while sleep 0.2; do :; done"))?;
    let (holder, fence, standby) = both(&stage)?;

    let said = format!("fence {fence}");
    assert!(holder.logs("app")?.lines().any(|line| line == said), "in the environment");
    assert_eq!(holder.shell("app", "cat $FENCEDLEASE_DIR/fence")?.trim(), fence.to_string());
    let line = "curl -sS --unix-socket $FENCEDLEASE_SOCKET http://lease/v1/lease";
    let said: Value = serde_json::from_str(&holder.shell("app", line)?)?;
    assert_eq!((&said["state"], &said["fence"]), (&"ACTIVE".into(), &fence.into()));
    assert_eq!(said["resource"], format!("{}/report", stage.namespace()));
    assert!(holder.lost_flag("app")?.is_none());

    assert!(!standby.logs("app")?.lines().any(|line| line.starts_with("fence")));
    let names: Vec<String> = standby.processes("app")?.into_iter().map(|process| process.name).collect();
    assert_eq!(names, ["guard:waiting"], "nothing but the guard");
    assert!(standby.shell("app", "cat $FENCEDLEASE_DIR/fence").is_err(), "a standby has no fence");
    match standby.lease("app")? {
        LeaseView::Waiting { holder: name, .. } => assert_eq!(name.as_deref(), Some(holder.name())),
        other => bail!("the standby says {other:?}"),
    }
    assert!(holder.again()?.is_ready() && standby.again()?.is_ready());
    Ok(())
}

#[test]
fn a_holder_whose_renewals_are_dropped_is_dead_in_time_and_replaced() -> Result<()> {
    let stage = Stage::open("dropped")?;
    let redis = open(&stage, &pair())?;
    let (holder, fence, standby) = both(&stage)?;
    let (dead_at, flag) = redis.cut_off(&holder)?;
    assert_eq!(redis.snapshot()?.client(standby.address()?).dropped_request_bytes, 0);

    let (loss, noticed) = reported(&stage, &holder, fence)?;
    assert_eq!((flag.reason.as_str(), loss.reason.as_str()), ("RenewalTimeout", "RenewalTimeout"));
    assert_eq!(flag.resource, format!("{}/report", stage.namespace()));
    in_time("cut off", &[3], dead_at, Duration::from_millis(flag.deadline_boottime_ms), Some(noticed))?;
    follows_and_is_back(&stage, "cut off", &holder, fence, &standby)
}

#[test]
fn a_holder_whose_redis_hangs_is_dead_in_time_and_followed_when_it_goes_on() -> Result<()> {
    let stage = Stage::open("hangs")?;
    let redis = open(&stage, &pair())?;
    let (holder, fence, standby) = both(&stage)?;
    let (death, flag) = (holder.watch_death("app", seconds(30))?, holder.watch_flag(seconds(30))?);

    redis.freeze()?;
    assert_eq!(states(&stage, &redis.pod()?, "redis", "redis-server")?, "T");
    let (dead_at, flag) = (death.seen()?, flag.seen()?);
    assert_eq!(states(&stage, &redis.pod()?, "redis", "redis-server")?, "T", "it was frozen all the time");
    redis.thaw()?;

    let (loss, noticed) = reported(&stage, &holder, fence)?;
    assert_eq!((flag.reason.as_str(), loss.reason.as_str()), ("RenewalTimeout", "RenewalTimeout"));
    in_time("Redis hung", &[13], dead_at, Duration::from_millis(flag.deadline_boottime_ms), Some(noticed))?;
    follows_and_is_back(&stage, "Redis hung", &holder, fence, &standby)
}

#[test]
fn a_killed_sidecar_is_a_loss_that_its_successor_reports() -> Result<()> {
    let stage = Stage::open("sidecar-killed")?;
    let redis = open(&stage, &pair())?;
    let (holder, fence, standby) = both(&stage)?;
    let death = holder.watch_death("app", seconds(30))?;

    holder.signal("fencedlease", "KILL")?;
    let deadline = deadline_reckoned(&stage, &holder, &redis);
    let dead_at = death.seen()?;
    let restarted = holder.until(seconds(30), "the sidecar was killed", |pod| {
        // It may have ended once more since: the lost pod is replaced.
        pod.has_ended_with("fencedlease", 137).unwrap_or(false)
    })?;
    assert!(restarted.restarts("fencedlease")? >= 1);
    // Where the guard had to act before the new sidecar ran, nobody is left to prove the death to it; the node saw it.
    let loss = stage.until_lease("report", seconds(30), "the loss", |status| status.last_loss.clone())?;
    assert_eq!((loss.pod_name.as_str(), loss.fence), (holder.name(), fence));
    assert_eq!(loss.reason, "SidecarRestarted");
    let noticed = loss.dead_after_milliseconds.map(u64::try_from).transpose()?.map(Duration::from_millis);
    in_time("sidecar killed", &[31], dead_at, deadline?, noticed)?;
    follows_and_is_back(&stage, "sidecar killed", &holder, fence, &standby)
}

#[test]
fn a_stopped_sidecar_leaves_the_guard_to_act_alone_in_time() -> Result<()> {
    let stage = Stage::open("sidecar-stopped")?;
    let redis = open(&stage, &pair().script(STUBBORN))?;
    let (holder, fence, standby) = both(&stage)?;
    let death = holder.watch_death("app", seconds(30))?;

    holder.signal("fencedlease", "STOP")?;
    let stopped = states(&stage, &holder, "fencedlease", "fencedlease")?;
    assert!(!stopped.is_empty() && stopped.chars().all(|state| state == 'T'), "{stopped}");
    let deadline = deadline_reckoned(&stage, &holder, &redis)?;
    let dead_at = death.seen()?;
    in_time("sidecar stopped", &[30], dead_at, deadline, None)?;
    follows_and_is_back(&stage, "sidecar stopped", &holder, fence, &standby)
}

#[test]
fn a_lease_deleted_by_somebody_else_ends_the_work_without_grace() -> Result<()> {
    let stage = Stage::open("key-gone")?;
    let redis = open(&stage, &pair().replicas(1).script(STUBBORN))?;
    let holder = stage.holder("report", seconds(60))?;
    let fence = stage.fence("report")?;
    let (death, flag) = (holder.watch_death("app", seconds(30))?, holder.watch_flag(seconds(30))?);

    assert_eq!(redis.cli(&["DEL", lease_key(&redis)?.trim()])?.trim(), "1");
    let (dead_at, flag) = (death.seen()?, flag.seen()?);
    let (loss, noticed) = reported(&stage, &holder, fence)?;
    assert_eq!((flag.reason.as_str(), loss.reason.as_str()), ("KeyGone", "KeyGone"));
    in_time("key deleted", &[23], dead_at, Duration::from_millis(flag.deadline_boottime_ms), Some(noticed))?;
    assert!(noticed < GRACE, "{noticed:?} from the loss to the death: that was with grace");
    ended_as_lost(&holder)?;
    let next = stage.holder_above("report", fence, seconds(40))?;
    assert_ne!(next.uid(), holder.uid(), "the pod was to be replaced");
    Ok(())
}

/// Ignores SIGTERM; a grandchild that has left its session and lost its parent; and, once it may, a child whose
/// real user is root, out of reach of the guard's signals.
const HOSTILE: &str = r#"trap '' TERM
(setsid sh -c 'trap "" TERM; while :; do sleep 0.2; done' &)
until [ -u /busybox ]; do sleep 0.1; done
/busybox su root -c 'trap "" TERM; while :; do sleep 0.2; done' &
while :; do sleep 0.2; done"#;

/// Puts a setuid root program into the container from its node, and lets it be used without a password.
const GIVE_SETUID: &str = r#"cd "/proc/$1/root" && sed 's/^root:[^:]*:/root::/' etc/passwd >new && cat new >etc/passwd &&
cp bin/busybox new && chown 0:0 new && chmod 4755 new && mv new busybox"#;

#[test]
fn a_hostile_workload_with_a_setuid_child_is_dead_in_time_to_the_last_process() -> Result<()> {
    let stage = Stage::open("hostile")?;
    let user = json!({"securityContext": {"runAsUser": 10001}});
    let redis = open(&stage, &pair().script(HOSTILE).as_root().with_pod_spec(user))?;
    let (holder, fence, standby) = both(&stage)?;
    let guard = holder.processes("app")?.into_iter().find(|process| process.name.starts_with("guard:"));
    let guard = guard.context("there is no guard")?.pid.to_string();
    NodeShell::on(&stage, holder.node()?)?.run(GIVE_SETUID, &[&guard])?;
    stage.eventually(seconds(60), "a process of root that the workload's user cannot kill", |_| {
        let owners = holder.shell("app", "stat -c '%u %n' /proc/[0-9]* 2>/dev/null || :")?;
        let mut of_root = owners.lines().filter_map(|line| line.strip_prefix("0 /proc/"));
        // Its sleeps are short, and may be gone by now.
        let cannot_kill = |pid: &str| {
            let refused = holder.shell("app", &format!("kill -9 {pid}")).err();
            refused.is_some_and(|refused| format!("{refused:#}").contains("not permitted"))
        };
        Ok(of_root.any(cannot_kill).then_some(()))
    })?;
    let count = stage.eventually(seconds(20), "four processes or more", |_| {
        let count = holder.processes("app")?.len();
        Ok((count >= 4).then_some(count))
    })?;
    let (death, flag) = (holder.watch_death("app", seconds(30))?, holder.watch_flag(seconds(30))?);

    redis.set(&holder, Fault::Drop { direction: Direction::Both })?;
    redis
        .until_counted(&holder, seconds(10), "dropped bytes", |counted| counted.dropped_request_bytes > 0)?;
    let told = deadline_told(&holder);
    let (dead_at, flag) = (death.seen()?, flag.seen()?);
    let deadline = Duration::from_millis(flag.deadline_boottime_ms);
    if let Ok(told) = told {
        assert_eq!(told, deadline, "socket and flag tell one deadline");
    }
    let (_, noticed) = reported(&stage, &holder, fence)?;
    in_time(&format!("hostile, {count} processes"), &[37, 38], dead_at, deadline, Some(noticed))?;
    assert!(noticed >= GRACE, "it was to be killed after the grace, not {noticed:?} after the loss");
    follows_and_is_back(&stage, "hostile", &holder, fence, &standby)
}
