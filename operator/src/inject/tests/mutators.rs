//! What holds whoever else changes pods, and in whichever order.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::properties::pod;
use super::{installation, lease, patched};
use crate::inject::inject;

/// What it does, in words and in deed.
type Mutator = (&'static str, fn(&mut Value));

/// What another mutator may do to a pod, whether it was injected before or not.
const OTHERS: [Mutator; 12] = [
    ("labels it", |pod| pod["metadata"]["labels"]["mesh"] = "on".into()),
    ("annotates it", |pod| pod["metadata"]["annotations"]["mesh.example/status"] = "injected".into()),
    ("tolerates a taint", |pod| pod["spec"]["tolerations"] = json!([{"key": "x", "operator": "Exists"}])),
    ("gives it a class", |pod| pod["spec"]["priorityClassName"] = "batch".into()),
    ("adds a native sidecar in front", |pod| {
        let proxy = json!({"name": "proxy-first", "image": "p", "restartPolicy": "Always"});
        list(&mut pod["spec"], "initContainers").insert(0, proxy);
    }),
    ("adds a native sidecar behind", |pod| {
        let proxy = json!({"name": "proxy-last", "image": "p", "restartPolicy": "Always"});
        list(&mut pod["spec"], "initContainers").push(proxy);
    }),
    ("adds a variable in front", |pod| {
        list(app(pod), "env").insert(0, json!({"name": "FIRST", "value": "1"}));
    }),
    ("adds a variable behind", |pod| {
        list(app(pod), "env").push(json!({"name": "LAST", "value": "$(FIRST)"}));
    }),
    ("adds a volume", |pod| {
        list(&mut pod["spec"], "volumes").push(json!({"name": "secrets", "emptyDir": {}}));
        list(app(pod), "volumeMounts").push(json!({"name": "secrets", "mountPath": "/secrets"}));
    }),
    ("sets limits", |pod| app(pod)["resources"] = json!({"limits": {"cpu": "2", "memory": "1Gi"}})),
    ("makes it stricter", |pod| {
        app(pod)["securityContext"] =
            json!({"readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}});
    }),
    ("puts a program before the command", |pod| {
        let line: Vec<Value> = ["command", "args"].map(|part| list(app(pod), part).clone()).concat();
        app(pod)["command"] = json!(["/vault/run"]);
        app(pod)["args"] = line.into();
    }),
];

fn app(pod: &mut Value) -> &mut Value {
    &mut pod["spec"]["containers"][0]
}

fn list<'a>(parent: &'a mut Value, key: &str) -> &'a mut Vec<Value> {
    if !parent[key].is_array() {
        parent[key] = json!([]);
    }
    parent[key].as_array_mut().unwrap()
}

fn ours(pod: &Value) -> Value {
    patched(pod, &inject(pod, &lease(), "shop", &installation()).unwrap())
}

/// Empty lists and absent ones mean the same to the API server.
fn without_empty_lists(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for value in map.values_mut() {
                without_empty_lists(value);
            }
            map.retain(|_, value| !matches!(value, Value::Array(list) if list.is_empty()));
        }
        Value::Array(list) => {
            for value in list {
                without_empty_lists(value);
            }
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn the_order_of_mutators_makes_no_difference(
        pod in pod(),
        others in prop::sample::subsequence(OTHERS.to_vec(), 0..=4),
        ours_after in 0..5_usize,
    ) {
        let mut expected = pod.clone();
        for (_, change) in &others {
            change(&mut expected);
        }
        let mut expected = ours(&expected);

        let mut found = pod;
        for (index, (_, change)) in others.iter().enumerate() {
            if index == ours_after {
                found = ours(&found);
            }
            change(&mut found);
        }
        let mut found = ours(&found);
        prop_assert_eq!(inject(&found, &lease(), "shop", &installation()).unwrap().patch.0, vec![]);
        without_empty_lists(&mut expected);
        without_empty_lists(&mut found);
        let names: Vec<&str> = others.iter().map(|(name, _)| *name).collect();
        prop_assert_eq!(found, expected, "ours at {} of {:?}", ours_after, names);
    }

    #[test]
    fn the_sidecar_is_as_strict_as_the_restricted_standard_asks_whatever_the_pod_is(pod in pod()) {
        let host = pod["spec"]["hostNetwork"] == true;
        let guarded = ours(&pod);
        let sidecar = &guarded["spec"]["initContainers"][0];
        let expected = json!({
            "runAsUser": 65532, "runAsGroup": 65532, "runAsNonRoot": true, "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        });
        prop_assert_eq!(&sidecar["securityContext"], &expected);
        prop_assert_eq!(sidecar["ports"][0].get("hostPort").is_some(), host);
        for kind in ["requests", "limits"] {
            prop_assert!(sidecar["resources"][kind].get("memory").is_some());
        }
        // Its token is for the operator alone; that of the Kubernetes API is kept out.
        let covered = sidecar["volumeMounts"].as_array().unwrap().iter().any(|mount| {
            mount["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount" && mount["readOnly"] == true
        });
        prop_assert!(covered);
        let before = pod["spec"]["volumes"].as_array().map_or(0, Vec::len);
        for volume in &guarded["spec"]["volumes"].as_array().unwrap()[before..] {
            let kind = volume.as_object().unwrap().keys().find(|key| *key != "name").unwrap();
            prop_assert!(kind == "emptyDir" || kind == "projected", "{}", volume);
        }
    }
}
