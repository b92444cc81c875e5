//! What was the pod before we touched it? A pod that comes again is first stripped of what is ours, so that
//! what an older version or another webhook made of it never survives.

use std::collections::BTreeSet;

use fencedlease_wire::{exit, paths};
use serde_json::{Map, Value};

use super::beside;
use super::names::{GUARD_PATH, SHARED_VOLUME, is_our_sidecar, is_our_volume};
use super::view::List;
use crate::admit::annotations::{INJECTED, STATUS};

/// A pod without our parts.
pub(super) struct Stripped {
    /// The pod.
    pub(super) pod: Value,
    /// The sidecar that was in it.
    pub(super) sidecar: Option<Value>,
    /// The containers that ran under the guard. Their whole command line is in `command` now.
    pub(super) wrapped: BTreeSet<String>,
}

/// Takes out what is ours.
pub(super) fn strip(original: &Value) -> Stripped {
    let mut pod = original.clone();
    for (of, key) in [("labels", INJECTED), ("annotations", STATUS)] {
        if let Some(keys) =
            pod.get_mut("metadata").and_then(|metadata| metadata.get_mut(of)).and_then(Value::as_object_mut)
        {
            keys.remove(key);
        }
    }
    let mut stripped = Stripped { pod: Value::Null, sidecar: None, wrapped: BTreeSet::new() };
    if let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) {
        stripped.sidecar = take_sidecar(spec);
        for list in [List::Init, List::Regular] {
            let containers = spec.get_mut(list.key()).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
                beside::unwrap(container);
                if unwrap(container) {
                    let name = container.get("name").and_then(Value::as_str);
                    stripped.wrapped.insert(name.unwrap_or_default().to_owned());
                }
            }
        }
    }
    stripped.pod = pod;
    stripped
}

/// Takes out the sidecar and, if there was one, the volumes that came with it.
fn take_sidecar(spec: &mut Map<String, Value>) -> Option<Value> {
    let sidecar = spec.get("initContainers")?.as_array()?.iter().find(|one| is_our_sidecar(one)).cloned()?;
    keep_only(spec, "initContainers", |container| !is_our_sidecar(container));
    keep_only(spec, "volumes", |volume| !volume["name"].as_str().is_some_and(is_our_volume));
    Some(sidecar)
}

/// Takes the guard off a container; false if there was none.
fn unwrap(container: &mut Map<String, Value>) -> bool {
    let Some(mut line) = command_line(container) else { return false };
    let mut found = false;
    while let Some(guard) = guard_in(&line) {
        line.drain(guard);
        found = true;
    }
    if !found {
        return false;
    }
    container.remove("args");
    if line.is_empty() {
        container.remove("command");
    } else {
        container.insert("command".to_owned(), line.into());
    }
    let ours = [paths::ENV_RESOURCE, paths::ENV_SOCKET, paths::ENV_DIR];
    keep_only(container, "env", |variable| {
        !ours.iter().any(|name| variable["name"] == *name) || variable.get("valueFrom").is_some()
    });
    keep_only(container, "volumeMounts", |mount| {
        !(mount["name"] == SHARED_VOLUME && mount["mountPath"] == paths::SHARED_DIR)
    });
    if has_our_rules(container) {
        container.remove("restartPolicy");
        container.remove("restartPolicyRules");
    }
    true
}

fn command_line(container: &Map<String, Value>) -> Option<Vec<String>> {
    let mut line = Vec::new();
    for part in ["command", "args"] {
        for text in container.get(part).and_then(Value::as_array).into_iter().flatten() {
            line.push(text.as_str()?.to_owned());
        }
    }
    Some(line)
}

/// Where in a command line the guard and its own arguments stand. Another webhook may have put a program of
/// its own before them.
fn guard_in(line: &[String]) -> Option<std::ops::RangeInclusive<usize>> {
    let start = line.windows(2).position(|pair| pair[0] == GUARD_PATH && pair[1] == "guard")?;
    let end = line.iter().skip(start).position(|text| text == "--")?;
    Some(start..=start + end)
}

fn has_our_rules(container: &Map<String, Value>) -> bool {
    let rules = container.get("restartPolicyRules").and_then(Value::as_array);
    let Some([rule]) = rules.map(Vec::as_slice) else { return false };
    let codes = &rule["exitCodes"];
    let names = |code: u8| codes["values"].as_array().is_some_and(|values| values.contains(&code.into()));
    rule["action"] == "Restart"
        && codes["operator"] == "NotIn"
        && names(exit::LOST)
        && names(exit::PLANNED_END)
}

fn keep_only(object: &mut Map<String, Value>, list: &str, keep: impl Fn(&Value) -> bool) {
    let Some(items) = object.get_mut(list).and_then(Value::as_array_mut) else { return };
    items.retain(keep);
    if items.is_empty() {
        object.remove(list);
    }
}
