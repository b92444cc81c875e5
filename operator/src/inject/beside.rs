//! What of the user's runs in a container beside its command: probes and hooks with `exec`. Each is put behind the
//! guard's *while-active*, which runs it only under the lease, and is taken out again where a pod comes once more.

use serde_json::{Map, Value};

use super::names::WHILE_ACTIVE;

/// Where such commands stand in a container, and what *while-active* calls them.
pub(super) const PARTS: [(&[&str], &str); 5] = [
    (&["livenessProbe"], "liveness-probe"),
    (&["readinessProbe"], "readiness-probe"),
    (&["startupProbe"], "startup-probe"),
    (&["lifecycle", "postStart"], "post-start"),
    (&["lifecycle", "preStop"], "pre-stop"),
];

/// Puts the commands of probes and hooks behind *while-active*.
pub(super) fn wrap(container: &mut Map<String, Value>) {
    for (path, kind) in PARTS {
        if let Some(command) = command(container, path).filter(|command| !command.is_empty()) {
            let ours = WHILE_ACTIVE.into_iter().chain([kind, "--"]).map(Value::from);
            command.splice(0..0, ours);
        }
    }
}

/// Gives the user their commands back.
pub(super) fn unwrap(container: &mut Map<String, Value>) {
    for (path, _) in PARTS {
        let Some(command) = command(container, path) else { continue };
        while let Some(length) = ours(command) {
            command.drain(..length);
        }
    }
}

/// How much of a command is ours, if it begins with that.
fn ours(command: &[Value]) -> Option<usize> {
    let begins =
        command.len() > WHILE_ACTIVE.len() && command.iter().zip(WHILE_ACTIVE).all(|(it, ours)| it == ours);
    let length = WHILE_ACTIVE.len() + 2;
    (begins && command.get(length - 1).is_some_and(|text| text == "--")).then_some(length)
}

fn command<'a>(container: &'a mut Map<String, Value>, path: &[&str]) -> Option<&'a mut Vec<Value>> {
    let (first, rest) = path.split_first()?;
    let part = rest.iter().try_fold(container.get_mut(*first)?, |part, key| part.get_mut(key))?;
    part.get_mut("exec")?.get_mut("command")?.as_array_mut()
}
