//! The gates in front of a resource, as a user names them.

#![expect(unreachable_pub, reason = "KubeSchema repeats each public struct inside a function")]

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::lease::AuthoritiesReference;
use crate::rules::{self, LABEL_LENGTH, URL_LENGTH};

/// The most gates that a FencedLease has.
pub(crate) const MOST_GATES: u32 = 8;

/// A gate in front of the resource. It is told the fence before a pod may work, and refuses older ones.
#[derive(Clone, Debug, Deserialize, KubeSchema, PartialEq, Serialize)]
#[x_kube(
    validation = rules::gate_name_form(),
    validation = rules::gate_url_form(),
    validation = rules::gate_authorities_form(),
    validation = rules::gate_authorities_are_used()
)]
#[serde(rename_all = "camelCase")]
pub struct GateSpec {
    /// What it is called in messages: a-z, 0-9 and "-", different from the other gates' names.
    #[schemars(length(min = 1, max = LABEL_LENGTH))]
    pub name: String,

    /// Where it answers: `https://host` or `https://host:port`. With `http` who listens on the way sees tickets, and
    /// can show them again as long as they are fresh.
    #[schemars(length(max = URL_LENGTH))]
    pub url: String,

    /// The certificate authorities that count, in PEM. Unset: those that browsers trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "AuthoritiesReference")]
    pub ca_ref: Option<AuthoritiesReference>,
}
