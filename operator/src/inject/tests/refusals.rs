use serde_json::{Value, json};

use super::{guarded, installation, lease, pod};
use crate::inject::inject;

type Change = Box<dyn Fn(&mut Value)>;

fn refusal(change: impl FnOnce(&mut Value)) -> String {
    let mut pod = pod();
    change(&mut pod);
    inject(&pod, &lease(), "shop", &installation()).expect_err("this pod must be refused").to_string()
}

fn container(pod: &mut Value) -> &mut Value {
    &mut pod["spec"]["containers"][0]
}

#[test]
fn every_refusal_names_field_value_what_is_accepted_and_the_next_step() {
    let cases: Vec<(&str, Change, &str)> = vec![
        ("spec.hostPID is true", Box::new(|pod| pod["spec"]["hostPID"] = true.into()), "Remove spec.hostPID"),
        (
            "spec.shareProcessNamespace is true",
            Box::new(|pod| pod["spec"]["shareProcessNamespace"] = true.into()),
            "Remove spec.shareProcessNamespace",
        ),
        (
            "spec.os.name is windows",
            Box::new(|pod| pod["spec"]["os"] = json!({"name": "windows"})),
            "on Linux nodes",
        ),
        (
            "spec.nodeSelector[kubernetes.io/os] is windows",
            Box::new(|pod| pod["spec"]["nodeSelector"] = json!({"kubernetes.io/os": "windows"})),
            "on Linux nodes",
        ),
        (
            "spec.ephemeralContainers is set",
            Box::new(|pod| pod["spec"]["ephemeralContainers"] = json!([{"name": "debug"}])),
            "Remove it",
        ),
        (
            "metadata.annotations[kubernetes.io/config.mirror] is set",
            Box::new(|pod| pod["metadata"]["annotations"]["kubernetes.io/config.mirror"] = "x".into()),
            "as a Deployment",
        ),
        (
            "spec.initContainers[0].command (migrate) is not set",
            Box::new(|pod| pod["spec"]["initContainers"] = json!([{"name": "migrate"}])),
            r#"fencedlease.dev/command: '{"migrate":["/path/to/program"]}'"#,
        ),
        (
            "spec.initContainers[0].env (migrate) is FENCEDLEASE_FENCE",
            Box::new(|pod| {
                let env = json!([{"name": "FENCEDLEASE_FENCE", "value": "1"}]);
                pod["spec"]["initContainers"] = json!([{"name": "migrate", "command": ["m"], "env": env}]);
            }),
            "Remove or rename the variable",
        ),
        (
            "spec.containers[0].lifecycle.preStop.tcpSocket (app) is set",
            Box::new(|pod| container(pod)["lifecycle"] = json!({"preStop": {"tcpSocket": {"port": 80}}})),
            "Do it in a command (lifecycle exec)",
        ),
        (
            "spec.containers[0].lifecycle.postStart.httpGet (app) is set",
            Box::new(|pod| container(pod)["lifecycle"] = json!({"postStart": {"httpGet": {"port": 80}}})),
            "container's own program",
        ),
        (
            "spec.volumes[0].name is fencedlease-state",
            Box::new(|pod| pod["spec"]["volumes"] = json!([{"name": "fencedlease-state", "emptyDir": {}}])),
            "Rename the volume",
        ),
        (
            "spec.containers[1].name is fencedlease",
            Box::new(|pod| {
                pod["metadata"]["annotations"]["fencedlease.dev/containers"] = "app".into();
                let other = json!({"name": "fencedlease", "command": ["/fencedlease", "hold"]});
                pod["spec"]["containers"].as_array_mut().unwrap().push(other);
            }),
            "Rename the container",
        ),
        (
            "spec.initContainers[0].name is fencedlease",
            Box::new(|pod| {
                pod["spec"]["initContainers"] =
                    json!([{"name": "fencedlease", "command": ["/evil"], "restartPolicy": "Always"}]);
            }),
            "Rename the container",
        ),
        (
            "spec.restartPolicy is Sometimes",
            Box::new(|pod| pod["spec"]["restartPolicy"] = "Sometimes".into()),
            "Correct it",
        ),
        ("spec.containers is empty", Box::new(|pod| pod["spec"] = json!({})), "Add the containers"),
    ];
    for (found, change, next) in cases {
        let text = refusal(change);
        assert!(
            text.starts_with("Pod shop/report-7c9-… cannot be guarded by FencedLease report: "),
            "{text}"
        );
        assert!(
            text.contains(found) && text.contains("accepted: ") && text.contains(next),
            "{found}: {text}"
        );
    }
}

#[test]
fn a_container_whose_command_is_not_known_is_told_both_ways_to_give_it() {
    let text = refusal(|pod| drop(container(pod).as_object_mut().unwrap().remove("command")));
    assert!(text.contains("spec.containers[0].command (app) is not set"), "{text}");
    assert!(text.contains(r#"fencedlease.dev/command: '{"app":["/path/to/program"]}'"#), "{text}");
    assert!(text.contains("docker inspect") && text.contains("app:1"), "{text}");
}

#[test]
fn two_different_commands_are_refused_and_the_same_twice_is_not() {
    let annotate = |pod: &mut Value, command: &str| {
        pod["metadata"]["annotations"]["fencedlease.dev/command"] = command.into();
    };
    let text = refusal(|pod| annotate(pod, r#"{"app": ["/other"]}"#));
    assert!(text.contains("while fencedlease.dev/command says"), "{text}");
    let mut same = pod();
    annotate(&mut same, r#"{"app": ["/bin/app"]}"#);
    guarded(&same);
}

#[test]
fn names_in_annotations_must_be_containers_of_the_pod() {
    let text = refusal(|pod| pod["metadata"]["annotations"]["fencedlease.dev/containers"] = "ap".into());
    assert!(
        text.contains("ap, which is no container of the pod; accepted: app. Did you mean app?"),
        "{text}"
    );
    let text =
        refusal(|pod| pod["metadata"]["annotations"]["fencedlease.dev/command"] = r#"{"x": ["y"]}"#.into());
    assert!(text.contains("x, which is no container of the pod"), "{text}");
    let text = refusal(|pod| {
        pod["spec"]["initContainers"] = json!([{"name": "proxy", "restartPolicy": "Always"}]);
        pod["metadata"]["annotations"]["fencedlease.dev/containers"] = "app,proxy".into();
    });
    assert!(text.contains("proxy, which is a native sidecar (restartPolicy: Always)"), "{text}");
}

#[test]
fn what_would_hide_or_reach_our_volume_is_refused() {
    for path in ["/run/fencedlease", "/run/fencedlease/x", "/var/run/fencedlease/", "/run//x/../fencedlease"]
    {
        let text =
            refusal(|pod| container(pod)["volumeMounts"] = json!([{"name": "data", "mountPath": path}]));
        assert!(text.contains("paths outside /run/fencedlease"), "{path}: {text}");
    }
    let mut harmless = pod();
    container(&mut harmless)["volumeMounts"] = json!([{"name": "data", "mountPath": "/run/fencedleases"}]);
    guarded(&harmless);
    let text = refusal(|pod| {
        pod["metadata"]["annotations"]["fencedlease.dev/containers"] = "app".into();
        let spy = json!({"name": "spy", "volumeMounts": [{"name": "fencedlease", "mountPath": "/x"}]});
        pod["spec"]["containers"].as_array_mut().unwrap().push(spy);
    });
    assert!(text.contains("spec.containers[1].volumeMounts (spy) is fencedlease"), "{text}");
}

#[test]
fn variables_of_ours_are_not_for_the_user_to_set() {
    for name in ["FENCEDLEASE_FENCE", "FENCEDLEASE_SOCKET"] {
        let text = refusal(|pod| container(pod)["env"] = json!([{"name": name, "value": "1"}]));
        assert!(text.contains(name) && text.contains("do not begin with FENCEDLEASE_"), "{text}");
    }
}

#[test]
fn a_lease_that_cannot_be_used_guards_nothing() {
    let mut lease = lease();
    lease.spec.ttl = "6s".to_owned();
    let text = inject(&pod(), &lease, "shop", &installation()).unwrap_err().to_string();
    assert!(text.contains("spec.ttl 6s is too short"), "{text}");
    let mut installation = installation();
    installation.redis = None;
    let text = inject(&pod(), &super::lease(), "shop", &installation).unwrap_err().to_string();
    assert!(text.contains("Either set spec.redis.addresses"), "{text}");
}

#[test]
fn all_that_stands_against_a_pod_is_said_at_once() {
    let text = refusal(|pod| {
        pod["spec"]["hostPID"] = true.into();
        pod["spec"]["initContainers"] = json!([{"name": "migrate"}]);
        container(pod).as_object_mut().unwrap().remove("command");
    });
    assert!(text.contains("(1) ") && text.contains("(3) ") && !text.contains("(4) "), "{text}");
}

#[test]
fn what_is_no_pod_is_refused_without_a_panic() {
    for pod in [json!(null), json!([]), json!("x"), json!({"spec": 1}), json!({"metadata": []}), json!({})] {
        inject(&pod, &lease(), "shop", &installation()).unwrap_err();
    }
}
