//! What users write on pods and workloads: a line `KEY=VALUE` for each annotation or label.

use std::collections::BTreeMap;

use fencedlease_operator::admit::annotations::{ALLOW_OVERLAP, COPIED};
use fencedlease_operator::admit::annotations::{
    COMMAND, CONTAINERS, GUARD, INJECTED, LEASE, LOG_LEVEL, PREFIX, PodAnnotations, SIDECAR_CPU_LIMIT,
    SIDECAR_CPU_REQUEST, SIDECAR_MEMORY, STATUS, WorkloadAnnotations, of_labels, of_pod, of_workload,
};
use fencedlease_operator::admit::{Problem, quantity};

use crate::is_one_line;

pub(crate) const WORDS: &[&str] = &[
    "fencedlease.dev/",
    "fencedlease.dev/lease=report\n",
    "fencedlease.dev/containers=app,log\n",
    "fencedlease.dev/command={\"app\": [\"/bin/app\"]}\n",
    "fencedlease.dev/guard=Auto\n",
    "fencedlease.dev/guard=Namespace\n",
    "fencedlease.dev/sidecar-cpu-request=10m\n",
    "fencedlease.dev/sidecar-cpu-limit=1\n",
    "fencedlease.dev/sidecar-memory=64Mi\n",
    "fencedlease.dev/log-level=info,fencedlease=debug\n",
    "fencedlease.dev/allow-overlap=true\n",
    "fencedlease.dev/status={}\n",
    "fencedlease.dev/copied=report\n",
    "fencedlease.dev/injected=true\n",
    "team=shop\n",
    "\\n",
    "1e3",
    "Ki",
    "Mi",
    "Gi",
    "0.001",
    "64",
    "off",
    "error",
    "warn",
    "debug",
    "trace",
];

/// The longest text about one problem, in characters.
const MOST_TEXT: usize = 2000;
const PLACE: &str = "spec.template.metadata";

type Keys = BTreeMap<String, String>;

pub(crate) fn run(bytes: &[u8]) {
    let keys = keys(&String::from_utf8_lossy(bytes));
    let ours: Keys = keys
        .iter()
        .filter(|(key, _)| key.starts_with(PREFIX))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    check_pod(&keys, &ours);
    check_workload(&keys, &ours);
    let wrong = of_labels(PLACE, &keys);
    let others = ours.keys().filter(|key| *key != INJECTED).count();
    assert_eq!(wrong.len(), others, "each label under our prefix is wrong but for {INJECTED}: {ours:?}");
    check_problems(&wrong, "labels", &ours);
}

/// A value may have a newline, written as `\n`.
fn keys(text: &str) -> Keys {
    let pairs = text.split('\n').filter_map(|line| line.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), value.replace("\\n", "\n"))).collect()
}

fn check_pod(keys: &Keys, ours: &Keys) {
    let read = of_pod(PLACE, keys);
    assert_eq!(read, of_pod(PLACE, ours), "a key that is not ours counts");
    match read {
        Ok(parsed) => {
            check_values(&parsed);
            let again = written(&parsed);
            assert_eq!(of_pod(PLACE, &again), Ok(parsed), "{again:?} was written");
            for key in ours.keys().filter(|key| ![STATUS, GUARD].contains(&key.as_str())) {
                assert!(again.contains_key(key), "{key} was overlooked");
            }
        }
        Err(problems) => check_problems(&problems, "annotations", ours),
    }
}

fn check_values(parsed: &PodAnnotations) {
    if let Some(name) = &parsed.lease {
        check_name(name);
    }
    for name in parsed.containers.iter().flatten() {
        assert!(!name.is_empty() && name.trim() == name && !name.contains(','), "{name:?}");
    }
    for (name, command) in &parsed.commands {
        assert!(command.first().is_some_and(|program| !program.is_empty()), "{name} has no program");
    }
    let amount = |text: &Option<String>| text.as_deref().map(|text| quantity::parse(text).unwrap());
    let (request, limit) = (amount(&parsed.sidecar_cpu_request), amount(&parsed.sidecar_cpu_limit));
    for cpus in [request, limit].into_iter().flatten() {
        assert!((0.001..=64.0).contains(&cpus), "{cpus} processors");
    }
    if let (Some(request), Some(limit)) = (request, limit) {
        assert!(request <= limit, "{request} of at most {limit} processors");
    }
    if let Some(bytes) = amount(&parsed.sidecar_memory) {
        assert!((25_165_824.0..=1e12).contains(&bytes), "{bytes} bytes");
    }
}

fn check_name(name: &str) {
    let label = |label: &str| {
        let (first, last) = (label.chars().next(), label.chars().next_back());
        let ends = [first, last].into_iter().all(|end| end.is_some_and(|end| end.is_ascii_alphanumeric()));
        ends && label.chars().all(|char| matches!(char, 'a'..='z' | '0'..='9' | '-'))
    };
    assert!(name.len() <= 253 && name.split('.').all(label), "{name:?} was taken for a name");
}

fn written(parsed: &PodAnnotations) -> Keys {
    let PodAnnotations {
        lease,
        containers,
        commands,
        sidecar_cpu_request,
        sidecar_cpu_limit,
        sidecar_memory,
        log_level,
    } = parsed.clone();
    let containers = containers.map(|names| names.into_iter().collect::<Vec<_>>().join(","));
    // No command, and none for any container, are the same.
    let commands = Some(serde_json::to_string(&commands).unwrap());
    let all = [
        (LEASE, lease),
        (CONTAINERS, containers),
        (COMMAND, commands),
        (SIDECAR_CPU_REQUEST, sidecar_cpu_request),
        (SIDECAR_CPU_LIMIT, sidecar_cpu_limit),
        (SIDECAR_MEMORY, sidecar_memory),
        (LOG_LEVEL, log_level),
    ];
    all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

fn check_workload(keys: &Keys, ours: &Keys) {
    let read = of_workload(keys);
    assert_eq!(read, of_workload(ours), "a key that is not ours counts");
    match read {
        Ok(WorkloadAnnotations { lease, allow_overlap, copied }) => {
            if let Some(name) = &lease {
                check_name(name);
            }
            let value = |key: &str| ours.get(key).cloned();
            assert_eq!(lease, value(LEASE));
            assert_eq!(copied, value(COPIED));
            assert_eq!(allow_overlap, value(ALLOW_OVERLAP).is_some_and(|value| value == "true"));
            let known = [LEASE, COPIED, ALLOW_OVERLAP];
            assert!(ours.keys().all(|key| known.contains(&key.as_str())), "overlooked: {ours:?}");
        }
        Err(problems) => check_problems(&problems, "annotations", ours),
    }
}

/// Each names a key that is there, on one line that a person can read to its end.
fn check_problems(problems: &[Problem], of: &str, ours: &Keys) {
    assert!(!problems.is_empty() || of == "labels", "refused without a reason");
    for text in problems.iter().map(ToString::to_string) {
        assert!(is_one_line(&text), "{text:?}");
        assert!(text.chars().count() <= MOST_TEXT, "{} bytes: {text:.300}", text.len());
        // A key of any length is cut, and its control characters are blanks.
        let begins = |key: &&String| {
            let shown: String =
                key.chars().take(70).map(|char| if char.is_control() { ' ' } else { char }).collect();
            text.contains(&format!(".{of}[{shown}"))
        };
        assert!(ours.keys().any(|key| begins(&key)), "no field is named: {text}");
    }
}
