//! The proxy in front of the demo's Redis, and how it is told what to do.

use anyhow::{Context as _, Result};
use fencedlease_cluster::kubectl::Kubectl;
use fencedlease_faults::{Fault, Order, Snapshot, send_order};

use crate::NAMESPACE;
use crate::story::text;

/// The control port of the proxy in front of Redis.
pub(crate) struct Proxy {
    control: String,
    runtime: tokio::runtime::Runtime,
}

impl Proxy {
    pub(crate) fn find(kubectl: &Kubectl) -> Result<Self> {
        let pods = kubectl.json(&["get", "pods", "-l", "app=redis", "--namespace", NAMESPACE])?;
        let address = text(&pods["items"][0]["status"]["podIP"])?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { control: format!("{address}:7480"), runtime })
    }

    /// Sets a fault, for one client or for all, and gives the counters.
    pub(crate) fn order(&self, client: Option<&str>, fault: Fault) -> Result<Snapshot> {
        let client = client.map(str::parse).transpose().context("the pod's address is no IP address")?;
        Ok(self.runtime.block_on(send_order(&self.control, Order { client, fault }))?)
    }
}
