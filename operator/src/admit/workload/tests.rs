use serde_json::{Value, json};

use super::{Admitted, Decision, WorkloadChange, WorkloadKind, decide};
use crate::admit::Refusal;

const LEASE: &str = "fencedlease.dev/lease";
const COPIED: &str = "fencedlease.dev/copied";

/// A Deployment with these annotations on itself and in its template.
fn deployment(own: &[(&str, &str)], template: &[(&str, &str)]) -> Value {
    let map = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), Value::from(*value)))
            .collect::<serde_json::Map<_, _>>()
    };
    json!({
        "metadata": {"name": "report", "annotations": map(own)},
        "spec": {
            "replicas": 2,
            "selector": {
                "matchLabels": {"app": "report"},
                "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}],
            },
            "strategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"annotations": map(template)}, "spec": {"containers": []}},
        },
    })
}

fn change(kind: WorkloadKind, new: &Value, old: Option<&Value>) -> Result<Decision, Refusal> {
    decide(WorkloadChange { kind, namespace: "shop", new, old })
}

fn settled(new: &Value, old: Option<&Value>) -> Admitted {
    match change(WorkloadKind::Deployment, new, old).unwrap() {
        Decision::Settled(admitted) => admitted,
        Decision::IfNoPodIsLeft(pending) => panic!("{pending:?}"),
    }
}

fn text(kind: WorkloadKind, new: &Value, old: &Value) -> String {
    change(kind, new, Some(old)).expect_err("this change must be refused").to_string()
}

/// The annotations of the object and of its template once the patch is applied.
fn after(new: &Value, admitted: &Admitted) -> (Value, Value) {
    let mut object = new.clone();
    json_patch::patch(&mut object, &admitted.patch).unwrap();
    (object["metadata"]["annotations"].clone(), object["spec"]["template"]["metadata"]["annotations"].clone())
}

#[test]
fn an_annotation_on_the_object_is_copied_marked_and_told_of() {
    let new = deployment(&[(LEASE, "a")], &[("team", "x")]);
    let admitted = settled(&new, None);
    let (own, template) = after(&new, &admitted);
    assert_eq!(own, json!({LEASE: "a", COPIED: "a"}));
    assert_eq!(template, json!({LEASE: "a", "team": "x"}));
    assert!(
        admitted.warnings[0].contains("Put it into the manifest's pod template too"),
        "{:?}",
        admitted.warnings
    );
    assert_eq!(admitted.lease.as_deref(), Some("a"));
}

#[test]
fn a_template_without_metadata_gets_it() {
    let mut new = deployment(&[(LEASE, "a")], &[]);
    new["spec"]["template"] = json!({"spec": {}});
    assert_eq!(after(&new, &settled(&new, None)).1, json!({LEASE: "a"}));
}

#[test]
fn a_copy_that_is_there_needs_nothing() {
    let new = deployment(&[(LEASE, "a"), (COPIED, "a")], &[(LEASE, "a")]);
    let admitted = settled(&new, Some(&new));
    assert_eq!(admitted.patch.0, []);
    assert_eq!(admitted.warnings, Vec::<String>::new());
}

#[test]
fn only_what_is_marked_as_ours_is_taken_out() {
    let mut new = deployment(&[(COPIED, "a")], &[(LEASE, "a"), ("team", "x")]);
    new["spec"]["strategy"]["type"] = "Recreate".into();
    let mut old = deployment(&[(LEASE, "a"), (COPIED, "a")], &[(LEASE, "a"), ("team", "x")]);
    let admitted = settled(&new, Some(&old));
    assert_eq!(after(&new, &admitted), (json!({}), json!({"team": "x"})));
    assert_eq!(admitted.lease, None);
    // The user's own stays, and is what guards.
    let new = deployment(&[], &[(LEASE, "a")]);
    old["metadata"]["annotations"] = json!({LEASE: "a"});
    let admitted = settled(&new, Some(&old));
    assert_eq!((admitted.patch.0, admitted.lease.as_deref()), (vec![], Some("a")));
    // So does one that was changed after we had copied it; the mark is stale.
    let new = deployment(&[(COPIED, "a")], &[(LEASE, "b")]);
    let old = deployment(&[(LEASE, "b"), (COPIED, "a")], &[(LEASE, "b")]);
    assert_eq!(after(&new, &settled(&new, Some(&old))), (json!({}), json!({LEASE: "b"})));
}

#[test]
fn two_different_names_are_refused_unless_the_other_is_our_old_copy() {
    let new = deployment(&[(LEASE, "a")], &[(LEASE, "b")]);
    let text = change(WorkloadKind::Deployment, &new, None).unwrap_err().to_string();
    assert!(text.contains("spec.template.metadata.annotations[fencedlease.dev/lease] is b"), "{text}");
    assert!(text.contains("which is a") && text.contains("give both the same name"), "{text}");
    let mut new = deployment(&[(LEASE, "a"), (COPIED, "b")], &[(LEASE, "b")]);
    new["spec"]["strategy"]["type"] = "Recreate".into();
    let old = deployment(&[(LEASE, "b"), (COPIED, "b")], &[(LEASE, "b")]);
    assert_eq!(
        after(&new, &settled(&new, Some(&old))),
        (json!({LEASE: "a", COPIED: "a"}), json!({LEASE: "a"}))
    );
}

#[test]
fn an_object_that_a_controller_owns_is_left_alone() {
    let mut new = deployment(&[(LEASE, "a"), ("fencedlease.dev/typo", "")], &[]);
    new["metadata"]["ownerReferences"] = json!([{"controller": true}]);
    assert_eq!(change(WorkloadKind::ReplicaSet, &new, None), Ok(Decision::Settled(Admitted::default())));
    new["metadata"]["ownerReferences"] = json!([{"controller": false}]);
    assert!(change(WorkloadKind::ReplicaSet, &new, None).is_err());
}

#[test]
fn typos_are_met_on_the_object_in_its_template_and_among_labels() {
    let mut new = deployment(&[("fencedlease.dev/leese", "a")], &[("fencedlease.dev/container", "a")]);
    new["spec"]["template"]["metadata"]["labels"] = json!({LEASE: "a"});
    let text = change(WorkloadKind::Deployment, &new, None).unwrap_err().to_string();
    for part in [
        "(3)",
        "metadata.annotations[fencedlease.dev/leese]",
        "fencedlease.dev/containers?",
        "not as a label",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn guarding_is_not_turned_on_or_off_or_over_under_a_rolling_update() {
    let (plain, a, b) =
        (deployment(&[], &[]), deployment(&[], &[(LEASE, "a")]), deployment(&[], &[(LEASE, "b")]));
    let cases = [
        (&plain, &a, "guarding by FencedLease a is turned on"),
        (&a, &plain, "guarding by FencedLease a is turned off"),
        (&a, &b, "the FencedLease is changed from a to b"),
    ];
    for (old, new, what) in cases {
        let text = text(WorkloadKind::Deployment, new, old);
        assert!(text.contains(what), "{text}");
        let command = r#"kubectl patch deployment report -n shop --type merge -p '{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}'"#;
        assert!(text.contains(command) && text.contains("fencedlease.dev/allow-overlap"), "{text}");
        let mut recreated = new.clone();
        recreated["spec"]["strategy"] = json!({"type": "Recreate"});
        settled(&recreated, Some(old));
        let mut meant = new.clone();
        meant["metadata"]["annotations"]["fencedlease.dev/allow-overlap"] = "true".into();
        assert!(settled(&meant, Some(old)).warnings[0].contains("side by side"));
    }
    // What is only copied counts like what is written.
    let annotated = deployment(&[(LEASE, "a")], &[]);
    assert!(text(WorkloadKind::Deployment, &annotated, &plain).contains("is turned on"));
}

#[test]
fn scaled_to_zero_the_pods_decide() {
    let mut old = deployment(&[], &[]);
    old["spec"]["replicas"] = 0.into();
    let new = deployment(&[], &[(LEASE, "a")]);
    let Decision::IfNoPodIsLeft(pending) = change(WorkloadKind::Deployment, &new, Some(&old)).unwrap() else {
        panic!("the pods were not asked for");
    };
    assert_eq!(pending.selector, "app=report,tier in (a,b)");
    assert!(pending.clone().with_pods_left(0).is_ok());
    let text = pending.with_pods_left(2).unwrap_err().to_string();
    assert!(text.contains("2 of its pods are still there"), "{text}");
    old["status"] = json!({"replicas": 1});
    assert!(change(WorkloadKind::Deployment, &new, Some(&old)).is_err());
    old["status"] = json!({"replicas": 0, "observedGeneration": 4});
    old["metadata"]["generation"] = 5.into();
    assert!(
        change(WorkloadKind::Deployment, &new, Some(&old)).is_err(),
        "its controller has not seen it yet"
    );
    old["metadata"]["generation"] = 4.into();
    assert!(change(WorkloadKind::Deployment, &new, Some(&old)).is_ok());
}

#[test]
fn each_kind_has_its_own_way() {
    let (mut old, new) = (deployment(&[], &[]), deployment(&[], &[(LEASE, "a")]));
    old["status"] = json!({"desiredNumberScheduled": 2, "currentNumberScheduled": 2});
    for kind in [WorkloadKind::StatefulSet, WorkloadKind::DaemonSet] {
        let text = text(kind, &new, &old);
        assert!(text.contains(&format!("kubectl patch {} report", kind.as_str().to_lowercase())), "{text}");
        let mut on_delete = new.clone();
        on_delete["spec"]["updateStrategy"] = json!({"type": "OnDelete"});
        let Ok(Decision::Settled(admitted)) = change(kind, &on_delete, Some(&old)) else {
            panic!("{kind:?}")
        };
        assert!(admitted.warnings[0].contains("delete all of them together"));
    }
    assert!(text(WorkloadKind::ReplicaSet, &new, &old).contains("kubectl scale replicaset report -n shop"));
    let (mut one_old, mut one_new) = (old, new);
    one_old["spec"]["replicas"] = 1.into();
    one_new["spec"]["replicas"] = 1.into();
    let decision = change(WorkloadKind::StatefulSet, &one_new, Some(&one_old));
    assert!(
        matches!(decision, Ok(Decision::Settled(_))),
        "its one pod is gone before the next: {decision:?}"
    );
}

#[test]
fn a_cron_jobs_template_lies_deeper_and_its_jobs_must_not_overlap() {
    let mut new =
        json!({"metadata": {"name": "nightly", "annotations": {LEASE: "a"}}, "spec": {"jobTemplate": {}}});
    let old = json!({"metadata": {"name": "nightly"}, "spec": {"jobTemplate": {}}});
    let text = text(WorkloadKind::CronJob, &new, &old);
    assert!(
        text.contains("kubectl patch cronjob nightly -n shop") && text.contains("concurrencyPolicy"),
        "{text}"
    );
    new["spec"]["concurrencyPolicy"] = "Forbid".into();
    let Ok(Decision::Settled(admitted)) = change(WorkloadKind::CronJob, &new, Some(&old)) else { panic!() };
    json_patch::patch(&mut new, &admitted.patch).unwrap();
    assert_eq!(
        new["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["annotations"],
        json!({LEASE: "a"})
    );
    assert!(admitted.warnings[0].contains("spec.jobTemplate.spec.template.metadata.annotations"));
}

#[test]
fn a_job_is_annotated_at_its_creation_or_not_at_all() {
    let (plain, new) = (deployment(&[], &[]), deployment(&[(LEASE, "a")], &[]));
    let Ok(Decision::Settled(admitted)) = change(WorkloadKind::Job, &new, None) else { panic!() };
    assert_eq!(after(&new, &admitted).1, json!({LEASE: "a"}));
    let text = text(WorkloadKind::Job, &new, &plain);
    assert!(text.contains("whose pod template cannot change") && text.contains("Delete the Job"), "{text}");
    let unmarked = deployment(&[(COPIED, "a")], &[(LEASE, "a")]);
    let marked = deployment(&[(LEASE, "a"), (COPIED, "a")], &[(LEASE, "a")]);
    let Ok(Decision::Settled(admitted)) = change(WorkloadKind::Job, &unmarked, Some(&marked)) else {
        panic!()
    };
    assert_eq!((admitted.patch.0.len(), admitted.lease.as_deref()), (0, Some("a")));
    assert!(admitted.warnings[0].contains("stays guarded"));
}

#[test]
fn what_is_no_workload_is_answered_without_a_panic() {
    for new in [
        json!(null),
        json!([]),
        json!({"metadata": 1}),
        json!({"spec": []}),
        json!({"metadata": {"annotations": [1]}}),
    ] {
        for old in [None, Some(&new)] {
            assert!(change(WorkloadKind::Deployment, &new, old).is_ok(), "{new}");
        }
    }
}
