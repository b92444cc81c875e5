use serde_json::json;

use super::*;

#[test]
fn a_node_counts_only_while_its_ready_condition_is_true() {
    let node = |name: &str, status: &str| {
        json!({"metadata": {"name": name}, "status": {"conditions": [
            {"type": "MemoryPressure", "status": "True"}, {"type": "Ready", "status": status}]}})
    };
    let list = json!({"items": [node("a", "True"), node("b", "Unknown"), node("c", "False"), {"metadata": {"name": "d"}}]});
    assert_eq!(ready_nodes(&list), ["a"]);
    assert!(ready_nodes(&json!({})).is_empty());
}
