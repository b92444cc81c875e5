//! The page about the FencedLease has every field, with its default.
#![allow(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use std::fs;
use std::path::Path;

use fencedlease_crds::{ConditionType, FencedLease};
use kube::CustomResourceExt as _;
use serde_json::Value;

fn page(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs");
    fs::read_to_string(docs.join(name)).unwrap()
}

/// Each field that holds a value itself, by its path, with its default.
fn leaves(path: &str, schema: &Value, found: &mut Vec<(String, Value)>) {
    for (name, property) in schema["properties"].as_object().unwrap() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        if property["type"] == "object" {
            leaves(&path, property, found);
        } else {
            found.push((path, property["default"].clone()));
        }
    }
}

#[test]
fn every_field_of_the_spec_is_on_its_page_with_its_default() {
    let crd = FencedLease::crd();
    let schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap()["openAPIV3Schema"].clone();
    let mut fields = Vec::new();
    leaves("", &schema["properties"]["spec"], &mut fields);
    assert!(fields.len() > 10, "{fields:?}");
    let page = page("fencedlease.md");
    for (path, default) in fields {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{path}` |")));
        let row = row.unwrap_or_else(|| panic!("docs/fencedlease.md has no row for {path}"));
        let default = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
        if default != "null" {
            assert!(row.contains(&format!("| `{default}` |")), "{path} has the default {default}: {row}");
        }
    }
}

#[test]
fn every_status_field_and_condition_has_a_row() {
    let crd = FencedLease::crd();
    let schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap()["openAPIV3Schema"].clone();
    let page_of_fields = page("fencedlease.md");
    for name in schema["properties"]["status"]["properties"].as_object().unwrap().keys() {
        let is_there = name == "observedGeneration" || page_of_fields.contains(&format!("`{name}`"));
        assert!(is_there, "docs/fencedlease.md has no status field {name}");
    }
    let page_of_conditions = page("events-and-conditions.md");
    for condition in ConditionType::ALL {
        let name = condition.as_str();
        let has_row = page_of_conditions.lines().any(|line| line.starts_with(&format!("| {name}")));
        assert!(has_row, "docs/events-and-conditions.md has no row for {name}");
    }
}
