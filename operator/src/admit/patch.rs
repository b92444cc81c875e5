//! What must the API server do to make one document of another? A patch that a person can read: whole values
//! where they differ, and elements added to a list rather than the list written anew.

use json_patch::jsonptr::{PointerBuf, Token};
use json_patch::{AddOperation, Patch, PatchOperation, RemoveOperation, ReplaceOperation};
use serde_json::{Map, Value};

/// The operations that turn `original` into `wanted`; none if they are equal.
pub(crate) fn difference(original: &Value, wanted: &Value) -> Patch {
    let mut operations = Vec::new();
    compare(&PointerBuf::root(), original, wanted, &mut operations);
    Patch(operations)
}

fn compare(path: &PointerBuf, original: &Value, wanted: &Value, operations: &mut Vec<PatchOperation>) {
    match (original, wanted) {
        (original, wanted) if original == wanted => {}
        (Value::Object(original), Value::Object(wanted)) => objects(path, original, wanted, operations),
        (Value::Array(original), Value::Array(wanted)) => lists(path, original, wanted, operations),
        _ => operations.push(replace(path, wanted)),
    }
}

fn objects(
    path: &PointerBuf,
    original: &Map<String, Value>,
    wanted: &Map<String, Value>,
    operations: &mut Vec<PatchOperation>,
) {
    for key in original.keys().filter(|key| !wanted.contains_key(*key)) {
        operations.push(PatchOperation::Remove(RemoveOperation { path: below(path, key) }));
    }
    for (key, value) in wanted {
        let path = below(path, key);
        match original.get(key) {
            Some(before) => compare(&path, before, value, operations),
            None => operations.push(add(path, value)),
        }
    }
}

fn lists(path: &PointerBuf, original: &[Value], wanted: &[Value], operations: &mut Vec<PatchOperation>) {
    if original.len() == wanted.len() && wanted.iter().all(Value::is_object) {
        for (index, (before, value)) in original.iter().zip(wanted).enumerate() {
            compare(&below(path, index), before, value, operations);
        }
    } else if wanted.ends_with(original) {
        let added = &wanted[..wanted.len() - original.len()];
        operations.extend(added.iter().enumerate().map(|(index, value)| add(below(path, index), value)));
    } else if wanted.starts_with(original) {
        operations.extend(wanted[original.len()..].iter().map(|value| add(below(path, "-"), value)));
    } else {
        operations.push(replace(path, &Value::Array(wanted.to_vec())));
    }
}

fn below<'a>(path: &PointerBuf, token: impl Into<Token<'a>>) -> PointerBuf {
    let mut path = path.clone();
    path.push_back(token);
    path
}

fn add(path: PointerBuf, value: &Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path, value: value.clone() })
}

fn replace(path: &PointerBuf, value: &Value) -> PatchOperation {
    PatchOperation::Replace(ReplaceOperation { path: path.clone(), value: value.clone() })
}

#[cfg(test)]
mod tests;
