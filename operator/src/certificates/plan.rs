//! What is due for our certificates now? A pure decision over what the Secret holds.
//!
//! A rotation takes three steps, each of which waits until everybody has met the one before: the new
//! authority joins the bundle, then a leaf signed by it is served, then the old authority leaves. The wall
//! clock decides here, as certificates are dated by it; the steps lie so far apart that no plausible clock
//! error turns them round.

use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::{Authority, Material};

/// How long an authority is valid.
pub const AUTHORITY_LIFE: SignedDuration = days(730);
/// How long before an authority's end its successor joins the bundle.
pub const AUTHORITY_LEAD: SignedDuration = days(180);
/// How long an authority is in the bundle before it signs, so that every client trusts it by then.
pub const AUTHORITY_SETTLES: SignedDuration = days(2);
/// How long an authority stays in the bundle after the last leaf that it signed was replaced.
pub const AUTHORITY_STAYS: SignedDuration = days(2);
/// How long a leaf is valid.
pub const LEAF_LIFE: SignedDuration = days(90);
/// How long before a leaf's end it is replaced.
pub const LEAF_LEAD: SignedDuration = days(60);

/// What is due.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// Nothing.
    Keep,
    /// There is nothing usable: a new authority and a leaf signed by it, at once.
    StartOver,
    /// A new authority joins the bundle.
    AddAuthority,
    /// A new leaf is signed by the authority of this name.
    ReplaceLeaf {
        /// [`Authority::name`].
        signed_by: String,
    },
    /// These authorities leave the bundle.
    DropAuthorities {
        /// [`Authority::name`] of each.
        names: Vec<String>,
    },
}

/// What is due at `now`, if the leaf is to be valid for `names`. Called again after each step.
pub fn plan(material: Option<&Material>, names: &[String], now: Timestamp) -> Step {
    let Some(material) = material else { return Step::StartOver };
    let usable = |authority: &&Authority| now < authority.expires_at;
    let settled = |authority: &&Authority| authority.made_at + AUTHORITY_SETTLES <= now;
    let Some(newest) = material.authorities.iter().rfind(usable) else { return Step::StartOver };
    // One that has not settled signs only if there is no other: better some clients than none.
    let signer = material.authorities.iter().filter(usable).rfind(settled).unwrap_or(newest);
    let leaf = &material.leaf;

    let signed_by_usable =
        material.authorities.iter().filter(usable).any(|authority| authority.name == leaf.signed_by);
    let leaf_is_due = leaf.expires_at <= now + LEAF_LEAD
        || leaf.names != names
        || !signed_by_usable
        || leaf.signed_by != signer.name && settled(&signer);
    if leaf_is_due {
        return Step::ReplaceLeaf { signed_by: signer.name.clone() };
    }
    if newest.expires_at <= now + AUTHORITY_LEAD {
        return Step::AddAuthority;
    }
    let leaves = |authority: &&Authority| {
        let superseded = authority.made_at < signer.made_at && leaf.signed_by == signer.name;
        now >= authority.expires_at || superseded && leaf.made_at + AUTHORITY_STAYS <= now
    };
    let names: Vec<String> =
        material.authorities.iter().filter(leaves).map(|authority| authority.name.clone()).collect();
    if names.is_empty() { Step::Keep } else { Step::DropAuthorities { names } }
}

const fn days(count: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * count)
}

#[cfg(test)]
mod tests;
