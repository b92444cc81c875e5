//! The demo: an annotated Deployment on a real Kubernetes. Its holder is cut off from Redis, killed, and
//! followed by the standby, with a greater fence; then a write of a dead holder arrives, and is refused where the
//! fence is checked. Everything that is printed was read from the cluster.

#![allow(clippy::disallowed_types, reason = "the demo measures waits of its own, never a lease")]

mod late_write;
mod proxy;
mod setup;
mod story;
mod view;

use std::process::ExitCode;

use anyhow::Result;
use fencedlease_cluster::kubectl::Kubectl;
use fencedlease_cluster::paths::Paths;
use fencedlease_cluster::progress::Progress;
use fencedlease_cluster::target::Target;

/// The namespace that the demo uses, and empties when it is run again.
pub(crate) const NAMESPACE: &str = "fencedlease-demo";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("demo: {error:#}");
            eprintln!("Look at the cluster with: {}", view::environment());
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    if let Some(error) = fencedlease_cluster::init::take_over_if_asked() {
        return Err(error.into());
    }
    let paths = Paths::from_env()?;
    let progress = Progress::start();
    let kubectl = Kubectl::for_target(&paths, Target::from_env()?);
    setup::cluster_with_chart(&paths, &kubectl, &progress)?;
    setup::redis_behind_proxy(&kubectl, &progress)?;
    setup::guarded_deployment(&kubectl, &progress)?;
    story::tell_all(&kubectl)?;
    late_write::tell_all(&kubectl, &progress)?;
    view::look_around();
    Ok(())
}
