use fencedlease_crds::{StandbyMode as WantedMode, StandbyReadiness, StandbySpec};
use fencedlease_wire::settings::{AfterLoss, StandbyMode, StandbySettings};
use serde_json::{Value, json};

use super::{guarded, installation, lease, patched, pod, settings};
use crate::inject::inject;

fn waits(
    mode: WantedMode,
    readiness: StandbyReadiness,
    container: &Value,
) -> Result<(StandbyMode, bool), String> {
    let mut pod = pod();
    let own = pod["spec"]["containers"][0].as_object_mut().unwrap();
    own.extend(container.as_object().unwrap().clone());
    let mut lease = lease();
    lease.spec.standby = StandbySpec { mode, readiness };
    let StandbySettings { mode, ready } =
        inject(&pod, &lease, "shop", &installation()).map_err(|refusal| refusal.to_string())?.standby;
    Ok((mode, ready))
}

#[test]
fn auto_is_warm_and_ready_where_nothing_would_fail_and_nothing_is_served() {
    let auto = |container: Value| waits(WantedMode::Auto, StandbyReadiness::Auto, &container).unwrap();
    assert_eq!(auto(json!({})), (StandbyMode::Warm, true));
    assert_eq!(auto(json!({"ports": [{"containerPort": 80}]})), (StandbyMode::Warm, false));
    assert_eq!(auto(json!({"readinessProbe": {"tcpSocket": {"port": 80}}})), (StandbyMode::Warm, false));
    assert_eq!(auto(json!({"livenessProbe": {"tcpSocket": {"port": 80}}})), (StandbyMode::Cold, false));
    assert_eq!(auto(json!({"livenessProbe": {"exec": {"command": ["true"]}}})), (StandbyMode::Warm, true));
    assert_eq!(auto(json!({"startupProbe": {"grpc": {"port": 80}}})), (StandbyMode::Cold, false));
    assert_eq!(
        auto(json!({"lifecycle": {"postStart": {"sleep": {"seconds": 1}}}})),
        (StandbyMode::Cold, false)
    );
    assert_eq!(auto(json!({"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}})), (StandbyMode::Warm, true));
}

#[test]
fn what_the_lease_asks_for_is_given_or_refused() {
    let live = json!({"livenessProbe": {"tcpSocket": {"port": 80}}});
    let ports = json!({"ports": [{"containerPort": 80}]});
    assert_eq!(waits(WantedMode::Cold, StandbyReadiness::Auto, &json!({})), Ok((StandbyMode::Cold, false)));
    assert_eq!(waits(WantedMode::Auto, StandbyReadiness::Ready, &ports), Ok((StandbyMode::Warm, true)));
    assert_eq!(
        waits(WantedMode::Auto, StandbyReadiness::NotReady, &json!({})),
        Ok((StandbyMode::Warm, false))
    );
    let text = waits(WantedMode::Warm, StandbyReadiness::Auto, &live).unwrap_err();
    assert!(text.contains("Warm, while app's liveness probe would not succeed"), "{text}");
    let text = waits(WantedMode::Auto, StandbyReadiness::Ready, &live).unwrap_err();
    assert!(text.contains("Ready, while this pod waits cold (app's liveness probe"), "{text}");
    assert!(waits(WantedMode::Cold, StandbyReadiness::Ready, &json!({})).is_err());
}

#[test]
fn a_pod_with_a_guarded_init_container_waits_cold() {
    let mut pod = pod();
    pod["spec"]["initContainers"] = json!([{"name": "migrate", "command": ["migrate"]}]);
    let guarded = guarded(&pod);
    assert_eq!(settings(&guarded).standby.mode, StandbyMode::Cold);
    let status = guarded["metadata"]["annotations"]["fencedlease.dev/status"].as_str().unwrap();
    assert!(status.contains("init container migrate has to end before the others begin"), "{status}");
    let mut lease = lease();
    lease.spec.standby = StandbySpec { mode: WantedMode::Warm, readiness: StandbyReadiness::Auto };
    let text = inject(&pod, &lease, "shop", &installation()).unwrap_err().to_string();
    assert!(text.contains("Warm, while init container migrate has to end before the others begin"), "{text}");
    // It keeps nobody else from failing the pod after LOST, and is not asked to.
    assert_eq!(settings(&guarded).after_loss, AfterLoss::Fail);
    assert_eq!(guarded["spec"]["initContainers"][1].get("restartPolicyRules"), None);
    pod["metadata"]["annotations"]["fencedlease.dev/containers"] = "app".into();
    assert_eq!(settings(&super::guarded(&pod)).standby.mode, StandbyMode::Warm);
}

#[test]
fn a_liveness_probe_that_may_not_fail_once_is_warned_of() {
    let warnings = |failures: Value| {
        let mut pod = pod();
        pod["spec"]["containers"][0]["livenessProbe"] =
            json!({"tcpSocket": {"port": 80}, "periodSeconds": 5, "failureThreshold": failures});
        inject(&pod, &lease(), "shop", &installation()).unwrap().warnings
    };
    let warned = warnings(json!(1));
    assert!(warned[0].contains("spec.containers[0].livenessProbe.failureThreshold (app) is 1"), "{warned:?}");
    assert!(warned[0].contains("Set it to 2 or more, which leaves a period of 5s to spare"), "{warned:?}");
    // One that is run in the container passes while that waits.
    let mut pod = pod();
    pod["spec"]["containers"][0]["livenessProbe"] =
        json!({"exec": {"command": ["true"]}, "failureThreshold": 1});
    assert_eq!(inject(&pod, &lease(), "shop", &installation()).unwrap().warnings, Vec::<String>::new());
    assert_eq!(warnings(json!(2)), Vec::<String>::new());
    assert_eq!(warnings(Value::Null), Vec::<String>::new());
}

#[test]
fn a_pod_that_asks_the_nodes_dns_is_warned_of() {
    let warnings = |network: bool, policy: Value| {
        let mut pod = pod();
        pod["spec"]["hostNetwork"] = network.into();
        pod["spec"]["dnsPolicy"] = policy;
        inject(&pod, &lease(), "shop", &installation()).unwrap().warnings.concat()
    };
    assert!(warnings(true, Value::Null).contains("Set it to ClusterFirstWithHostNet"));
    assert!(warnings(true, "ClusterFirst".into()).contains("ClusterFirst with spec.hostNetwork"));
    assert!(warnings(true, "Default".into()).contains("Set it to ClusterFirstWithHostNet"));
    assert!(warnings(false, "Default".into()).contains("Set it to ClusterFirst."));
    for (network, policy) in [
        (false, Value::Null),
        (false, "None".into()),
        (true, "None".into()),
        (true, "ClusterFirstWithHostNet".into()),
    ] {
        assert_eq!(warnings(network, policy), "");
    }
}

#[test]
fn the_status_annotation_says_why() {
    let pod = guarded(&pod());
    let status: Value =
        serde_json::from_str(pod["metadata"]["annotations"]["fencedlease.dev/status"].as_str().unwrap())
            .unwrap();
    assert_eq!(status["standby"]["mode"], "Warm");
    assert_eq!(status["leaseGeneration"], 3);
    let why = status["standby"]["why"].as_str().unwrap();
    assert!(
        why.contains("waits warm: no guarded container has a startup probe")
            && why.contains("Ready meanwhile"),
        "{why}"
    );
    assert_eq!(status["afterLoss"], "Fail");
}

fn after_loss(rules: bool, change: impl FnOnce(&mut Value)) -> (AfterLoss, Value) {
    let mut pod = pod();
    change(&mut pod);
    let mut installation = installation();
    installation.restart_rules_work = rules;
    let injected = inject(&pod, &lease(), "shop", &installation).unwrap();
    let pod = patched(&pod, &injected);
    assert_eq!(settings(&pod).after_loss, injected.after_loss);
    (injected.after_loss, pod["spec"]["containers"][0].clone())
}

fn probe(pod: &mut Value) {
    pod["spec"]["containers"][0]["livenessProbe"] = json!({"tcpSocket": {"port": 80}});
}

#[test]
fn restart_rules_let_the_pod_fail_where_somebody_makes_a_new_one() {
    let (after, container) = after_loss(true, |_| {});
    assert_eq!(after, AfterLoss::Fail);
    assert_eq!(container["restartPolicy"], "Never");
    let rules =
        |codes: &[u8]| json!([{"action": "Restart", "exitCodes": {"operator": "NotIn", "values": codes}}]);
    assert_eq!(container["restartPolicyRules"], rules(&[195, 196]));

    let (_, container) = after_loss(true, |pod| pod["spec"]["restartPolicy"] = "OnFailure".into());
    assert_eq!(container["restartPolicyRules"], rules(&[0, 195, 196]));
}

#[test]
fn elsewhere_the_container_waits_unless_a_probe_would_kill_it() {
    let bare = |pod: &mut Value| drop(pod["metadata"].as_object_mut().unwrap().remove("ownerReferences"));
    let partly = |pod: &mut Value| {
        pod["metadata"]["annotations"]["fencedlease.dev/containers"] = "app".into();
        pod["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "log"}));
    };
    for (after, container) in [after_loss(false, |_| {}), after_loss(true, bare), after_loss(true, partly)] {
        assert_eq!(after, AfterLoss::Wait);
        assert_eq!(container.get("restartPolicy").or_else(|| container.get("restartPolicyRules")), None);
    }
    assert_eq!(after_loss(false, probe).0, AfterLoss::Replace);
    assert_eq!(after_loss(true, probe).0, AfterLoss::Fail);
}

#[test]
fn a_restart_policy_of_the_containers_own_is_left_alone() {
    let (after, container) =
        after_loss(true, |pod| pod["spec"]["containers"][0]["restartPolicy"] = "Always".into());
    assert_eq!((after, &container["restartPolicy"]), (AfterLoss::Replace, &json!("Always")));
    assert_eq!(container.get("restartPolicyRules"), None);
}

#[test]
fn a_pod_that_never_restarts_fails_by_itself() {
    let (after, container) = after_loss(false, |pod| pod["spec"]["restartPolicy"] = "Never".into());
    assert_eq!(after, AfterLoss::Fail);
    assert_eq!(container.get("restartPolicyRules"), None);
}

#[test]
fn who_would_not_come_back_is_warned() {
    let mut pod = pod();
    pod["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    probe(&mut pod);
    let warnings = inject(&pod, &lease(), "shop", &installation()).unwrap().warnings;
    assert!(warnings[0].contains("nothing makes a new one"), "{warnings:?}");
}
