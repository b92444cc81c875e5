//! How does a request of the API server read, and how is it answered? `admission.k8s.io/v1`, as raw JSON, so
//! that fields which this version does not know survive.

use json_patch::Patch;
use k8s_openapi::ByteString;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::admit::Refusal;
use crate::admit::problem::{readable, shown};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// What the API server asks.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    pub(super) uid: String,
    pub(super) kind: RequestKind,
    #[serde(default)]
    pub(super) sub_resource: Option<String>,
    #[serde(default)]
    pub(super) namespace: String,
    pub(super) operation: String,
    #[serde(default)]
    pub(super) object: Value,
    #[serde(default)]
    pub(super) old_object: Value,
    #[serde(default)]
    pub(super) dry_run: Option<bool>,
}

/// The kind of object that a request is about.
#[derive(Debug, Deserialize)]
pub(super) struct RequestKind {
    #[serde(default)]
    pub(super) group: String,
    #[serde(default)]
    pub(super) version: String,
    pub(super) kind: String,
}

/// What is answered.
#[derive(Debug)]
pub(super) enum Answer {
    Allowed { patch: Patch, warnings: Vec<String> },
    Refused { refusal: Refusal, lease: Option<String> },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    api_version: String,
    kind: String,
    request: Option<Request>,
}

/// The uid of a request that is not read otherwise; the text says what is wrong with the body.
pub(super) fn uid(body: &[u8]) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Uid {
        uid: String,
    }
    #[derive(Deserialize)]
    struct Review {
        request: Uid,
    }
    let review: Review = serde_json::from_slice(body).map_err(|error| no_review(&error))?;
    Ok(review.request.uid)
}

fn no_review(error: &serde_json::Error) -> String {
    format!("the body is no {KIND} of {API_VERSION}: {}", readable(&error.to_string(), 300))
}

impl Request {
    /// Reads a request's body; the text says what is wrong with it.
    pub(super) fn read(body: &[u8]) -> Result<Self, String> {
        let review: Review = serde_json::from_slice(body).map_err(|error| no_review(&error))?;
        if review.api_version != API_VERSION || review.kind != KIND {
            let (kind, version) = (shown(&review.kind), shown(&review.api_version));
            return Err(format!("the body is a {kind} of {version}; accepted: {KIND} of {API_VERSION}"));
        }
        let mut request = review.request.ok_or_else(|| format!("the {KIND} has no request"))?;
        // Who wrote which field is most of an object that many fields are in, and nothing here asks for it.
        for object in [&mut request.object, &mut request.old_object] {
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
        }
        Ok(request)
    }

    /// The object as it was; `None` at creation.
    pub(super) fn old(&self) -> Option<&Value> {
        Some(&self.old_object).filter(|old| !old.is_null())
    }

    /// Whether the request changes nothing that could be looked at here.
    pub(super) fn is_of_no_concern(&self) -> bool {
        let sub_resource = self.sub_resource.as_ref().is_some_and(|name| !name.is_empty());
        sub_resource || !matches!(self.operation.as_str(), "CREATE" | "UPDATE")
    }
}

impl Answer {
    pub(super) fn allowed() -> Self {
        Self::Allowed { patch: Patch::default(), warnings: Vec::new() }
    }

    /// The answer as the API server reads it.
    pub(super) fn to_json(&self, uid: &str) -> Value {
        let mut response = Map::new();
        response.insert("uid".to_owned(), uid.into());
        match self {
            Self::Allowed { patch, warnings } => {
                response.insert("allowed".to_owned(), true.into());
                if !warnings.is_empty() {
                    response.insert("warnings".to_owned(), json!(warnings));
                }
                if !patch.0.is_empty() {
                    let bytes = serde_json::to_vec(patch).unwrap_or_default();
                    response.insert("patchType".to_owned(), "JSONPatch".into());
                    response.insert("patch".to_owned(), json!(ByteString(bytes)));
                }
            }
            Self::Refused { refusal, .. } => {
                let message = refusal.to_string();
                response.insert("allowed".to_owned(), false.into());
                let status = json!({"code": 403, "reason": "Forbidden", "message": message});
                response.insert("status".to_owned(), status);
            }
        }
        json!({"apiVersion": API_VERSION, "kind": KIND, "response": response})
    }
}
