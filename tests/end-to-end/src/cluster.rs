//! Which cluster do the tests run on, and does it answer?

use anyhow::{Context as _, Result, bail};
use fencedlease_cluster::kubectl::Kubectl;
use fencedlease_cluster::paths::Paths;
use fencedlease_cluster::target::Target;
use k8s_openapi::api::core::v1::Node;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The cluster in use: that of `make cluster`, or with `CLUSTER=current` the one of the user's kubeconfig.
#[derive(Clone, Debug)]
pub struct Cluster {
    paths: Paths,
    target: Target,
    kubectl: Kubectl,
}

/// A list as kubectl prints it, whatever is in it.
#[derive(Debug, Deserialize)]
pub(crate) struct Items<T> {
    pub(crate) items: Vec<T>,
}

impl Cluster {
    /// The cluster that is meant. Fails, saying how to have one, if it does not answer.
    pub fn in_use() -> Result<Self> {
        let paths = Paths::from_env()?;
        let target = Target::from_env()?;
        let kubectl = Kubectl::for_target(&paths, target);
        let cluster = Self { paths, target, kubectl };
        let asked = match target {
            Target::Own if !cluster.paths.kubeconfig().exists() => {
                bail!("no cluster runs on this host. Start one with `make cluster`, then run the tests again")
            }
            Target::Own => "the cluster on this host does not answer. Start it with `make cluster`",
            Target::Current => {
                "the cluster of your kubeconfig does not answer. Choose another context, or unset CLUSTER \
                 and run `make cluster` for one on this host"
            }
        };
        cluster.kubectl.run(&["get", "--raw=/readyz", "--request-timeout=10s"]).context(asked)?;
        Ok(cluster)
    }

    /// Where the harness keeps its files.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Which kind of cluster it is.
    pub fn target(&self) -> Target {
        self.target
    }

    /// kubectl and helm with its kubeconfig.
    pub fn kubectl(&self) -> &Kubectl {
        &self.kubectl
    }

    /// An object as the API server has it. `words` are what follows `kubectl get`.
    pub fn get<T: DeserializeOwned>(&self, words: &[&str]) -> Result<T> {
        let mut all = vec!["get"];
        all.extend(words);
        let document = self.kubectl.json(&all)?;
        serde_json::from_value(document)
            .with_context(|| format!("`kubectl get {}` gave another type", words.join(" ")))
    }

    /// The names of the nodes that take pods.
    pub fn nodes(&self) -> Result<Vec<String>> {
        let nodes: Items<Node> = self.get(&["nodes"])?;
        let schedulable =
            |node: &Node| node.spec.as_ref().is_none_or(|spec| spec.unschedulable != Some(true));
        Ok(nodes.items.into_iter().filter(schedulable).filter_map(|node| node.metadata.name).collect())
    }
}
