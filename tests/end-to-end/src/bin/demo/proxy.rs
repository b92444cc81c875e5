//! The proxy in front of the demo's Redis, and how it is told what to do.

use anyhow::{Context as _, Result};
use fencedlease_cluster::kubectl::Kubectl;
use fencedlease_end_to_end::PodProxy;
use fencedlease_faults::{Fault, Order, Snapshot};

use crate::NAMESPACE;
use crate::story::text;

/// As the manifest has it.
const CONTROL_PORT: u16 = 7480;

/// The control port of the proxy in front of Redis.
pub(crate) struct Proxy<'a> {
    kubectl: &'a Kubectl,
    proxy: PodProxy,
}

impl<'a> Proxy<'a> {
    pub(crate) fn find(kubectl: &'a Kubectl) -> Result<Self> {
        let pods = kubectl.json(&["get", "pods", "-l", "app=redis", "--namespace", NAMESPACE])?;
        let pod = text(&pods["items"][0]["metadata"]["name"])?;
        Ok(Self { kubectl, proxy: PodProxy::new(NAMESPACE, &pod, CONTROL_PORT) })
    }

    /// Sets a fault, for one client or for all, and gives the counters.
    pub(crate) fn order(&self, client: Option<&str>, fault: Fault) -> Result<Snapshot> {
        let client = client.map(str::parse).transpose().context("the pod's address is no IP address")?;
        self.proxy.order(self.kubectl, Order { client, fault })
    }
}
