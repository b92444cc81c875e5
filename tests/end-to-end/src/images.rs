//! Images built from this checkout, on every node of the cluster.

use anyhow::{Context as _, Result};
use fencedlease_cluster::cluster::{load_images, named_images};
use fencedlease_cluster::images;
use fencedlease_cluster::progress::Progress;
use fencedlease_cluster::target::{Target, deliver_to_current, image_reference};

use crate::cluster::Cluster;

/// What the workloads of tests run.
pub const FOR_TESTS: [&str; 3] = ["busybox", "redis", "faultproxy"];
/// What a late write is shown with, beside those.
pub const FOR_LATE_WRITE: [&str; 1] = ["postgresql"];
/// The gate, and a backend that compares no fences.
pub const FOR_GATES: [&str; 2] = ["gate", "nginx"];
/// What is tested.
pub const OURS: [&str; 2] = ["operator", "sidecar"];

/// Manifests or names with our images as the cluster in use knows them: with `CLUSTER=current` they may lie in
/// `IMAGE_REGISTRY`.
pub fn as_known_to(target: Target, text: &str) -> String {
    let registry = std::env::var("IMAGE_REGISTRY").ok().filter(|_| target == Target::Current);
    referred_to(registry.as_deref(), text)
}

/// The same for this registry.
fn referred_to(registry: Option<&str>, text: &str) -> String {
    FOR_TESTS.iter().chain(&FOR_LATE_WRITE).chain(&FOR_GATES).chain(&OURS).fold(
        text.to_owned(),
        |text, name| {
            let ours = format!("fencedlease.dev/{name}:dev");
            text.replace(&ours, &image_reference(&ours, registry))
        },
    )
}

/// Builds images and hands them to the cluster; does work only for what changed.
pub fn hand_over(cluster: &Cluster, names: &[&str], progress: &Progress) -> Result<()> {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    match cluster.target() {
        Target::Own => load_images(cluster.paths(), &names, progress)?,
        Target::Current => {
            let archives = images::build(cluster.paths().cache(), progress, named_images(&names)?)?;
            deliver_to_current(cluster.kubectl(), &archives, progress)?;
        }
    }
    Ok(())
}

/// The id of an image as it is built now.
pub(crate) fn digest(cluster: &Cluster, name: &str, progress: &Progress) -> Result<String> {
    let built = images::build(cluster.paths().cache(), progress, |image| image.file() == name)?;
    Ok(built.first().with_context(|| format!("there is no image {name}"))?.digest.clone())
}

#[cfg(test)]
mod tests;
