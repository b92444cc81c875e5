//! What stays when the chart is taken away, and that it is found again. The name puts it after all other tests:
//! whatever else runs on the cluster meanwhile does without an operator, and loses its leases of the embedded Redis.

use anyhow::{Context as _, Result};
use fencedlease_cluster::command::run;
use fencedlease_end_to_end::{Stage, Workload, chart, seconds};
use serde_json::{Value, json};

fn installation_id(stage: &Stage) -> Result<String> {
    let words = ["configmap", "fencedlease-installation", "--namespace", chart::NAMESPACE];
    let map: Value = stage.cluster().get(&words)?;
    Ok(map["data"]["installationID"].as_str().context("no id in the ConfigMap")?.to_owned())
}

/// What of the release is still in the cluster, one name a line.
fn left(stage: &Stage) -> Result<String> {
    let kubectl = stage.cluster().kubectl();
    let at_home = "deployments,replicasets,pods,services,serviceaccounts,secrets,configmaps,roles,rolebindings,\
                   poddisruptionbudgets,fencedleases";
    let everywhere = "mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies,\
                      validatingadmissionpolicybindings,clusterroles,clusterrolebindings";
    let mut left = kubectl.run(&["get", at_home, "--namespace", chart::NAMESPACE, "--output=name"])?;
    left += &kubectl.run(&["get", everywhere, "--output=name"])?;
    let ours = |line: &&str| line.contains("fencedlease") && !line.contains("/fencedlease-demo");
    Ok(left.lines().filter(ours).collect::<Vec<_>>().join("\n"))
}

#[test]
fn helm_uninstall_leaves_what_cannot_be_made_again_and_installing_finds_it() -> Result<()> {
    let stage = Stage::open_alone("uninstall")?;
    stage.lease_of_installation("report", &json!({"ttl": "20s"}))?;
    let id = installation_id(&stage)?;
    let kubectl = stage.cluster().kubectl();
    let notes = run(&mut kubectl.helm(&["get", "notes", chart::RELEASE, "--namespace", chart::NAMESPACE]))?;
    let words = notes.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(
            "Before you uninstall: once the operator is gone, annotated pods start UNGUARDED. Scale them to 0, or \
             take the annotation out, first. The CRD, your FencedLeases and the installation id (ConfigMap \
             fencedlease-installation) stay; holders that run keep their guard."
        ),
        "{notes}"
    );

    let printed = chart::uninstall(kubectl)?;
    assert!(printed.contains("uninstalled"), "{printed}");
    stage.eventually(seconds(60), "only the installation id is left", |stage| {
        let left = left(stage)?;
        anyhow::ensure!(left == "configmap/fencedlease-installation", "left are {left}");
        Ok(Some(()))
    })?;
    kubectl.run(&["get", "crd", "fencedleases.fencedlease.dev"])?;
    assert_eq!(stage.read_lease("report")?.spec.ttl, "20s");
    assert_eq!(installation_id(&stage)?, id);
    // The API server goes by the policy that is gone for a moment more.
    let early = Workload::pod("early").guarded_by("report");
    stage.eventually(seconds(30), "the pod is made", |stage| stage.start(&early).map(Some))?;
    let early = stage.pod("early")?.until(seconds(30), "runs", |pod| pod.phase() == "Running")?;
    assert!(!early.is_injected(), "nobody is there who could guard it, as the notes say");

    chart::install(kubectl, stage.cluster().target(), &["--set", "redis.embedded=true"])?;
    assert_eq!(installation_id(&stage)?, id);
    stage.until_lease("report", seconds(90), "the pod that runs unguarded", |status| {
        let current = status.conditions.iter().find(|condition| condition.type_ == "PodsCurrent")?;
        (current.reason == "UnguardedPods" && current.message.contains("early")).then_some(())
    })?;
    early.delete()?;
    stage.start(&Workload::pod("late").guarded_by("report"))?;
    assert_eq!(stage.holder("report", seconds(60))?.name(), "late");
    Ok(())
}
