//! What do the annotations under our prefix ask for? They are parsed once; nothing later reads their text.

use std::collections::{BTreeMap, BTreeSet};

use super::problem::{Problem, nearest, shown};
use super::quantity;

/// What every annotation and label of ours begins with.
pub const PREFIX: &str = "fencedlease.dev/";
/// On a pod template: the FencedLease that guards it. On a workload: copied into its template.
pub const LEASE: &str = "fencedlease.dev/lease";
/// On a pod template: which containers are guarded.
pub const CONTAINERS: &str = "fencedlease.dev/containers";
/// On a pod template: the commands of images, where the spec has none.
pub const COMMAND: &str = "fencedlease.dev/command";
/// On a pod template: what kills in the pod.
pub const GUARD: &str = "fencedlease.dev/guard";
/// On a pod template: the sidecar's CPU request.
pub const SIDECAR_CPU_REQUEST: &str = "fencedlease.dev/sidecar-cpu-request";
/// On a pod template: the sidecar's CPU limit.
pub const SIDECAR_CPU_LIMIT: &str = "fencedlease.dev/sidecar-cpu-limit";
/// On a pod template: the sidecar's memory, requested and at most.
pub const SIDECAR_MEMORY: &str = "fencedlease.dev/sidecar-memory";
/// On a pod template: what the sidecar logs.
pub const LOG_LEVEL: &str = "fencedlease.dev/log-level";
/// On a workload: guarded and unguarded pods may run side by side.
pub const ALLOW_OVERLAP: &str = "fencedlease.dev/allow-overlap";
/// Written by us on a pod: how it was injected.
pub const STATUS: &str = "fencedlease.dev/status";
/// Written by us on a workload: the annotation in its template is our copy of this name.
pub const COPIED: &str = "fencedlease.dev/copied";
/// Label written by us on a pod.
pub const INJECTED: &str = "fencedlease.dev/injected";

const ON_TEMPLATES: [&str; 8] =
    [LEASE, CONTAINERS, COMMAND, GUARD, SIDECAR_CPU_REQUEST, SIDECAR_CPU_LIMIT, SIDECAR_MEMORY, LOG_LEVEL];
const ON_WORKLOADS: [&str; 3] = [LEASE, ALLOW_OVERLAP, COPIED];
/// Below this the sidecar, whose memory holds the guard's binary as well, does not start.
const LEAST_SIDECAR_MEMORY: f64 = 24.0 * 1024.0 * 1024.0;

/// What the annotations of a pod template ask for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PodAnnotations {
    /// The FencedLease's name.
    pub lease: Option<String>,
    /// The guarded containers, where the user names them.
    pub containers: Option<BTreeSet<String>>,
    /// Commands of images, by container.
    pub commands: BTreeMap<String, Vec<String>>,
    /// The sidecar's CPU request.
    pub sidecar_cpu_request: Option<String>,
    /// The sidecar's CPU limit.
    pub sidecar_cpu_limit: Option<String>,
    /// The sidecar's memory, requested and at most.
    pub sidecar_memory: Option<String>,
    /// What the sidecar logs.
    pub log_level: Option<String>,
}

/// What the annotations of a workload's own metadata ask for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WorkloadAnnotations {
    /// The FencedLease's name.
    pub lease: Option<String>,
    /// Guarded and unguarded pods may run side by side.
    pub allow_overlap: bool,
    /// The name whose copy in the template is ours.
    pub copied: Option<String>,
}

/// Reads the annotations of a pod or a pod template. `place` begins the fields' names, such as `metadata`.
pub fn of_pod(place: &str, annotations: &BTreeMap<String, String>) -> Result<PodAnnotations, Vec<Problem>> {
    let mut parsed = PodAnnotations::default();
    let mut problems = Vec::new();
    for (key, value) in ours(annotations) {
        let field = field(place, key);
        let mut keep = |result: Result<(), Problem>| problems.extend(result.err());
        match key {
            LEASE => keep(lease_name(&field, value).map(|name| parsed.lease = Some(name))),
            CONTAINERS => keep(container_names(&field, value).map(|names| parsed.containers = Some(names))),
            COMMAND => keep(commands(&field, value).map(|commands| parsed.commands = commands)),
            GUARD => keep(guard(&field, value)),
            SIDECAR_CPU_REQUEST => keep(cpu(&field, value).map(|cpu| parsed.sidecar_cpu_request = Some(cpu))),
            SIDECAR_CPU_LIMIT => keep(cpu(&field, value).map(|cpu| parsed.sidecar_cpu_limit = Some(cpu))),
            SIDECAR_MEMORY => keep(memory(&field, value).map(|memory| parsed.sidecar_memory = Some(memory))),
            LOG_LEVEL => keep(log_level(&field, value).map(|level| parsed.log_level = Some(level))),
            // Ours, and written anew whatever it says.
            STATUS => {}
            _ => keep(Err(misplaced(&field, key, &ON_TEMPLATES, &ON_WORKLOADS))),
        }
    }
    problems.extend(cpu_order(place, &parsed));
    if problems.is_empty() { Ok(parsed) } else { Err(problems) }
}

/// Reads the annotations of a workload's own metadata.
pub fn of_workload(annotations: &BTreeMap<String, String>) -> Result<WorkloadAnnotations, Vec<Problem>> {
    let mut parsed = WorkloadAnnotations::default();
    let mut problems = Vec::new();
    for (key, value) in ours(annotations) {
        let field = field("metadata", key);
        match key {
            LEASE => match lease_name(&field, value) {
                Ok(name) => parsed.lease = Some(name),
                Err(problem) => problems.push(problem),
            },
            ALLOW_OVERLAP if value == "true" || value == "false" => parsed.allow_overlap = value == "true",
            ALLOW_OVERLAP => {
                let next = "Write \"true\" if guarded and unguarded pods may run side by side for a while.";
                problems.push(Problem::new(&field, value, "\"true\" or \"false\"", next));
            }
            COPIED => parsed.copied = Some(value.to_owned()),
            _ => problems.push(misplaced(&field, key, &ON_WORKLOADS, &ON_TEMPLATES)),
        }
    }
    if problems.is_empty() { Ok(parsed) } else { Err(problems) }
}

/// What is wrong with labels under our prefix: what asks for something is an annotation, and a label that
/// is overlooked would leave a pod unguarded.
pub fn of_labels(place: &str, labels: &BTreeMap<String, String>) -> Vec<Problem> {
    ours(labels)
        .filter(|(key, _)| *key != INJECTED)
        .map(|(key, value)| {
            let known = ON_TEMPLATES.contains(&key) || ON_WORKLOADS.contains(&key);
            let next = if known {
                format!("Write {key} as an annotation, not as a label.")
            } else {
                format!("Remove the label {}.", shown(key))
            };
            let field = format!("{place}.labels[{}]", shown(key));
            Problem::new(field, value, &format!("no label under {PREFIX} other than {INJECTED}"), &next)
        })
        .collect()
}

/// The keys under our prefix, in order.
pub fn ours(keys: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str)> {
    keys.iter().filter(|(key, _)| key.starts_with(PREFIX)).map(|(key, value)| (key.as_str(), value.as_str()))
}

/// Whether `name` can be a FencedLease's, a Secret's or a ConfigMap's: a DNS subdomain.
pub fn is_object_name(name: &str) -> bool {
    let label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        label.bytes().all(plain) && !label.is_empty() && !label.starts_with('-') && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

fn field(place: &str, key: &str) -> String {
    format!("{place}.annotations[{}]", shown(key))
}

fn misplaced(field: &str, key: &str, here: &[&'static str], elsewhere: &[&'static str]) -> Problem {
    if elsewhere.contains(&key) {
        let (place, other) = if here.contains(&ALLOW_OVERLAP) {
            ("the pod template (spec.template.metadata.annotations)", "a workload's own metadata")
        } else {
            ("the workload's own metadata (metadata.annotations)", "a pod template")
        };
        return Problem::said(format!("{field} has no effect on {other}. Move it to {place}."));
    }
    // The prefix is the same in all, and would make any two names look alike.
    let bare = |name: &'static str| name.strip_prefix(PREFIX).unwrap_or(name);
    let known = here.iter().chain(elsewhere).copied().map(bare);
    let next = match nearest(key.strip_prefix(PREFIX).unwrap_or(key), known) {
        Some(name) => format!("Did you mean {PREFIX}{name}? Else remove it."),
        None => {
            "Remove it, or use one of these names; timings, Redis and gates are fields of the FencedLease."
                .to_owned()
        }
    };
    let accepted = here.iter().filter(|name| **name != COPIED).copied().collect::<Vec<_>>().join(", ");
    Problem::new(field, "not an annotation that FencedLease knows", &accepted, &next)
}

fn lease_name(field: &str, value: &str) -> Result<String, Problem> {
    if is_object_name(value) {
        return Ok(value.to_owned());
    }
    let accepted =
        "the name of a FencedLease of the same namespace (lower-case letters, digits, '-' and '.')";
    let next = "See the names with kubectl get fencedleases.";
    Err(Problem::new(field, &format!("{value:?}"), accepted, next))
}

fn container_names(field: &str, value: &str) -> Result<BTreeSet<String>, Problem> {
    let wrong = |next: &str| {
        Problem::new(
            field,
            &format!("{value:?}"),
            "names of containers, separated by commas, such as app,worker",
            next,
        )
    };
    let mut names = BTreeSet::new();
    for name in value.split(',').map(str::trim) {
        if name.is_empty() {
            return Err(wrong("Name at least one container and leave no empty place between commas."));
        }
        if !names.insert(name.to_owned()) {
            return Err(wrong(&format!("Name {name:?} once.")));
        }
    }
    Ok(names)
}

fn commands(field: &str, value: &str) -> Result<BTreeMap<String, Vec<String>>, Problem> {
    let accepted =
        r#"JSON that gives each container's command as a list of texts, such as {"app": ["/bin/app"]}"#;
    let wrong = |next: &str| Problem::new(field, value, accepted, next);
    let commands: BTreeMap<String, Vec<String>> =
        serde_json::from_str(value).map_err(|error| wrong(&format!("Correct the JSON ({error}).")))?;
    let empty = commands.iter().find(|(_, command)| command.first().is_none_or(String::is_empty));
    match empty {
        Some((name, _)) => Err(wrong(&format!("Give {name} a program to run as the list's first text."))),
        None => Ok(commands),
    }
}

fn guard(field: &str, value: &str) -> Result<(), Problem> {
    let accepted = "Auto or Entrypoint";
    match value {
        "Auto" | "Entrypoint" => Ok(()),
        "Namespace" => {
            let next = format!(
                "The namespace guard comes with a later release: remove the annotation, and give each guarded container's command in the spec or in {COMMAND}."
            );
            Err(Problem::new(field, value, accepted, &next))
        }
        _ => {
            Err(Problem::new(field, &format!("{value:?}"), accepted, "Write Auto, or remove the annotation."))
        }
    }
}

fn cpu(field: &str, value: &str) -> Result<String, Problem> {
    match quantity::parse(value) {
        Some(cores) if (0.001..=64.0).contains(&cores) => Ok(value.to_owned()),
        _ => {
            let accepted = "a quantity of CPU from 1m to 64, such as 10m";
            Err(Problem::new(field, &format!("{value:?}"), accepted, "Correct it, or remove the annotation."))
        }
    }
}

fn memory(field: &str, value: &str) -> Result<String, Problem> {
    match quantity::parse(value) {
        Some(bytes) if (LEAST_SIDECAR_MEMORY..=1e12).contains(&bytes) => Ok(value.to_owned()),
        _ => {
            let accepted = "a quantity of memory of at least 24Mi, such as 64Mi";
            Err(Problem::new(field, &format!("{value:?}"), accepted, "Correct it, or remove the annotation."))
        }
    }
}

/// A request above the limit is refused by the API server, with the sidecar's fields, which the user never wrote.
fn cpu_order(place: &str, parsed: &PodAnnotations) -> Option<Problem> {
    let request = parsed.sidecar_cpu_request.as_deref()?;
    let limit = parsed.sidecar_cpu_limit.as_deref()?;
    (quantity::parse(request)? > quantity::parse(limit)?).then(|| {
        let accepted = format!("at most {SIDECAR_CPU_LIMIT}, which is {limit}");
        Problem::new(field(place, SIDECAR_CPU_REQUEST), request, &accepted, "Lower it, or raise the limit.")
    })
}

fn log_level(field: &str, value: &str) -> Result<String, Problem> {
    let level = |text: &str| matches!(text, "off" | "error" | "warn" | "info" | "debug" | "trace");
    let target = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':')
    };
    let directive = |text: &str| match text.split_once('=') {
        Some((name, value)) => target(name) && level(value),
        None => level(text),
    };
    if value.len() <= 200 && value.split(',').all(directive) {
        return Ok(value.to_owned());
    }
    let accepted = "off, error, warn, info, debug or trace, also by part as in info,fencedlease=debug";
    Err(Problem::new(field, &format!("{value:?}"), accepted, "Write info, or remove the annotation."))
}

#[cfg(test)]
mod tests;
