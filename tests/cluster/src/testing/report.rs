//! What a person wants to see of a namespace when a test in it has failed.

use crate::command::tail;
use crate::kubectl::Kubectl;

/// How many lines of each list and log are shown.
const LINES: usize = 40;

/// Pods, events, FencedLeases and the last logs of a namespace, as text. What cannot be had says why.
pub fn report(kubectl: &Kubectl, namespace: &str) -> String {
    let mut text = format!("=== namespace {namespace} ===\n");
    let lists: [(&str, &[&str]); 4] = [
        ("pods", &["get", "pods", "--output=wide"]),
        ("workloads", &["get", "deployments,statefulsets,daemonsets,jobs"]),
        ("fencedleases", &["get", "fencedleases", "--output=yaml"]),
        ("events", &["get", "events", "--sort-by=.metadata.creationTimestamp"]),
    ];
    for (title, arguments) in lists {
        let shown = in_namespace(kubectl, namespace, arguments);
        text.push_str(&section(title, &shown));
    }
    let names = in_namespace(kubectl, namespace, &["get", "pods", "--output=name"]);
    for pod in names.lines().filter(|line| line.starts_with("pod/")) {
        let logs = ["logs", pod, "--all-containers", "--prefix", "--tail=25"];
        text.push_str(&section(&format!("logs of {pod}"), &in_namespace(kubectl, namespace, &logs)));
        let before = ["logs", pod, "--all-containers", "--prefix", "--tail=25", "--previous"];
        let before = in_namespace(kubectl, namespace, &before);
        if !before.contains("previous terminated container") {
            text.push_str(&section(&format!("logs of {pod}, the life before"), &before));
        }
    }
    text
}

fn in_namespace(kubectl: &Kubectl, namespace: &str, arguments: &[&str]) -> String {
    let mut all = vec!["--namespace", namespace];
    all.extend(arguments);
    kubectl.run(&all).unwrap_or_else(|error| error.to_string())
}

fn section(title: &str, text: &str) -> String {
    format!("--- {title}\n{}\n", tail(text.trim_end(), LINES))
}
