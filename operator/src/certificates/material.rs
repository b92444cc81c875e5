//! What is kept of certificates, as it lies in the Secret.

use std::fmt;

use k8s_openapi::jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Authorities and the leaf that is served.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Material {
    /// Every authority that clients are told to trust, the oldest first.
    pub authorities: Vec<Authority>,
    /// What is served.
    pub leaf: Leaf,
}

/// A certificate authority of our own.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Authority {
    /// The common name, which tells authorities apart.
    pub name: String,
    /// The certificate in PEM.
    pub certificate_pem: String,
    /// The private key in PEM.
    pub key_pem: String,
    /// When it was made.
    pub made_at: Timestamp,
    /// When it stops being valid.
    pub expires_at: Timestamp,
}

/// A server certificate.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leaf {
    /// The [`Authority::name`] that signed it.
    pub signed_by: String,
    /// The DNS names and addresses that it is for.
    pub names: Vec<String>,
    /// The certificate in PEM.
    pub certificate_pem: String,
    /// The private key in PEM.
    pub key_pem: String,
    /// When it was made.
    pub made_at: Timestamp,
    /// When it stops being valid.
    pub expires_at: Timestamp,
}

impl Material {
    /// The certificates of all authorities, one after the other, in PEM: what clients must trust.
    pub fn bundle_pem(&self) -> String {
        self.authorities.iter().map(|authority| authority.certificate_pem.as_str()).collect()
    }
}

// === impl Authority ===

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority")
            .field("name", &self.name)
            .field("made_at", &self.made_at)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}

// === impl Leaf ===

impl fmt::Debug for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaf")
            .field("signed_by", &self.signed_by)
            .field("names", &self.names)
            .field("made_at", &self.made_at)
            .field("expires_at", &self.expires_at)
            .finish_non_exhaustive()
    }
}
