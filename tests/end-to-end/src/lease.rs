//! FencedLeases: made, and read as the API server has them.

use std::time::Duration;

use anyhow::{Context as _, Result};
use fencedlease_crds::{FencedLease, FencedLeaseStatus, Phase};
use serde_json::{Value, json};

use crate::cluster::Items;
use crate::pod::Pod;
use crate::redis::RedisBehindProxy;
use crate::stage::Stage;

impl Stage {
    /// Makes a FencedLease whose lease lies in this Redis; `spec` has what else stands in its spec.
    pub fn lease(&self, name: &str, redis: &RedisBehindProxy<'_>, spec: &Value) -> Result<String> {
        let mut manifest = lease_manifest(name, spec);
        manifest["spec"]["redis"] = json!({"addresses": [redis.address()]});
        self.apply(&manifest)
    }

    /// Makes a FencedLease whose lease lies in the installation's Redis.
    pub fn lease_of_installation(&self, name: &str, spec: &Value) -> Result<String> {
        self.apply(&lease_manifest(name, spec))
    }

    /// The FencedLease as it stands.
    pub fn read_lease(&self, name: &str) -> Result<FencedLease> {
        self.get(&["fencedlease", name])
    }

    /// All FencedLeases of the namespace.
    pub fn read_leases(&self) -> Result<Vec<FencedLease>> {
        let leases: Items<FencedLease> = self.get(&["fencedleases"])?;
        Ok(leases.items)
    }

    /// Waits until the status of a FencedLease shows something, and gives it.
    pub fn until_lease<T>(
        &self,
        name: &str,
        within: Duration,
        what: &str,
        shows: impl Fn(&FencedLeaseStatus) -> Option<T>,
    ) -> Result<T> {
        let what = format!("FencedLease {name} shows {what}");
        self.eventually(within, &what, |stage| Ok(stage.read_lease(name)?.status.as_ref().and_then(&shows)))
    }

    /// Waits until a pod holds the lease, as the status says, and gives the pod.
    pub fn holder(&self, name: &str, within: Duration) -> Result<Pod<'_>> {
        self.holder_above(name, 0, within)
    }

    /// Waits until a pod holds the lease with a fence greater than this one, and gives the pod.
    pub fn holder_above(&self, name: &str, fence: i64, within: Duration) -> Result<Pod<'_>> {
        let what = format!("FencedLease {name} shows a holder with a fence above {fence}");
        self.eventually(within, &what, |stage| {
            let status = stage.read_lease(name)?.status.unwrap_or_default();
            match holder_name(&status, fence) {
                Some(holder) => Ok(Some(self.pod(holder)?)),
                None => Ok(None),
            }
        })
    }

    /// Waits until so many pods wait for the lease, as the status says.
    pub fn until_standbys(&self, name: &str, count: i64, within: Duration) -> Result<()> {
        self.until_lease(name, within, &format!("{count} standbys"), |status| {
            (status.standbys == count).then_some(())
        })
    }

    /// The fence in a lease's status. Fails if there is none yet.
    pub fn fence(&self, name: &str) -> Result<i64> {
        let status = self.read_lease(name)?.status.unwrap_or_default();
        status.fence.with_context(|| format!("FencedLease {name} has no fence yet"))
    }
}

/// A FencedLease as JSON. What `spec` does not name has its default.
pub(crate) fn lease_manifest(name: &str, spec: &Value) -> Value {
    let spec = if spec.is_null() { json!({}) } else { spec.clone() };
    json!({"apiVersion": "fencedlease.dev/v1alpha1", "kind": "FencedLease", "metadata": {"name": name}, "spec": spec})
}

fn holder_name(status: &FencedLeaseStatus, fence: i64) -> Option<&str> {
    let held = status.phase == Some(Phase::Held) && status.fence.is_some_and(|now| now > fence);
    status.holder.as_ref().filter(|_| held).map(|holder| holder.pod_name.as_str())
}

#[cfg(test)]
mod tests;
