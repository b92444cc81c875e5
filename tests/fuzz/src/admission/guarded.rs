//! A new pod that was let in: nothing of a guarded container runs without the guard, and the rest is as it was.

use serde_json::{Map, Value};

const PREFIX: &str = "fencedlease.dev/";
const GUARD: &str = "/run/fencedlease/fencedlease";

pub(super) fn check(asked: &Value, admitted: &Value, response: &Value) {
    let notes = &asked["metadata"]["annotations"];
    let Some(lease) = notes.get("fencedlease.dev/lease").and_then(Value::as_str) else {
        let ours = |of: &str| {
            let keys = asked["metadata"][of].as_object().into_iter().flat_map(Map::iter);
            keys.filter(|(key, value)| key.starts_with(PREFIX) && value.is_string()).count()
        };
        assert_eq!(ours("annotations") + ours("labels"), 0, "somebody wanted a guard and got none");
        assert_eq!(admitted, asked, "a pod that asks for nothing was changed");
        assert_eq!(response.get("warnings"), None);
        return;
    };
    let spec = &admitted["spec"];
    let sidecar = &spec["initContainers"][0];
    assert_eq!(sidecar["name"], "fencedlease");
    assert_eq!(sidecar["restartPolicy"], "Always");
    let settings = sidecar["env"][0]["value"].as_str().unwrap().replace("$$", "$");
    let settings: Value = serde_json::from_str(&settings).unwrap();
    assert_eq!(settings["resource"]["name"], lease);
    let named = notes.get("fencedlease.dev/containers").and_then(Value::as_str);
    let named: Option<Vec<&str>> = named.map(|names| names.split(',').map(str::trim).collect());
    let init = list(spec, "initContainers").iter().skip(1).filter(|one| one["restartPolicy"] != "Always");
    for container in init.chain(list(spec, "containers")) {
        let name = container["name"].as_str().unwrap();
        let is_wanted = named.as_ref().is_none_or(|named| named.contains(&name));
        let is_known = list(&settings, "containers").iter().any(|known| known == name);
        assert_eq!(is_known, is_wanted, "{name}");
        let command: Vec<&str> = list(container, "command").iter().filter_map(Value::as_str).collect();
        if is_wanted {
            assert!(command.starts_with(&[GUARD, "guard", "--container", name]), "{name} runs {command:?}");
            assert_eq!(command.last(), Some(&"--"), "{name} runs {command:?}");
            assert!(!list(container, "args").is_empty(), "{name} runs nothing");
            check_beside(container);
        } else {
            assert!(!command.contains(&GUARD), "{name} runs {command:?}");
        }
        let mounts = list(container, "volumeMounts").iter();
        let ours =
            mounts.filter(|mount| mount["name"].as_str().is_some_and(|name| name.starts_with("fencedlease")));
        let ours = ours.filter(|mount| mount["readOnly"] != true || mount["name"] != "fencedlease").count();
        assert_eq!(ours, 0, "{name} may write to what is ours");
    }
    let volume = |name: &str| list(spec, "volumes").iter().filter(|volume| volume["name"] == name).count();
    assert_eq!((volume("fencedlease"), volume("fencedlease-state")), (1, 1));
}

/// Probes and hooks with `exec` run only under the lease.
fn check_beside(container: &Value) {
    for path in
        ["/livenessProbe", "/readinessProbe", "/startupProbe", "/lifecycle/postStart", "/lifecycle/preStop"]
    {
        let command = container.pointer(&format!("{path}/exec/command")).and_then(Value::as_array);
        if let Some(command) = command.filter(|command| !command.is_empty()) {
            assert!(
                command.len() >= 5 && command[0] == GUARD && command[1] == "while-active",
                "{path}: {command:?}"
            );
        }
    }
}

fn list<'a>(of: &'a Value, key: &str) -> &'a [Value] {
    of[key].as_array().map_or(&[], Vec::as_slice)
}
