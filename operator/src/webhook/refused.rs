//! Who was refused, for Events and conditions? A controller hides from its user why it can make no pod.

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::decide::name;
use super::review::Request;
use crate::admit::Refusal;

/// A request that was refused. Not told for dry runs, nor for FencedLeases, whose user is answered directly.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused {
    /// The request's namespace.
    pub namespace: String,
    /// The FencedLease that the object asks for, if its annotation can be read.
    pub lease: Option<String>,
    /// The object. A pod that was refused does not exist, and has no uid.
    pub object: ObjectName,
    /// The controller that wanted to make it.
    pub owner: Option<ObjectName>,
    /// The refusal's text.
    pub message: String,
    /// When it was refused.
    pub at: Timestamp,
}

/// An object in the request's namespace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ObjectName {
    /// Such as `apps/v1`.
    pub api_version: String,
    /// Such as ReplicaSet.
    pub kind: String,
    /// Its name; one that is still to be generated ends in `…`.
    pub name: String,
    /// Its uid, if it has one.
    pub uid: Option<String>,
}

pub(super) fn refused(
    request: &Request,
    refusal: &Refusal,
    lease: Option<&String>,
    at: Timestamp,
) -> Refused {
    let object = &request.object;
    let kind = &request.kind;
    let api_version =
        if kind.group.is_empty() { kind.version.clone() } else { format!("{}/{}", kind.group, kind.version) };
    let owners = object["metadata"]["ownerReferences"].as_array();
    let owner = owners.and_then(|owners| owners.iter().find(|owner| owner["controller"] == true));
    Refused {
        namespace: request.namespace.clone(),
        lease: lease.cloned(),
        object: ObjectName {
            api_version,
            kind: kind.kind.clone(),
            name: name(object),
            uid: text(&object["metadata"]["uid"]),
        },
        owner: owner.and_then(|owner| {
            Some(ObjectName {
                api_version: text(&owner["apiVersion"])?,
                kind: text(&owner["kind"])?,
                name: text(&owner["name"])?,
                uid: text(&owner["uid"]),
            })
        }),
        message: refusal.to_string(),
        at,
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
