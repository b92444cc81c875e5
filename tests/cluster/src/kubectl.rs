//! kubectl and helm against the cluster in use.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::command::{command, run, run_with_input};
use crate::error::{Error, Result};
use crate::paths::Paths;
use crate::target::Target;

/// Calls kubectl with the cluster's kubeconfig.
#[derive(Debug, Clone)]
pub struct Kubectl {
    bin: PathBuf,
    kubeconfig: Option<PathBuf>,
}

impl Kubectl {
    /// For the cluster of this host's own.
    pub fn new(paths: &Paths) -> Self {
        Self::for_target(paths, Target::Own)
    }

    /// For the cluster that is meant; the user's own is reached as the user's kubeconfig says.
    pub fn for_target(paths: &Paths, target: Target) -> Self {
        Self { bin: paths.bin(), kubeconfig: target.kubeconfig(paths) }
    }

    /// A kubectl command with the given arguments, ready to be run or changed.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.program("kubectl", arguments)
    }

    /// A helm command with the given arguments.
    pub fn helm(&self, arguments: &[&str]) -> Command {
        self.program("helm", arguments)
    }

    /// Runs kubectl and gives what it printed. Fails with its message.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        run(&mut self.command(arguments))
    }

    /// Applies manifests.
    pub fn apply(&self, manifests: &str) -> Result<String> {
        run_with_input(&mut self.command(&["apply", "--filename=-"]), manifests)
    }

    /// Runs kubectl with `--output=json` and gives the document.
    pub fn json(&self, arguments: &[&str]) -> Result<Value> {
        let mut all = arguments.to_vec();
        all.push("--output=json");
        let text = self.run(&all)?;
        serde_json::from_str(&text).map_err(|source| Error::Document {
            what: format!("what kubectl {} printed", arguments.join(" ")),
            source,
        })
    }

    /// Whether the API server says that it is ready.
    pub fn is_ready(&self) -> bool {
        self.run(&["get", "--raw=/readyz", "--request-timeout=3s"]).is_ok()
    }

    /// The names of the nodes that are Ready.
    pub fn ready_nodes(&self) -> Result<Vec<String>> {
        Ok(ready_nodes(&self.json(&["get", "nodes", "--request-timeout=3s"])?))
    }

    /// Whether pods can be made in the default namespace: its service account and its CA bundle are there.
    pub fn can_make_pods(&self) -> bool {
        let wanted = ["get", "serviceaccount/default", "configmap/kube-root-ca.crt", "--namespace=default"];
        self.run(&wanted).is_ok()
    }

    fn program(&self, name: &str, arguments: &[&str]) -> Command {
        let built = self.bin.join(name);
        let program = if built.exists() { built.display().to_string() } else { name.to_owned() };
        let mut made = command(&[&program]);
        made.args(arguments);
        if let Some(kubeconfig) = &self.kubeconfig {
            made.env("KUBECONFIG", kubeconfig);
        }
        made
    }
}

/// The names of the Ready nodes in a list of Nodes.
fn ready_nodes(list: &Value) -> Vec<String> {
    let is_ready = |node: &&Value| {
        node["status"]["conditions"]
            .as_array()
            .is_some_and(|all| all.iter().any(|it| it["type"] == "Ready" && it["status"] == "True"))
    };
    list["items"]
        .as_array()
        .map(|nodes| {
            nodes
                .iter()
                .filter(is_ready)
                .filter_map(|node| node["metadata"]["name"].as_str())
                .map(str::to_owned)
                .collect()
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
