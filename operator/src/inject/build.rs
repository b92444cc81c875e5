//! How does a plan come into a pod's raw JSON? Only what is named here is touched.

use fencedlease_wire::settings::{AfterLoss, RestartPolicy, StandbyMode};
use fencedlease_wire::{exit, paths};
use serde_json::{Map, Value, json};

use super::beside;
use super::installation::Installation;
use super::names::{GUARD_PATH, SHARED_VOLUME};
use super::plan::Plan;
use super::sidecar;
use super::strip::Stripped;
use super::view::{Guarded, List};
use crate::admit::annotations::{INJECTED, STATUS};

const DEFAULT_TERMINATION_MESSAGE_PATH: &str = "/dev/termination-log";

/// The stripped pod with everything of ours in it. `settings` is the JSON of `plan.settings`.
pub(super) fn build(
    stripped: &Stripped,
    plan: &Plan<'_>,
    settings: &str,
    installation: &Installation,
) -> Value {
    let mut pod = stripped.pod.clone();
    if let Some(pod) = pod.as_object_mut() {
        in_object(pod, "metadata", |metadata| {
            in_object(metadata, "labels", |labels| labels.insert(INJECTED.to_owned(), "true".into()));
            let status = status(plan, installation);
            in_object(metadata, "annotations", |notes| notes.insert(STATUS.to_owned(), status.into()));
        });
        let sidecar = sidecar::container(plan, settings, stripped.sidecar.as_ref(), installation);
        in_object(pod, "spec", |spec| {
            in_list(spec, List::Regular.key(), |containers| wrap_all(containers, List::Regular, plan));
            in_list(spec, List::Init.key(), |containers| {
                wrap_all(containers, List::Init, plan);
                containers.insert(0, sidecar);
            });
            in_list(spec, "volumes", |volumes| volumes.extend(sidecar::volumes(plan)));
        });
    }
    pod
}

fn wrap_all(containers: &mut [Value], list: List, plan: &Plan<'_>) {
    for guarded in plan.guarded.iter().filter(|guarded| guarded.list == list) {
        if let Some(container) = containers.get_mut(guarded.index).and_then(Value::as_object_mut) {
            wrap(container, guarded, plan);
        }
    }
}

/// Puts a container's command behind the guard.
fn wrap(container: &mut Map<String, Value>, guarded: &Guarded<'_>, plan: &Plan<'_>) {
    let name = &guarded.container.name;
    let mut command = vec![GUARD_PATH.to_owned(), "guard".to_owned(), "--container".to_owned(), name.clone()];
    let message_path = guarded.container.termination_message_path.as_deref();
    if let Some(path) = message_path.filter(|path| *path != DEFAULT_TERMINATION_MESSAGE_PATH) {
        command.extend(["--termination-message-path".to_owned(), sidecar::literal(path)]);
    }
    command.push("--".to_owned());
    container.insert("command".to_owned(), command.into());
    container.insert("args".to_owned(), guarded.line.clone().into());
    let socket = format!("{}/{}", paths::SHARED_DIR, paths::LEASE_SOCKET);
    let variables = [
        (paths::ENV_RESOURCE, plan.settings.resource.to_string()),
        (paths::ENV_SOCKET, socket),
        (paths::ENV_DIR, paths::SHARED_DIR.to_owned()),
    ];
    // First, so that the container's own variables may refer to them.
    let variables = variables.map(|(name, value)| json!({"name": name, "value": value}));
    in_list(container, "env", |list| drop(list.splice(0..0, variables)));
    let mount = json!({"name": SHARED_VOLUME, "mountPath": paths::SHARED_DIR, "readOnly": true});
    in_list(container, "volumeMounts", |mounts| mounts.push(mount));
    beside::wrap(container);
    if let Some(codes) = restarted_unless(plan).filter(|_| guarded.list == List::Regular) {
        container.insert("restartPolicy".to_owned(), "Never".into());
        let exit_codes = json!({"operator": "NotIn", "values": codes});
        let rules = json!([{"action": "Restart", "exitCodes": exit_codes}]);
        container.insert("restartPolicyRules".to_owned(), rules);
    }
}

/// The exit codes after which a container must not come back, so that its pod fails and its owner makes a new
/// one; `None` where the pod needs no rules of ours. Rules come before the pod's policy, so 0 must be named
/// where that lets a container complete.
fn restarted_unless(plan: &Plan<'_>) -> Option<Vec<u8>> {
    match (plan.settings.after_loss, plan.settings.restart_policy) {
        (AfterLoss::Fail, RestartPolicy::Always) => Some(vec![exit::LOST, exit::PLANNED_END]),
        (AfterLoss::Fail, RestartPolicy::OnFailure) => Some(vec![0, exit::LOST, exit::PLANNED_END]),
        _ => None,
    }
}

/// What the pod's annotation says about how it was injected, for people and tools.
fn status(plan: &Plan<'_>, installation: &Installation) -> String {
    let settings = &plan.settings;
    let mode = match settings.standby.mode {
        StandbyMode::Warm => "Warm",
        StandbyMode::Cold => "Cold",
    };
    let after_loss = match settings.after_loss {
        AfterLoss::Fail => "Fail",
        AfterLoss::Wait => "Wait",
        AfterLoss::Replace => "Replace",
    };
    json!({
        "version": installation.version,
        "leaseGeneration": settings.lease_generation,
        "containers": settings.containers,
        "guard": {"kind": "Entrypoint", "why": "every guarded container's command is known"},
        "standby": {"mode": mode, "ready": settings.standby.ready, "why": plan.standby_why},
        "afterLoss": after_loss,
    })
    .to_string()
}

/// Changes the object under a key, made if it is not there.
fn in_object<T>(
    parent: &mut Map<String, Value>,
    key: &str,
    change: impl FnOnce(&mut Map<String, Value>) -> T,
) {
    let mut object = match parent.remove(key) {
        Some(Value::Object(object)) => object,
        _ => Map::new(),
    };
    change(&mut object);
    parent.insert(key.to_owned(), Value::Object(object));
}

/// Changes the list under a key, made if it is not there.
fn in_list<T>(parent: &mut Map<String, Value>, key: &str, change: impl FnOnce(&mut Vec<Value>) -> T) {
    let mut list = match parent.remove(key) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    change(&mut list);
    parent.insert(key.to_owned(), Value::Array(list));
}
