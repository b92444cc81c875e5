use proptest::prelude::*;
use serde_json::{Value, json};

use super::difference;

fn text(original: &Value, wanted: &Value) -> Value {
    serde_json::to_value(difference(original, wanted)).unwrap()
}

#[test]
fn equal_documents_need_nothing() {
    let document = json!({"a": [1, {"b": null}]});
    assert_eq!(text(&document, &document), json!([]));
}

#[test]
fn elements_are_added_to_a_list_and_the_list_is_not_written_anew() {
    let patch = text(&json!({"l": [1, 2]}), &json!({"l": [0, 1, 2]}));
    assert_eq!(patch, json!([{"op": "add", "path": "/l/0", "value": 0}]));
    let patch = text(&json!({"l": [1]}), &json!({"l": [1, 2, 3]}));
    let add = |value: i32| json!({"op": "add", "path": "/l/-", "value": value});
    assert_eq!(patch, json!([add(2), add(3)]));
}

#[test]
fn a_key_with_a_slash_is_escaped() {
    let patch = text(&json!({"annotations": {}}), &json!({"annotations": {"fencedlease.dev/x~": "1"}}));
    assert_eq!(patch, json!([{"op": "add", "path": "/annotations/fencedlease.dev~1x~0", "value": "1"}]));
}

fn document() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), (0..3).prop_map(Value::from)];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ab/~]", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn the_patch_makes_one_document_of_any_other(original in document(), wanted in document()) {
        let mut patched = original.clone();
        json_patch::patch(&mut patched, &difference(&original, &wanted)).unwrap();
        prop_assert_eq!(patched, wanted);
    }
}
