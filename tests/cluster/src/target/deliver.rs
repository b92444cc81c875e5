//! By which way do images get into a cluster that is not ours?

use std::env;
use std::fmt;
use std::path::Path;

use crate::command::{command, run};
use crate::error::{Error, Result};
use crate::images::ImageArchive;

/// The first part of our images' names, which `IMAGE_REGISTRY` replaces.
const OWN_REGISTRY: &str = "fencedlease.dev";

/// A way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// Into the nodes of a kind cluster.
    Kind {
        /// Its name.
        cluster: String,
    },
    /// Into the nodes of a k3d cluster.
    K3d {
        /// Its name.
        cluster: String,
    },
    /// Through a registry that both sides reach.
    Registry {
        /// Its address, with a path if it has one.
        registry: String,
        /// docker, podman or skopeo: what is there.
        program: &'static str,
    },
}

/// The way that fits a context, the value of `IMAGE_REGISTRY`, and the programs that are there.
/// Fails, with what to do, if there is none.
pub fn delivery(context: &str, registry: Option<&str>, is_there: impl Fn(&str) -> bool) -> Result<Delivery> {
    if let Some(registry) = registry.filter(|it| !it.is_empty()) {
        let registry = registry.trim_end_matches('/').to_owned();
        return match ["skopeo", "docker", "podman"].into_iter().find(|program| is_there(program)) {
            Some(program) => Ok(Delivery::Registry { registry, program }),
            None => Err(Error::missing(
                format!("IMAGE_REGISTRY is {registry}, but none of skopeo, docker and podman is in PATH"),
                "Install one of them and log it in to that registry",
            )),
        };
    }
    for (prefix, program) in [("kind-", "kind"), ("k3d-", "k3d")] {
        let Some(cluster) = context.strip_prefix(prefix) else { continue };
        if !is_there(program) {
            return Err(Error::missing(
                format!("context {context} is a cluster of {program}, but {program} is not in PATH"),
                format!("Put {program} into PATH, or set IMAGE_REGISTRY"),
            ));
        }
        let cluster = cluster.to_owned();
        return Ok(if program == "kind" { Delivery::Kind { cluster } } else { Delivery::K3d { cluster } });
    }
    Err(Error::missing(
        format!("context {context} is neither a kind nor a k3d cluster, and IMAGE_REGISTRY is not set"),
        "Set IMAGE_REGISTRY to a registry that this host may push to and the cluster pulls from",
    ))
}

/// The name under which the cluster in use knows one of our images.
pub fn image_reference(name: &str, registry: Option<&str>) -> String {
    match (registry.filter(|it| !it.is_empty()), name.strip_prefix(OWN_REGISTRY)) {
        (Some(registry), Some(rest)) => format!("{}{rest}", registry.trim_end_matches('/')),
        _ => name.to_owned(),
    }
}

/// Whether a program is in `PATH`.
pub(super) fn is_there(program: &str) -> bool {
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|folder| Path::new(&folder).join(program).is_file())
}

impl Delivery {
    /// Hands one image over.
    pub fn hand_over(&self, archive: &ImageArchive) -> Result<()> {
        self.commands(archive).iter().try_for_each(|words| {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            run(&mut command(&words)).map(|_| ())
        })
    }

    /// The commands that hand one image over, in order.
    pub fn commands(&self, archive: &ImageArchive) -> Vec<Vec<String>> {
        let path = archive.path.display().to_string();
        let words = |line: &[&str]| line.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        match self {
            Self::Kind { cluster } => {
                vec![words(&["kind", "load", "image-archive", &path, "--name", cluster])]
            }
            Self::K3d { cluster } => vec![words(&["k3d", "image", "import", &path, "--cluster", cluster])],
            Self::Registry { registry, program } => {
                let there = image_reference(&archive.name, Some(registry));
                if *program == "skopeo" {
                    let (from, to) = (format!("docker-archive:{path}"), format!("docker://{there}"));
                    return vec![words(&["skopeo", "copy", &from, &to])];
                }
                vec![
                    words(&[program, "load", "--input", &path]),
                    words(&[program, "tag", &archive.name, &there]),
                    words(&[program, "push", &there]),
                ]
            }
        }
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind { cluster } => write!(out, "kind cluster {cluster}"),
            Self::K3d { cluster } => write!(out, "k3d cluster {cluster}"),
            Self::Registry { registry, program } => write!(out, "{program} push to {registry}"),
        }
    }
}
