//! What admission warns of, and that it comes true.

use anyhow::{Result, ensure};
use fencedlease_end_to_end::timings::short;
use fencedlease_end_to_end::{Pod, Stage, Workload, seconds};
use serde_json::{Value, json};

/// Applies a manifest and gives all that a person would see of it, warnings too.
fn told(stage: &Stage, manifest: &Value) -> Result<String> {
    let file = std::env::temp_dir().join(format!("{}.json", stage.namespace()));
    std::fs::write(&file, manifest.to_string())?;
    let mut command =
        stage.cluster().kubectl().command(&["--namespace", stage.namespace(), "apply", "--filename"]);
    let output = command.arg(&file).output();
    std::fs::remove_file(&file)?;
    let output = output?;
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    ensure!(output.status.success(), "{text}");
    Ok(text)
}

/// Evicts a pod as `kubectl drain` does.
fn evict(stage: &Stage, pod: &Pod<'_>) -> Result<()> {
    let (namespace, name) = (stage.namespace(), pod.name());
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace},
    });
    let file = std::env::temp_dir().join(format!("{namespace}-eviction.json"));
    std::fs::write(&file, eviction.to_string())?;
    let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction");
    let evicted = stage.kubectl(&["create", "--raw", &path, "--filename", &file.to_string_lossy()]);
    std::fs::remove_file(&file)?;
    evicted.map(|_| ())
}

fn budget(field: &str, value: &Value) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "keep"},
        "spec": {field: value, "selector": {"matchLabels": {"app": "report"}}},
    })
}

#[test]
fn a_budget_that_never_lets_the_holder_go_is_warned_of_and_the_remedy_works() -> Result<()> {
    let stage = Stage::open("budget")?;
    stage.lease_of_installation("report", &short())?;
    stage.apply(&budget("minAvailable", &json!(1)))?;
    let mut deployment = Workload::deployment("report").guarded_by("report").replicas(2).rolling().manifest();
    deployment["spec"]["template"]["spec"]["containers"][0]["ports"] = json!([{"containerPort": 8000}]);
    let text = told(&stage, &deployment)?;
    for part in
        ["Warning: A rollout will hang", "Warning: PodDisruptionBudget keep will refuse every eviction"]
    {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    let holder = stage.holder("report", seconds(60))?;
    holder.until(seconds(30), "Ready", Pod::is_ready)?;
    let fence = stage.fence("report")?;
    let refused =
        stage.eventually(seconds(30), "the budget counts", |stage| match evict(stage, &holder) {
            Ok(()) => anyhow::bail!("the holder was evicted"),
            Err(error) => Ok(Some(format!("{error:#}"))),
        })?;
    assert!(refused.contains("disruption budget"), "{refused}");

    stage.kubectl(&["delete", "poddisruptionbudget", "keep"])?;
    stage.apply(&budget("maxUnavailable", &json!("100%")))?;
    stage.eventually(seconds(30), "the holder is evicted", |stage| evict(stage, &holder).map(Some))?;
    stage.holder_above("report", fence, seconds(60))?;
    deployment["metadata"]["annotations"] = json!({"fencedlease.dev/lease": "report"});
    let text = told(&stage, &deployment)?;
    assert!(text.contains("A rollout will hang") && !text.contains("PodDisruptionBudget"), "{text}");
    Ok(())
}

#[test]
fn times_that_leave_no_room_are_warned_of() -> Result<()> {
    let stage = Stage::open("times")?;
    stage.lease_of_installation("report", &json!({}))?;
    let mut pod = Workload::pod("report").guarded_by("report").grace_seconds(4).manifest();
    let container = &mut pod["spec"]["containers"][0];
    container["livenessProbe"] = json!({"tcpSocket": {"port": 7475}, "failureThreshold": 1});
    container["resources"] = json!({"limits": {"memory": "4Gi"}});
    pod["spec"]["dnsPolicy"] = "Default".into();
    let text = told(&stage, &pod)?;
    for part in [
        "terminationGracePeriodSeconds 4 is too short for an orderly end",
        "Set spec.killBudget of the FencedLease to 5s or more",
        "spec.containers[0].livenessProbe.failureThreshold (app) is 1: one missed probe",
        "spec.dnsPolicy is Default, which asks the node's DNS",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    Ok(())
}
