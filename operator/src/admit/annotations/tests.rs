use std::collections::BTreeMap;

use super::{PodAnnotations, of_labels, of_pod, of_workload};

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| (format!("fencedlease.dev/{key}"), (*value).to_owned())).collect()
}

fn pod(pairs: &[(&str, &str)]) -> Result<PodAnnotations, String> {
    let texts = |problems: Vec<super::Problem>| problems.iter().map(ToString::to_string).collect::<Vec<_>>();
    of_pod("metadata", &map(pairs)).map_err(|problems| texts(problems).join("\n"))
}

#[test]
fn every_annotation_of_a_pod_is_read() {
    let parsed = pod(&[
        ("lease", "report"),
        ("containers", "app, worker"),
        ("command", r#"{"app": ["/bin/app", "-x"]}"#),
        ("guard", "Auto"),
        ("sidecar-cpu-request", "5m"),
        ("sidecar-cpu-limit", "100m"),
        ("sidecar-memory", "64Mi"),
        ("log-level", "info,fencedlease::hold=debug"),
        ("status", "{"),
    ])
    .unwrap();
    assert_eq!(parsed.lease.as_deref(), Some("report"));
    assert_eq!(parsed.containers.unwrap().into_iter().collect::<Vec<_>>(), ["app", "worker"]);
    assert_eq!(parsed.commands["app"], ["/bin/app", "-x"]);
    assert_eq!(parsed.sidecar_cpu_request.as_deref(), Some("5m"));
    assert_eq!(parsed.sidecar_cpu_limit.as_deref(), Some("100m"));
    assert_eq!(parsed.sidecar_memory.as_deref(), Some("64Mi"));
    assert_eq!(parsed.log_level.as_deref(), Some("info,fencedlease::hold=debug"));
}

#[test]
fn annotations_of_others_are_not_looked_at() {
    let others = BTreeMap::from([("fencedlease.development/lease".to_owned(), "?".to_owned())]);
    assert_eq!(of_pod("metadata", &others).unwrap(), PodAnnotations::default());
}

#[test]
fn a_wrong_value_is_answered_with_the_field_and_what_is_accepted() {
    let cases = [
        ("lease", "Report", "the name of a FencedLease"),
        ("lease", "", "the name of a FencedLease"),
        ("containers", "app,,b", "leave no empty place"),
        ("containers", "app,app", "Name \"app\" once"),
        ("command", "/bin/app", "Correct the JSON"),
        ("command", r#"{"app": "/bin/app"}"#, "Correct the JSON"),
        ("command", r#"{"app": []}"#, "Give app a program"),
        ("command", r#"{"app": [""]}"#, "Give app a program"),
        ("guard", "Namespace", "comes with a later release"),
        ("guard", "entrypoint", "Auto or Entrypoint"),
        ("sidecar-cpu-limit", "lots", "a quantity of CPU"),
        ("sidecar-cpu-request", "0", "a quantity of CPU"),
        ("sidecar-memory", "1Mi", "at least 24Mi"),
        ("log-level", "verbose", "off, error, warn"),
        ("log-level", "info,x=$(HOME)", "off, error, warn"),
    ];
    for (key, value, text) in cases {
        let message = pod(&[(key, value)]).unwrap_err();
        assert!(message.contains(text), "{key}={value}: {message}");
        assert!(message.contains(&format!("metadata.annotations[fencedlease.dev/{key}]")), "{message}");
    }
}

#[test]
fn a_typo_is_refused_with_the_name_that_was_meant() {
    let message = pod(&[("leas", "report")]).unwrap_err();
    assert!(message.contains("Did you mean fencedlease.dev/lease?"), "{message}");
    let message = pod(&[("sidecar-image", "evil")]).unwrap_err();
    assert!(message.contains("not an annotation that FencedLease knows"), "{message}");
}

#[test]
fn a_field_of_the_fenced_lease_is_no_typo_of_an_annotation() {
    for key in ["ttl", "maxHold", "redis", "image"] {
        let message = pod(&[(key, "15s")]).unwrap_err();
        assert!(!message.contains("Did you mean"), "{message}");
        assert!(message.contains("fields of the FencedLease"), "{message}");
    }
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let message = pod(&[("leas", "report"), ("guard", "x"), ("log-level", "x")]).unwrap_err();
    assert_eq!(message.lines().count(), 3, "{message}");
}

#[test]
fn a_cpu_request_above_the_limit_is_refused() {
    let message = pod(&[("sidecar-cpu-request", "1"), ("sidecar-cpu-limit", "500m")]).unwrap_err();
    assert!(message.contains("at most fencedlease.dev/sidecar-cpu-limit, which is 500m"), "{message}");
}

#[test]
fn an_annotation_in_the_wrong_place_is_told_where_it_belongs() {
    let message = pod(&[("allow-overlap", "true")]).unwrap_err();
    assert!(message.contains("Move it to the workload's own metadata"), "{message}");
    let problems = of_workload(&map(&[("containers", "app")])).unwrap_err();
    assert!(problems[0].to_string().contains("Move it to the pod template"), "{}", problems[0]);
    let problems = of_workload(&map(&[("allow-overlap", "yes")])).unwrap_err();
    assert!(problems[0].to_string().contains("\"true\" or \"false\""), "{}", problems[0]);
}

#[test]
fn a_label_that_should_be_an_annotation_is_refused_and_our_own_is_not() {
    assert_eq!(of_labels("metadata", &map(&[("injected", "true")])), []);
    let problems = of_labels("metadata", &map(&[("lease", "report"), ("x", "")]));
    assert!(problems[0].to_string().contains("as an annotation, not as a label"), "{}", problems[0]);
    assert!(problems[1].to_string().contains("Remove the label"), "{}", problems[1]);
}
