//! How the password of Redis comes to sidecars, and where it must not be seen.

use anyhow::{Context as _, Result};
use fencedlease_end_to_end::{NodeShell, Pod, RedisBehindProxy, Stage, Workload, chart, seconds};
use serde_json::{Value, json};

/// The environment of every process of a container, as its node sees it.
fn environment(stage: &Stage, pod: &Pod<'_>, container: &str) -> Result<String> {
    let shell = NodeShell::on(stage, pod.node()?)?;
    let processes = pod.processes(container)?;
    assert!(!processes.is_empty(), "no process in {container}");
    let files: Vec<String> =
        processes.iter().map(|process| format!("/proc/{}/environ", process.pid)).collect();
    shell.run(r#"cat "$@" 2>/dev/null | tr '\0' '\n'"#, &files.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Fails if the password can be read in the pod's object, in the environment or in the logs.
fn assert_hidden(stage: &Stage, pod: &Pod<'_>, password: &str) -> Result<()> {
    let object = stage.kubectl(&["get", "pod", pod.name(), "--output=yaml"])?;
    assert!(!object.contains(password), "the password stands in the pod");
    let logs = stage.kubectl(&["logs", pod.name(), "--all-containers"])?;
    assert!(!logs.contains(password), "the password stands in a log");
    for container in ["app", "fencedlease"] {
        let environment = environment(stage, pod, container)?;
        assert!(environment.contains("PATH="), "{container} has no environment");
        assert!(!environment.contains(password), "the password stands in the environment of {container}");
    }
    Ok(())
}

#[test]
fn the_password_of_the_installations_redis_comes_from_the_operator_and_is_seen_nowhere() -> Result<()> {
    let stage = Stage::open("shared")?;
    let in_system = |words: &[&str]| -> Result<String> {
        let mut all = vec!["--namespace", chart::NAMESPACE];
        all.extend(words);
        Ok(stage.cluster().kubectl().run(&all)?)
    };
    let read = "--output=go-template={{.data.password | base64decode}}";
    let password = in_system(&["get", "secret", "fencedlease-redis", read])?;
    assert_eq!(password.len(), 32, "a password of 128 bits");
    let redis = |line: &str| in_system(&["exec", "deployment/fencedlease-redis", "--", "sh", "-c", line]);
    assert!(redis("redis-cli ping 2>&1")?.contains("NOAUTH"));

    stage.lease_of_installation("report", &Value::Null)?;
    stage.start(&Workload::deployment("report").guarded_by("report"))?;
    let holder = stage.holder("report", seconds(60))?;
    let keys = redis("REDISCLI_AUTH=$(cat /secret/password) redis-cli --scan")?;
    let key = format!("/{}/report}}:lease", stage.namespace());
    assert!(keys.contains(&key), "{key} is not among {keys}");
    assert_hidden(&stage, &holder, &password)?;
    let object = serde_json::to_string(holder.object())?;
    assert!(!object.contains("fencedlease-redis\""), "the pod mounts a Secret of another namespace");
    Ok(())
}

fn lease_with_secret(stage: &Stage, redis: &RedisBehindProxy<'_>, name: &str, secret: &str) -> Result<()> {
    stage.apply(&json!({
        "apiVersion": "fencedlease.dev/v1alpha1", "kind": "FencedLease", "metadata": {"name": name},
        "spec": {"redis": {"addresses": [redis.address()], "auth": {"secretRef": {"name": secret}}}},
    }))?;
    Ok(())
}

#[test]
fn a_redis_of_its_own_has_a_secret_of_its_own_and_a_wrong_password_is_said() -> Result<()> {
    const PASSWORD: &str = "correct-horse-battery";
    let stage = Stage::open("own")?;
    let redis = stage.redis_behind_proxy()?;
    redis.cli(&["CONFIG", "SET", "requirepass", PASSWORD])?;
    for (secret, password) in [("redis-shop", PASSWORD), ("redis-wrong", "staple")] {
        stage.apply(&json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret},
            "stringData": {"password": password},
        }))?;
    }
    lease_with_secret(&stage, &redis, "report", "redis-shop")?;
    lease_with_secret(&stage, &redis, "wrong", "redis-wrong")?;
    stage.start(&Workload::deployment("report").guarded_by("report"))?;
    stage.start(&Workload::deployment("wrong").guarded_by("wrong"))?;

    let holder = stage.holder("report", seconds(60))?;
    let spec = holder.object().spec.as_ref().context("no spec")?;
    let volumes = serde_json::to_string(&spec.volumes)?;
    assert!(volumes.contains("\"redis-shop\""), "the pod does not mount its own Secret: {volumes}");
    let app = spec.containers.iter().find(|container| container.name == "app").context("no app")?;
    let mounts = app.volume_mounts.iter().flatten().map(|mount| mount.name.as_str()).collect::<Vec<_>>();
    assert!(!mounts.iter().any(|name| name.contains("credentials")), "the application mounts {mounts:?}");
    assert_hidden(&stage, &holder, PASSWORD)?;

    let message = stage.until_lease("wrong", seconds(60), "that Redis refuses the password", |status| {
        let of = |name: &str| status.conditions.iter().find(|condition| condition.type_ == name);
        let (redis, ready) = (of("RedisReachable")?, of("Ready")?);
        let said = [redis, ready].iter().all(|it| it.status == "False" && it.reason == "AuthFailed");
        said.then(|| redis.message.clone())
    })?;
    println!("{message}");
    assert!(
        message.ends_with("See that the Secret's username and password are those that Redis accepts."),
        "{message}"
    );
    assert_eq!(stage.read_lease("wrong")?.status.and_then(|status| status.holder), None);
    Ok(())
}
