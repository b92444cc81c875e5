//! A fault proxy in a pod, told what to do through the API server, which reaches pods on any cluster.

use anyhow::{Context as _, Result};
use fencedlease_cluster::command::run_with_input;
use fencedlease_cluster::kubectl::Kubectl;
use fencedlease_faults::{Order, Snapshot};

/// The control port of one proxy.
#[derive(Clone, Debug)]
pub struct PodProxy {
    url: String,
}

// === impl PodProxy ===

impl PodProxy {
    /// The proxy with this control port in a pod.
    pub fn new(namespace: &str, pod: &str, control_port: u16) -> Self {
        Self { url: format!("/api/v1/namespaces/{namespace}/pods/{pod}:{control_port}/proxy") }
    }

    /// Sets a fault and gives the state after it.
    pub fn order(&self, kubectl: &Kubectl, order: Order) -> Result<Snapshot> {
        let mut command =
            kubectl.command(&["replace", "--raw", &format!("{}/fault", self.url), "--filename=-"]);
        read(&run_with_input(&mut command, &serde_json::to_string(&order)?)?)
    }

    /// Faults and counters now.
    pub fn snapshot(&self, kubectl: &Kubectl) -> Result<Snapshot> {
        read(&kubectl.run(&["get", "--raw", &format!("{}/state", self.url)])?)
    }
}

fn read(text: &str) -> Result<Snapshot> {
    serde_json::from_str(text).with_context(|| format!("the fault proxy answered {text}"))
}
