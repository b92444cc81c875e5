use std::path::PathBuf;

use super::{POD, WORKLOAD};

/// What compares two maps of keys, the same wherever a change is looked for.
const CHANGED: &str = "p[0].exists(k, k.startsWith('fencedlease.dev/') && (!(k in p[1]) || p[0][k] != p[1][k])) || p[1].exists(k, k.startsWith('fencedlease.dev/') && !(k in p[0]))";

/// A condition that looks for changes in the maps at these paths.
fn changed_in(paths: &[&str]) -> String {
    let pairs = paths.iter().map(|path| format!("[object.{path}.orValue({{}}), o.{path}.orValue({{}})]"));
    let pairs = pairs.collect::<Vec<_>>().join(", ");
    format!("[oldObject == null ? {{}} : oldObject].exists(o, [{pairs}].exists(p, {CHANGED}))")
}

#[test]
fn pods_are_asked_about_by_annotation_and_at_their_creation_by_label_too() {
    let labels = "object.?metadata.?labels.orValue({}).exists(k, k.startsWith('fencedlease.dev/'))";
    let annotations = changed_in(&["?metadata.?annotations"]);
    assert_eq!(POD, format!("{annotations} || (oldObject == null && {labels})"));
}

#[test]
fn workloads_are_asked_about_where_a_key_changes_on_them_or_in_their_template() {
    let expected = changed_in(&[
        "?metadata.?annotations",
        "?metadata.?labels",
        "?spec.?template.?metadata.?annotations",
        "?spec.?template.?metadata.?labels",
        "?spec.?jobTemplate.?spec.?template.?metadata.?annotations",
        "?spec.?jobTemplate.?spec.?template.?metadata.?labels",
    ]);
    assert_eq!(WORKLOAD, expected);
}

#[test]
fn the_chart_has_these_conditions() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../charts/fencedlease/conditions");
    for (file, condition) in [("pods.cel", POD), ("workloads.cel", WORKLOAD)] {
        let file = folder.join(file);
        let wanted = format!("{condition}\n");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&file, &wanted).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), wanted, "{}", file.display());
    }
}
