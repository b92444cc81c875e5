use super::*;

fn configuration(bundles: &[(&str, Option<&str>)]) -> ValidatingWebhookConfiguration {
    let webhooks: Vec<Value> = bundles
        .iter()
        .map(|(name, bundle)| {
            json!({
                "name": name,
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": {"caBundle": bundle.map(|text| ByteString(text.into()))},
            })
        })
        .collect();
    serde_json::from_value(json!({"metadata": {"name": "fencedlease"}, "webhooks": webhooks})).unwrap()
}

#[test]
fn only_entries_with_another_bundle_are_patched() {
    let configuration = configuration(&[("a.x", None), ("b.x", Some("new")), ("c.x", Some("old"))]);
    let patch = bundle_patch(&configuration, Some("7"), "new").unwrap();
    let names: Vec<&Value> =
        patch["webhooks"].as_array().unwrap().iter().map(|entry| &entry["name"]).collect();
    assert_eq!(names, ["a.x", "c.x"]);
    assert_eq!(patch["webhooks"][0]["clientConfig"]["caBundle"], "bmV3");
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
}

#[test]
fn a_right_configuration_is_left_alone() {
    assert_eq!(bundle_patch(&configuration(&[("a.x", Some("new"))]), Some("7"), "new"), None);
    assert_eq!(bundle_patch(&configuration(&[]), Some("7"), "new"), None);
}
