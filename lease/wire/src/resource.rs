//! The name of what is guarded.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The identity of a lease: installation id, namespace and name. The installation id keeps two clusters
/// on one Redis apart; people read `namespace/name`, which is what `Display` shows.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(try_from = "RawResourceName")]
pub struct ResourceName {
    installation: String,
    namespace: String,
    name: String,
}

/// Why three texts are no resource name.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "{part} {found:?} is not a name: use 1 to {max} of a-z, 0-9, '-' and '.', with a letter or digit at both ends"
)]
pub struct ResourceNameError {
    part: &'static str,
    found: String,
    max: usize,
}

#[derive(Deserialize)]
struct RawResourceName {
    installation: String,
    namespace: String,
    name: String,
}

impl ResourceName {
    /// The name made of these parts, each a DNS name as Kubernetes has them, so that none can break out
    /// of a Redis key's hash tag.
    pub fn new(installation: &str, namespace: &str, name: &str) -> Result<Self, ResourceNameError> {
        Ok(Self {
            installation: checked("installation id", installation, 63)?,
            namespace: checked("namespace", namespace, 63)?,
            name: checked("name", name, 253)?,
        })
    }

    /// The installation id.
    pub fn installation(&self) -> &str {
        &self.installation
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The FencedLease's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

// === impl ResourceName ===

impl TryFrom<RawResourceName> for ResourceName {
    type Error = ResourceNameError;

    fn try_from(raw: RawResourceName) -> Result<Self, ResourceNameError> {
        Self::new(&raw.installation, &raw.namespace, &raw.name)
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

pub(crate) fn checked(part: &'static str, text: &str, max: usize) -> Result<String, ResourceNameError> {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    let end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let valid = text.len() <= max
        && text.bytes().all(inner)
        && end(text.bytes().next())
        && end(text.bytes().next_back());
    if valid {
        Ok(text.to_owned())
    } else {
        Err(ResourceNameError { part, found: text.chars().take(80).collect(), max })
    }
}
