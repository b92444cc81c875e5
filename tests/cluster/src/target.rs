//! Which cluster is meant: one of this host's own, or the one that the user's kubeconfig names?

use std::env;
use std::path::PathBuf;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::images::ImageArchive;
use crate::kubectl::Kubectl;
use crate::paths::Paths;
use crate::progress::Progress;

mod deliver;

pub use deliver::{Delivery, delivery, image_reference};

/// The oldest Kubernetes that is accepted: the first with native sidecars switched on.
pub const OLDEST: (u32, u32) = (1, 29);

/// The cluster that is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// One that this crate brings up and down.
    Own,
    /// The one that the user's kubeconfig names; it is never brought up or down.
    Current,
}

impl Target {
    /// As the variable `CLUSTER` says: unset, empty or `own`, or `current`. Fails for anything else.
    pub fn from_env() -> Result<Self> {
        Self::parse(env::var("CLUSTER").unwrap_or_default().as_str())
    }

    /// As a value of `CLUSTER` says.
    pub fn parse(value: &str) -> Result<Self> {
        match value {
            "" | "own" => Ok(Self::Own),
            "current" => Ok(Self::Current),
            other => Err(Error::missing(
                format!("CLUSTER is {other:?}; accepted are own (or nothing) and current"),
                "Unset it for a cluster of this host's own, or set CLUSTER=current for the one of your kubeconfig",
            )),
        }
    }

    /// The kubeconfig that names the cluster; none if kubectl is to find the user's by itself.
    pub fn kubeconfig(self, paths: &Paths) -> Option<PathBuf> {
        (self == Self::Own).then(|| paths.kubeconfig())
    }
}

/// Sees to it that the cluster of the user's kubeconfig answers, is new enough and has enough nodes.
pub fn check_current(kubectl: &Kubectl, nodes: u8, progress: &Progress) -> Result<()> {
    let context = kubectl.run(&["config", "current-context"])?;
    let version = kubectl.json(&["version", "--request-timeout=10s"])?;
    let found = version_of(&version["serverVersion"]);
    if found.is_none_or(|found| found < OLDEST) {
        return Err(Error::missing(
            format!(
                "the cluster of context {} is Kubernetes {}",
                context.trim(),
                version["serverVersion"]["gitVersion"]
            ),
            format!("{}.{} or newer is needed; choose another context or unset CLUSTER", OLDEST.0, OLDEST.1),
        ));
    }
    let ready = kubectl.ready_nodes()?.len();
    if ready < usize::from(nodes) {
        return Err(Error::missing(
            format!(
                "the cluster of context {} has {ready} Ready node(s); {nodes} are wanted",
                context.trim()
            ),
            "Add nodes, or unset CLUSTER",
        ));
    }
    progress.step(&format!(
        "Using context {} ({}, {ready} node(s))",
        context.trim(),
        version["serverVersion"]["gitVersion"]
    ));
    Ok(())
}

/// Hands images to the cluster of the user's kubeconfig, in the way that fits it.
pub fn deliver_to_current(kubectl: &Kubectl, archives: &[ImageArchive], progress: &Progress) -> Result<()> {
    let context = kubectl.run(&["config", "current-context"])?;
    let delivery = delivery(context.trim(), env::var("IMAGE_REGISTRY").ok().as_deref(), deliver::is_there)?;
    for archive in archives {
        progress
            .during(&format!("Handing {} over ({delivery})", archive.name), || delivery.hand_over(archive))?;
    }
    Ok(())
}

/// Major and minor of a `serverVersion`; providers write the minor as "31+".
fn version_of(server: &Value) -> Option<(u32, u32)> {
    let number = |field: &str| server[field].as_str()?.trim_end_matches('+').parse().ok();
    Some((number("major")?, number("minor")?))
}

#[cfg(test)]
mod tests;
