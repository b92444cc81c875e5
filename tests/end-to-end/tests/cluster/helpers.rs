//! What the other tests rely on: that their helpers see and do on a real cluster what they say.

use anyhow::Result;
use fencedlease_end_to_end::{Fault, Pod, Stage, Workload, seconds};

/// A shell, a child of it, and a grandchild that has left its session and lost its parent.
const FORKS: &str = "(setsid sleep 1000 &); sleep 1000 & trap 'exit 3' TERM; while sleep 0.1; do :; done";

fn start<'a>(stage: &'a Stage, workload: &Workload, name: &str) -> Result<Pod<'a>> {
    stage.start(workload)?;
    stage.pod(name)?.until(seconds(60), "runs", |pod| pod.phase() == "Running" && pod.is_ready())
}

fn ping(pod: &Pod<'_>) -> Result<String> {
    pod.shell("app", "printf 'PING\\r\\n' | timeout 2 nc redis 6379 | head -n 1")
}

#[test]
fn a_pod_is_read_asked_and_heard() -> Result<()> {
    let stage = Stage::without_operator("read")?;
    let pod = start(&stage, &Workload::pod("app").script("echo hello; exec sleep 1000"), "app")?;
    assert_eq!(pod.logs("app")?.trim(), "hello");
    assert_eq!(pod.shell("app", "id -u")?.trim(), "10001");
    assert!(!pod.is_injected());
    assert_eq!(pod.restarts("app")?, 0);
    assert!(pod.last_end("app")?.is_none());
    assert!(stage.cluster().nodes()?.contains(&pod.node()?.to_owned()));
    let message = stage.refused(&["create", "configmap", "-"])?;
    assert!(message.contains("Invalid value"), "{message}");
    Ok(())
}

#[test]
fn every_process_of_a_container_is_counted_and_its_death_is_seen_from_the_node() -> Result<()> {
    let stage = Stage::without_operator("death")?;
    let pod = start(&stage, &Workload::pod("app").script(FORKS), "app")?;
    let processes = pod.processes("app")?;
    let sleeping = processes.iter().filter(|process| process.name == "sleep").count();
    assert!(sleeping >= 2, "{processes:?}");

    let alive = pod.watch_death("app", seconds(1))?.seen().unwrap_err();
    assert!(alive.to_string().contains("alive"), "{alive:#}");

    let watch = pod.watch_death("app", seconds(30))?;
    let before: f64 = pod.shell("app", "cut -d' ' -f1 /proc/uptime")?.trim().parse()?;
    pod.signal("app", "KILL")?;
    let dead_at = watch.seen()?.as_secs_f64();
    assert!(dead_at >= before && dead_at < before + 10.0, "killed after {before}, seen dead at {dead_at}");
    let again =
        pod.until(seconds(30), "has ended once", |pod| pod.restarts("app").is_ok_and(|count| count == 1))?;
    assert_eq!(again.last_end("app")?.map(|end| end.exit_code), Some(137));
    Ok(())
}

#[test]
fn a_stopped_container_stays_and_goes_on() -> Result<()> {
    let stage = Stage::without_operator("stop")?;
    let script = "while sleep 0.1; do date +%s >/proc/1/fd/1; done";
    let pod = start(&stage, &Workload::pod("app").script(script), "app")?;
    pod.signal("app", "STOP")?;
    let stopped = pod.logs("app")?;
    std::thread::sleep(seconds(1));
    assert_eq!(pod.logs("app")?, stopped);
    pod.signal("app", "CONT")?;
    pod.until(seconds(10), "prints again", |pod| pod.logs("app").is_ok_and(|logs| logs != stopped))?;
    Ok(())
}

#[test]
fn the_proxy_cuts_one_pod_off_and_no_other() -> Result<()> {
    let stage = Stage::without_operator("cut")?;
    let redis = stage.redis_behind_proxy()?;
    let one = start(&stage, &Workload::pod("one"), "one")?;
    let other = start(&stage, &Workload::pod("other"), "other")?;
    for pod in [&one, &other] {
        stage
            .eventually(seconds(10), "Redis answers", |_| Ok((ping(pod)?.trim() == "+PONG").then_some(())))?;
    }
    let before = redis.snapshot()?.client(one.address()?);

    redis.set(&one, Fault::Cut)?;
    assert_eq!((ping(&one)?.trim(), ping(&other)?.trim()), ("", "+PONG"));
    let counted = redis.until_counted(&one, seconds(5), "a refusal", |counted| counted.refused == 1)?;
    assert_eq!(counted.connections, before.connections + 1);
    assert_eq!(redis.snapshot()?.client(other.address()?).refused, 0);

    redis.heal()?;
    assert_eq!(ping(&one)?.trim(), "+PONG");
    Ok(())
}

#[test]
fn a_frozen_redis_hangs_and_a_killed_one_forgets() -> Result<()> {
    let stage = Stage::without_operator("redis")?;
    let redis = stage.redis_behind_proxy()?;
    let pod = start(&stage, &Workload::pod("app"), "app")?;
    redis.cli(&["SET", "key", "value"])?;
    redis.freeze()?;
    assert_eq!(ping(&pod)?.trim(), "");
    redis.thaw()?;
    assert_eq!(redis.cli(&["GET", "key"])?.trim(), "value");
    redis.kill()?;
    let empty = stage.eventually(seconds(30), "Redis is back and empty", |_| {
        Ok(Some(redis.cli(&["DBSIZE"])?).filter(|answer| answer.trim() == "0"))
    })?;
    assert_eq!(empty.trim(), "0");
    Ok(())
}

#[test]
fn a_missed_deadline_shows_what_is_in_the_namespace() -> Result<()> {
    let stage = Stage::without_operator("missed")?;
    let pod = start(&stage, &Workload::pod("app").script("echo the last words; exec sleep 1000"), "app")?;
    let error = pod.until(seconds(1), "fails", |pod| pod.phase() == "Failed").unwrap_err();
    let text = format!("{error:#}");
    assert!(text.contains("pod app: fails"), "{text}");
    assert!(text.contains("the last words") && text.contains("Scheduled"), "{text}");
    Ok(())
}
