//! Pods as people write them: each is guarded and works, or is refused with what to change.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use fencedlease_end_to_end::timings::short;
use fencedlease_end_to_end::{Stage, Workload, seconds};
use serde_json::{Value, json};

const IMAGE: &str = "fencedlease.dev/busybox:dev";

fn pod(name: &str) -> Workload {
    Workload::pod(name).guarded_by(name)
}

/// Starts each pod with a lease of its own, and waits until each of these containers says its fence.
fn all_work(stage: &Stage, pods: &[(Workload, &[&str])]) -> Result<()> {
    let mut names = Vec::new();
    for (workload, _) in pods {
        let manifest = workload.manifest();
        let name = manifest["metadata"]["name"].as_str().context("no name")?.to_owned();
        stage.lease_of_installation(&name, &short())?;
        stage.apply(&manifest).with_context(|| name.clone())?;
        names.push(name);
    }
    for (name, (_, containers)) in names.iter().zip(pods) {
        let holder = stage.holder(name, seconds(90))?;
        for container in *containers {
            stage.eventually(seconds(30), &format!("{container} of {name} works"), |_| {
                Ok(holder.logs(container)?.contains("working with fence 1").then_some(()))
            })?;
        }
        stage.kubectl(&["delete", "pod", name, "--wait=false"])?;
    }
    Ok(())
}

/// A container that is no part of the work, in the form that *restricted* asks for.
fn another(name: &str) -> Value {
    json!({
        "name": name, "image": IMAGE, "imagePullPolicy": "IfNotPresent", "command": ["sleep", "1000"],
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
    })
}

#[test]
fn several_containers_other_sidecars_and_every_user_are_guarded() -> Result<()> {
    let stage = Stage::open("written")?;
    let two = |name: &str| {
        let mut spec = pod(name).manifest()["spec"].clone();
        let mut second = spec["containers"][0].clone();
        second["name"] = "worker".into();
        spec["containers"].as_array_mut().into_iter().for_each(|all| all.push(second.clone()));
        pod(name).with_pod_spec(json!({"containers": spec["containers"]}))
    };
    let sidecars = |names: &[&str]| {
        let proxies = names.iter().map(|name| {
            let mut proxy = another(name);
            proxy["restartPolicy"] = "Always".into();
            proxy
        });
        json!({"initContainers": proxies.collect::<Vec<_>>()})
    };
    let user = |uid: u32| json!({"securityContext": {"runAsUser": uid, "runAsGroup": uid, "fsGroup": 2000}});
    let on_node = json!({"hostNetwork": true, "dnsPolicy": "ClusterFirstWithHostNet"});
    all_work(
        &stage,
        &[
            (two("two-containers"), &["app", "worker"]),
            (two("one-of-two").annotated("containers", "worker"), &["worker"]),
            (pod("sidecars").with_pod_spec(sidecars(&["proxy", "logger"])), &["app"]),
            (pod("openshift-user").with_pod_spec(user(1_000_660_000)), &["app"]),
            (pod("sidecars-user").with_pod_spec(user(65532)), &["app"]),
            (pod("root").as_root(), &["app"]),
            (pod("with-token").with_pod_spec(json!({"automountServiceAccountToken": true})), &["app"]),
            (pod("host-network").with_pod_spec(on_node), &["app"]),
        ],
    )
}

#[test]
fn the_sidecar_gets_no_token_of_the_kubernetes_api() -> Result<()> {
    let stage = Stage::open("token")?;
    stage.lease_of_installation("report", &short())?;
    let asks = pod("report").with_pod_spec(json!({"automountServiceAccountToken": true}));
    let made = stage.would_create(&asks.manifest())?;
    let token = |container: &Value| {
        let mounts = container["volumeMounts"].as_array().into_iter().flatten();
        mounts.filter_map(|mount| mount["name"].as_str()).any(|name| name.starts_with("kube-api-access"))
    };
    assert!(token(&made["spec"]["containers"][0]) && !token(&made["spec"]["initContainers"][0]), "{made}");
    Ok(())
}

#[test]
fn limits_quotas_pod_level_resources_and_priorities_leave_room_for_the_sidecar() -> Result<()> {
    let stage = Stage::open("resources")?;
    let of_pod =
        json!({"resources": {"requests": {"cpu": "50m", "memory": "96Mi"}, "limits": {"memory": "128Mi"}}});
    let urgent = stage.namespace().to_owned();
    stage.apply(&json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": urgent}, "value": 1000,
    }))?;
    let classed = pod("urgent").with_pod_spec(json!({"priorityClassName": urgent}));
    let result = all_work(&stage, &[(pod("pod-level").with_pod_spec(of_pod), &["app"]), (classed, &["app"])]);
    stage.kubectl(&["delete", "priorityclass", &urgent])?;
    result?;

    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "all"},
        "spec": {"hard": {"requests.cpu": "2", "requests.memory": "2Gi", "limits.cpu": "4", "limits.memory": "4Gi"}},
    });
    stage.apply(&quota)?;
    let mut asks = pod("quota").manifest();
    let amounts = json!({"cpu": "100m", "memory": "64Mi"});
    asks["spec"]["containers"][0]["resources"] = json!({"requests": amounts, "limits": amounts});
    stage.lease_of_installation("quota", &short())?;
    let text =
        stage.eventually(seconds(20), "the quota counts", |stage| stage.would_refuse(&asks).map(Some))?;
    assert!(text.contains("must specify limits.cpu for: fencedlease"), "{text}");
    let limited = pod("limited").annotated("sidecar-cpu-limit", "200m");
    let containers = json!({"containers": asks["spec"]["containers"]});
    all_work(&stage, &[(limited.with_pod_spec(containers), &["app"])])?;

    stage.apply(&json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "all"},
        "spec": {"limits": [{
            "type": "Container", "default": {"cpu": "200m", "memory": "64Mi"},
            "defaultRequest": {"cpu": "20m", "memory": "32Mi"}, "max": {"cpu": "1", "memory": "256Mi"},
        }]},
    }))?;
    stage.eventually(seconds(20), "the LimitRange counts", |stage| stage.would_create(&asks).map(Some))?;
    all_work(&stage, &[(pod("ranged"), &["app"])])
}

#[test]
fn a_namespace_that_enforces_the_restricted_standard_takes_guarded_pods_cold_and_warm() -> Result<()> {
    let stage = Stage::open("restricted")?;
    let label = "pod-security.kubernetes.io/enforce=restricted";
    stage.kubectl(&["label", "namespace", stage.namespace(), label, "--overwrite"])?;
    let text = stage.would_refuse(&Workload::pod("loose").as_root().manifest())?;
    assert!(text.contains("violates PodSecurity \"restricted:latest\""), "{text}");
    let mut probed = pod("cold").manifest()["spec"]["containers"].clone();
    probed[0]["livenessProbe"] = json!({"tcpSocket": {"port": 7475}, "periodSeconds": 5});
    let probed = pod("cold").with_pod_spec(json!({"containers": probed}));
    all_work(&stage, &[(pod("warm"), &["app"]), (probed, &["app"])])
}

#[test]
fn what_a_debug_container_runs_in_the_workloads_processes_ends_with_them() -> Result<()> {
    let stage = Stage::open("debug")?;
    let redis = stage.redis_behind_proxy()?;
    stage.lease("report", &redis, &short())?;
    stage.start(&Workload::deployment("report").guarded_by("report"))?;
    let holder = stage.holder("report", seconds(60))?;
    let name = holder.name().to_owned();
    for (container, target) in [("joined", Some("--target=app")), ("apart", None)] {
        let image = format!("--image={IMAGE}");
        let named = format!("--container={container}");
        let mut words =
            vec!["debug", &name, &image, &named, "--profile=restricted", "--image-pull-policy=IfNotPresent"];
        words.extend(target);
        words.extend(["--", "sleep", "1000"]);
        stage.kubectl(&words)?;
    }
    let running = |pod: &Value| -> BTreeSet<String> {
        let all = pod["status"]["ephemeralContainerStatuses"].as_array().into_iter().flatten();
        let there = all.filter(|status| status["state"]["running"].is_object());
        there.filter_map(|status| Some(status["name"].as_str()?.to_owned())).collect()
    };
    let both = BTreeSet::from(["joined".to_owned(), "apart".to_owned()]);
    stage.eventually(seconds(60), "both debug containers run", |stage| {
        let pod: Value = stage.get(&["pod", &name])?;
        Ok((running(&pod) == both).then_some(()))
    })?;
    // The shell's sleeps are short, so that a look may fall between two of them.
    stage.eventually(seconds(20), "guard, shell and sleep", |_| {
        Ok((holder.processes("app")?.len() >= 3).then_some(()))
    })?;

    let key = redis.cli(&["KEYS", "fencedlease:v1:*:lease"])?;
    assert_eq!(redis.cli(&["DEL", key.trim()])?.trim(), "1");
    stage.eventually(
        seconds(60),
        "the debug container among the workload's processes has ended",
        |stage| {
            let pod: Value = stage.get(&["pod", &name])?;
            Ok((!running(&pod).contains("joined")).then_some(()))
        },
    )?;
    Ok(())
}
