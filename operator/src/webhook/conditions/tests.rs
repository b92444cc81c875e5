use super::{CRON_JOB, LIVE_POD, NEW_POD, WORKLOAD};

/// What compares two maps of keys, the same in every condition for changes.
const CHANGED: &str = "p[0].exists(k, k.startsWith('fencedlease.dev/') && (!(k in p[1]) || p[0][k] != p[1][k])) || p[1].exists(k, k.startsWith('fencedlease.dev/') && !(k in p[0]))";

#[test]
fn new_pods_are_asked_about_by_annotation_and_by_label() {
    assert_eq!(
        NEW_POD,
        "object.?metadata.?annotations.orValue({}).exists(k, k.startsWith('fencedlease.dev/')) || object.?metadata.?labels.orValue({}).exists(k, k.startsWith('fencedlease.dev/'))"
    );
}

#[test]
fn running_pods_are_asked_about_where_an_annotation_changes() {
    assert_eq!(
        LIVE_POD,
        format!(
            "[[object.?metadata.?annotations.orValue({{}}), oldObject.?metadata.?annotations.orValue({{}})]].exists(p, {CHANGED})"
        )
    );
}

#[test]
fn workloads_are_asked_about_where_a_key_changes_on_them_or_in_their_template() {
    for (condition, template) in
        [(WORKLOAD, "?spec.?template"), (CRON_JOB, "?spec.?jobTemplate.?spec.?template")]
    {
        let pairs = [
            ("?metadata".to_owned(), "annotations"),
            ("?metadata".to_owned(), "labels"),
            (format!("{template}.?metadata"), "annotations"),
            (format!("{template}.?metadata"), "labels"),
        ];
        let pairs = pairs.map(|(path, keys)| {
            format!("[object.{path}.?{keys}.orValue({{}}), o.{path}.?{keys}.orValue({{}})]")
        });
        let pairs = pairs.join(", ");
        let expected =
            format!("[oldObject == null ? {{}} : oldObject].exists(o, [{pairs}].exists(p, {CHANGED}))");
        assert_eq!(condition, expected);
    }
}

#[test]
fn the_chart_has_the_same_conditions() {
    for (condition, chart) in [
        (NEW_POD, include_str!("../../../../charts/fencedlease/conditions/new-pods.cel")),
        (LIVE_POD, include_str!("../../../../charts/fencedlease/conditions/live-pods.cel")),
        (WORKLOAD, include_str!("../../../../charts/fencedlease/conditions/workloads.cel")),
        (CRON_JOB, include_str!("../../../../charts/fencedlease/conditions/cron-jobs.cel")),
    ] {
        assert_eq!(condition, chart.trim_end());
    }
}
