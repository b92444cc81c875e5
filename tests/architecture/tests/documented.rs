//! What users meet by name stands in `docs/`.
#![allow(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::collections::BTreeSet;
use std::fs;

use fencedlease_architecture::root;
use fencedlease_wire::{LossReason, PlannedEnd, exit, paths};

fn page(name: &str) -> String {
    fs::read_to_string(root().unwrap().join("docs").join(name)).unwrap()
}

#[test]
fn every_reason_is_explained() {
    let page = page("events-and-conditions.md");
    let planned =
        [PlannedEnd::MaxHold, PlannedEnd::StepDown, PlannedEnd::WorkloadEnded, PlannedEnd::PodDeleted];
    let reasons = LossReason::ALL.map(LossReason::as_str).into_iter().chain(planned.map(PlannedEnd::as_str));
    let missing: Vec<&str> = reasons.filter(|reason| !page.contains(reason)).collect();
    assert!(missing.is_empty(), "docs/events-and-conditions.md lacks {missing:?}");
}

#[test]
fn every_exit_code_of_ours_is_explained() {
    let page = page("exit-codes.md");
    for code in [
        exit::OTHER_CONTAINER_ENDED,
        exit::LOST,
        exit::PLANNED_END,
        exit::CANNOT_GUARD,
        exit::BAD_SETTINGS,
        exit::NOT_EXECUTABLE,
        exit::NOT_FOUND,
    ] {
        let has_row = page.lines().any(|line| line.starts_with('|') && line.contains(&code.to_string()));
        assert!(has_row, "docs/exit-codes.md has no row for {code}");
    }
}

#[test]
fn every_file_and_variable_of_the_workload_is_explained() {
    let page = page("socket.md");
    for name in [
        paths::SHARED_DIR,
        paths::LEASE_SOCKET,
        paths::FENCE_FILE,
        paths::LOST_FILE,
        paths::ENV_RESOURCE,
        paths::ENV_SOCKET,
        paths::ENV_DIR,
        paths::ENV_FENCE,
        paths::ENV_HOLDING,
    ] {
        assert!(page.contains(name), "docs/socket.md lacks {name}");
    }
}

#[test]
fn the_page_about_metrics_has_those_that_there_are() {
    let page = page("metrics.md");
    let mut known = BTreeSet::new();
    for source in ["sidecar/src/hold/metrics.rs", "operator/src/metrics.rs", "gate/src/metrics.rs"] {
        let before = known.len();
        let names = strings(source).into_iter().filter(|text| is_name(text));
        known.extend(names.map(|name| format!("fencedlease_{name}")));
        assert!(known.len() > before + 5, "{source} names its metrics in another way now: {known:?}");
    }
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let explained = rows.filter_map(|row| row.split(['{', '`']).next().map(str::to_owned)).collect();
    assert_eq!(known, explained, "metrics in the code, and on docs/metrics.md");
}

#[test]
fn every_annotation_is_explained() {
    let page = page("annotations.md");
    let names = strings("operator/src/admit/annotations.rs");
    let names: Vec<&String> = names.iter().filter(|text| text.starts_with("fencedlease.dev/")).collect();
    assert!(names.len() > 10, "annotations are named in another way now: {names:?}");
    let missing: Vec<&&String> = names.iter().filter(|name| !page.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "docs/annotations.md lacks {missing:?}");
}

#[test]
fn every_reason_of_a_condition_or_event_is_explained() {
    let page = page("events-and-conditions.md");
    let is_reason = |text: &&String| {
        text.len() > 5
            && text.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase())
            && text.bytes().all(|byte| byte.is_ascii_alphabetic())
    };
    let not_reasons = ["Unknown", "Deployment", "StatefulSet", "DaemonSet", "RollOut"];
    for source in ["operator/src/status/conditions.rs", "operator/src/events.rs"] {
        let texts = strings(source);
        let is_one = |text: &&String| is_reason(text) && !not_reasons.contains(&text.as_str());
        let reasons: Vec<&String> = texts.iter().filter(is_one).collect();
        assert!(reasons.len() > 5, "{source} names its reasons in another way now: {reasons:?}");
        let missing: Vec<&&String> =
            reasons.iter().filter(|reason| !page.contains(reason.as_str())).collect();
        assert!(missing.is_empty(), "docs/events-and-conditions.md lacks {missing:?} of {source}");
    }
}

/// The strings in a file: every other piece between quotation marks.
fn strings(source: &str) -> Vec<String> {
    let text = fs::read_to_string(root().unwrap().join(source)).unwrap();
    text.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

fn is_name(text: &str) -> bool {
    text.contains('_') && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

#[test]
fn links_between_pages_lead_somewhere() {
    let root = root().unwrap();
    for (path, text) in fencedlease_architecture::files(&[".md"]).unwrap() {
        let folder = root.join(path.parent().unwrap());
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap();
            let is_elsewhere = file.is_empty() || file.contains("://");
            assert!(is_elsewhere || folder.join(file).exists(), "{}: {target}", path.display());
        }
    }
}
