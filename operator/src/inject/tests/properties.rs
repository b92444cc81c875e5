//! What holds for every pod, over random ones.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{installation, lease, patched};
use crate::inject::inject;

/// An object in which each of these members may be missing.
fn members(all: Vec<(&'static str, BoxedStrategy<Value>)>) -> impl Strategy<Value = Map<String, Value>> {
    let members: Vec<_> = all.into_iter().map(|(key, value)| (Just(key), prop::option::of(value))).collect();
    members.prop_map(|members| {
        members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    })
}

fn one_of(values: Vec<Value>) -> BoxedStrategy<Value> {
    prop::sample::select(values).boxed()
}

fn container(name: &'static str) -> impl Strategy<Value = Value> {
    let security = vec![
        json!({}),
        json!({"runAsUser": 7, "capabilities": {"drop": ["ALL"]}, "allowPrivilegeEscalation": false}),
        json!({"privileged": true, "capabilities": {"add": ["SYS_PTRACE"]}, "runAsUser": 0}),
        json!({"seccompProfile": {"type": "Localhost", "localhostProfile": "p"}, "readOnlyRootFilesystem": true}),
    ];
    members(vec![
        ("args", one_of(vec![json!([]), json!(["-a", "$(X)"]), json!(["--"])])),
        ("env", one_of(vec![json!([]), json!([{"name": "X", "value": "$(FENCEDLEASE_DIR)"}])])),
        ("volumeMounts", one_of(vec![json!([]), json!([{"name": "data", "mountPath": "/data"}])])),
        ("securityContext", one_of(security)),
        ("livenessProbe", one_of(vec![json!({"httpGet": {"port": 80}}), exec(), json!({"exec": {}})])),
        ("readinessProbe", one_of(vec![json!({"tcpSocket": {"port": 80}}), exec()])),
        ("ports", one_of(vec![json!([]), json!([{"containerPort": 7475}])])),
        ("resources", one_of(vec![json!({}), json!({"limits": {"memory": "4Gi", "example.dev/gpu": "1"}})])),
        ("restartPolicy", one_of(vec![json!("Always")])),
        (
            "lifecycle",
            one_of(vec![
                json!({"preStop": {"sleep": {"seconds": 1}}}),
                json!({"preStop": exec(), "postStart": {"sleep": {"seconds": 1}}}),
                json!({"preStop": {"exec": {"command": []}}, "postStart": exec()}),
            ]),
        ),
        ("startupProbe", one_of(vec![json!({"grpc": {"port": 80}}), exec()])),
        ("fieldOfTheFuture", one_of(vec![json!({"a": [1, null]}), json!(null)])),
    ])
    .prop_map(move |mut container| {
        container.insert("name".to_owned(), name.into());
        container.insert("command".to_owned(), json!(["/bin/run", name]));
        Value::Object(container)
    })
}

/// A probe or a hook that is run in the container; its command has an argument like one of ours.
fn exec() -> Value {
    json!({"exec": {"command": ["check", "--as", "$(X)", "--", "-v"]}, "periodSeconds": 7})
}

pub(super) fn pod() -> impl Strategy<Value = Value> {
    let spec = members(vec![
        ("restartPolicy", one_of(vec![json!("Always"), json!("OnFailure"), json!("Never")])),
        ("terminationGracePeriodSeconds", one_of(vec![json!(0), json!(30), json!(600)])),
        ("hostNetwork", one_of(vec![json!(true), json!(false)])),
        ("volumes", one_of(vec![json!([]), json!([{"name": "data", "emptyDir": {}}])])),
        (
            "initContainers",
            one_of(vec![
                json!([]),
                json!([{"name": "proxy", "restartPolicy": "Always", "startupProbe": exec()}]),
                json!([{"name": "migrate", "command": ["m"], "env": [{"name": "Y", "value": "1"}]}]),
                json!([
                    {"name": "proxy", "restartPolicy": "Always"},
                    {"name": "migrate", "command": ["m"], "args": ["-x"], "volumeMounts": []},
                ]),
            ]),
        ),
        (
            "securityContext",
            one_of(vec![
                json!({"runAsNonRoot": true, "fsGroup": 3}),
                json!({"runAsUser": 0, "supplementalGroups": [4], "seccompProfile": {"type": "Unconfined"}}),
            ]),
        ),
        ("automountServiceAccountToken", one_of(vec![json!(false), json!(true)])),
        ("hostUsers", one_of(vec![json!(false)])),
        ("priorityClassName", one_of(vec![json!("high")])),
        ("resources", one_of(vec![json!({"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}})])),
        ("schedulingOfTheFuture", one_of(vec![json!({"x": 1})])),
    ]);
    let metadata = members(vec![
        ("labels", one_of(vec![json!({}), json!({"app": "report"})])),
        (
            "ownerReferences",
            one_of(vec![
                json!([]),
                json!([{"controller": true, "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}]),
            ]),
        ),
        ("name", one_of(vec![json!("report")])),
    ]);
    let containers = (container("app"), prop::option::of(container("log")));
    (metadata, spec, containers, any::<bool>()).prop_map(|(mut metadata, mut spec, (app, log), all)| {
        let mut annotations = json!({"fencedlease.dev/lease": "report", "team": "shop"});
        if !all {
            annotations["fencedlease.dev/containers"] = "app".into();
        }
        metadata.insert("annotations".to_owned(), annotations);
        let containers: Vec<Value> = std::iter::once(app).chain(log).collect();
        spec.insert("containers".to_owned(), containers.into());
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    })
}

/// The pod without what injection may add or change, and with empty lists taken for absent ones.
fn rest(pod: &Value, injected: bool) -> Value {
    let mut pod = pod.clone();
    let drop_first = |list: &mut Value, count: usize| {
        if let Some(list) = list.as_array_mut() {
            list.drain(..count.min(list.len()));
        }
    };
    for key in ["labels", "annotations"] {
        if let Some(map) = pod["metadata"].get_mut(key).and_then(Value::as_object_mut) {
            map.retain(|key, _| key != "fencedlease.dev/injected" && key != "fencedlease.dev/status");
        }
    }
    if injected {
        drop_first(&mut pod["spec"]["initContainers"], 1);
        pod["spec"]["volumes"]
            .as_array_mut()
            .unwrap()
            .retain(|volume| !volume["name"].as_str().unwrap().starts_with("fencedlease"));
        for container in containers(&mut pod) {
            let guarded = container["command"][0] == "/run/fencedlease/fencedlease";
            if guarded {
                give_back_what_runs_beside(container);
                drop_first(&mut container["env"], 3);
                container["volumeMounts"].as_array_mut().unwrap().pop();
                if container.get("restartPolicyRules").is_some() {
                    let object = container.as_object_mut().unwrap();
                    object.remove("restartPolicyRules");
                    object.remove("restartPolicy");
                }
                container["command"] = json!([]);
            }
        }
    }
    for container in containers(&mut pod) {
        let line: Vec<Value> = ["command", "args"]
            .into_iter()
            .flat_map(|key| container[key].as_array().cloned().unwrap_or_default())
            .collect();
        container["command"] = line.into();
        container["args"] = json!([]);
    }
    without_empty(&mut pod);
    pod
}

/// Init containers, then the others.
fn containers(pod: &mut Value) -> impl Iterator<Item = &mut Value> {
    let lists = pod["spec"].as_object_mut().unwrap().iter_mut();
    let lists = lists.filter(|(key, _)| *key == "containers" || *key == "initContainers");
    lists.flat_map(|(_, list)| list.as_array_mut().into_iter().flatten())
}

/// Each such command is ours, with what it is to Kubernetes; nothing else of the probe or hook is.
fn give_back_what_runs_beside(container: &mut Value) {
    for (path, kind) in [
        ("/livenessProbe", "liveness-probe"),
        ("/readinessProbe", "readiness-probe"),
        ("/startupProbe", "startup-probe"),
        ("/lifecycle/postStart", "post-start"),
        ("/lifecycle/preStop", "pre-stop"),
    ] {
        let command = container.pointer_mut(&format!("{path}/exec/command")).and_then(Value::as_array_mut);
        if let Some(command) = command.filter(|command| !command.is_empty()) {
            let ours: Vec<Value> = command.drain(..5).collect();
            assert_eq!(ours, ["/run/fencedlease/fencedlease", "while-active", "--as", kind, "--"]);
        }
    }
}

fn without_empty(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(without_empty);
            map.retain(|key, value| {
                key == "securityContext"
                    || !matches!(value, Value::Array(list) if list.is_empty())
                        && !matches!(value, Value::Object(map) if map.is_empty())
            });
        }
        Value::Array(list) => list.iter_mut().for_each(without_empty),
        _ => {}
    }
}

/// What somebody else's webhook might do to a pod that was injected.
fn mutate(pod: &mut Value, how: usize) {
    let spec = &mut pod["spec"];
    match how {
        0 => spec["containers"][0]["env"].as_array_mut().unwrap().insert(0, json!({"name": "FIRST"})),
        1 => spec["initContainers"]
            .as_array_mut()
            .unwrap()
            .insert(0, json!({"name": "late", "restartPolicy": "Always"})),
        2 => spec["containers"][0]["command"] = json!(["/bin/run", "unguarded"]),
        3 => spec["initContainers"][0]["restartPolicy"] = Value::Null,
        4 => drop(spec["volumes"].as_array_mut().unwrap().pop()),
        5 => spec["containers"][0]["startupProbe"] = json!({"tcpSocket": {"port": 1}}),
        6 => spec["tolerations"] = json!([{"key": "x"}]),
        7 => spec["containers"][0]["readinessProbe"] = exec(),
        8 => {
            let more = json!({"name": "set-up", "command": ["/bin/set-up"]});
            spec["initContainers"].as_array_mut().unwrap().push(more);
        }
        9 => {
            let old =
                json!(["/run/fencedlease/fencedlease", "while-active", "--as", "of-old", "--", "check"]);
            spec["containers"][0]["livenessProbe"] = json!({"exec": {"command": old}});
        }
        _ => drop(spec["containers"][0]["volumeMounts"].as_array_mut().unwrap().pop()),
    }
}

proptest! {
    #[test]
    fn nothing_but_ours_is_changed_and_a_second_time_nothing_at_all(
        pod in pod(), rules in any::<bool>(), gates in any::<bool>()
    ) {
        let mut installation = installation();
        installation.restart_rules_work = rules;
        let mut lease = lease();
        if gates {
            let gate = json!([{"name": "g", "url": "https://g", "caRef": {"name": "ca"}}]);
            lease.spec.gates = serde_json::from_value(gate).unwrap();
        }
        let first = inject(&pod, &lease, "shop", &installation).unwrap();
        let once = patched(&pod, &first);
        prop_assert_eq!(rest(&once, true), rest(&pod, false));
        let second = inject(&once, &lease, "shop", &installation).unwrap();
        prop_assert_eq!(second.patch.0, vec![]);
        prop_assert_eq!(second.warnings, first.warnings);
    }

    #[test]
    fn every_guarded_container_runs_under_the_guard_whatever_others_do(pod in pod(), how in 0..11_usize) {
        let first = inject(&pod, &lease(), "shop", &installation()).unwrap();
        let mut changed = patched(&pod, &first);
        mutate(&mut changed, how);
        // What cannot be guarded any more is refused, and that is as well.
        if let Ok(again) = inject(&changed, &lease(), "shop", &installation()) {
            let again = patched(&changed, &again);
            let spec = &again["spec"];
            prop_assert_eq!(&spec["initContainers"][0]["name"], "fencedlease");
            prop_assert_eq!(&spec["initContainers"][0]["restartPolicy"], "Always");
            prop_assert_eq!(&spec["initContainers"][0]["securityContext"]["capabilities"]["drop"][0], "ALL");
            let settings = super::settings(&again);
            let named = again["metadata"]["annotations"].get("fencedlease.dev/containers").is_some();
            let init = spec["initContainers"].as_array().unwrap().iter().skip(1);
            let init = init.map(|container| (container, container["restartPolicy"] != "Always"));
            let regular = spec["containers"].as_array().unwrap().iter().map(|container| (container, true));
            for (container, may_be) in init.chain(regular) {
                let guarded = if named { container["name"] == "app" } else { may_be };
                prop_assert_eq!(settings.containers.iter().any(|name| container["name"] == **name), guarded);
                prop_assert_eq!(container["command"][0] == "/run/fencedlease/fencedlease", guarded);
                let mounts = container["volumeMounts"].as_array().cloned().unwrap_or_default();
                let ours = mounts.iter().filter(|mount| mount["name"] == "fencedlease").count();
                prop_assert_eq!(ours, usize::from(guarded));
                if guarded {
                    give_back_what_runs_beside(&mut container.clone());
                }
            }
        }
    }
}
