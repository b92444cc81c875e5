//! What is a lease called in Redis?

use fencedlease_wire::ResourceName;

/// The keys and the channel of one lease. They share a hash tag, so that one script may touch all of them in
/// Redis Cluster; a [`ResourceName`] cannot break out of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LeaseKeys {
    /// The owner token; expires with the lease.
    pub lease: String,
    /// The sequence: the greatest fence that was handed out. Never expires.
    pub fence: String,
    /// Who holds or last held it, for people.
    pub holder: String,
    /// There if the last holding ended cleanly.
    pub clean: String,
    /// Where a release is published.
    pub released: String,
}

// === impl LeaseKeys ===

impl LeaseKeys {
    /// The names for this resource.
    pub fn new(resource: &ResourceName) -> Self {
        let (installation, namespace, name) =
            (resource.installation(), resource.namespace(), resource.name());
        let key = |part| format!("fencedlease:v1:{{{installation}/{namespace}/{name}}}:{part}");
        Self {
            lease: key("lease"),
            fence: key("fence"),
            holder: key("holder"),
            clean: key("clean"),
            released: key("released"),
        }
    }

    /// What matches the keys and channels of a namespace of an installation, or of all its namespaces, as an ACL has it.
    pub(crate) fn pattern(installation: &str, namespace: Option<&str>) -> String {
        let namespace = namespace.map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!("fencedlease:v1:{{{installation}/{namespace}*}}:*")
    }
}

#[cfg(test)]
mod tests;
