//! Which programs does a cluster need, how are they built, and when are they built again?

mod build;
mod packages;
mod python;

pub use build::{build_missing, is_built};
pub use packages::install_missing;
pub use python::{install_python, python_packages};

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::command::hex;
use crate::error::{Error, Result};

/// The version of Kubernetes that a cluster runs.
pub const KUBERNETES: &str = "1.37.2";
/// The oldest Go that builds all of it.
pub const GO: (u32, u32) = (1, 26);

const STRIP: &str = "-s -w";

/// How a program is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A package of a module in this folder of the crate, whose `go.sum` pins everything.
    Module {
        /// The folder, from the crate's root.
        folder: &'static str,
    },
    /// A published module of its own.
    Published,
}

/// A program that is built once and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tool {
    /// Its file name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The Go package.
    pub package: &'static str,
    /// How it is built.
    pub source: Source,
    /// Whether Kubernetes's version is written into it.
    pub stamped: bool,
    /// How long a cold build took on two cores, in seconds, after those before it in the list.
    pub cold_seconds: u32,
}

const fn kubernetes(name: &'static str, package: &'static str, cold_seconds: u32) -> Tool {
    Tool {
        name,
        version: KUBERNETES,
        package,
        source: Source::Module { folder: "kubernetes" },
        stamped: true,
        cold_seconds,
    }
}

const fn published(name: &'static str, version: &'static str, package: &'static str, seconds: u32) -> Tool {
    Tool { name, version, package, source: Source::Published, stamped: false, cold_seconds: seconds }
}

/// All programs of a cluster, in the order of building.
pub const TOOLS: [Tool; 13] = [
    Tool { version: "3.7.0", ..kubernetes("etcd", "go.etcd.io/etcd/server/v3", 60) },
    kubernetes("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver", 381),
    kubernetes("kubelet", "k8s.io/kubernetes/cmd/kubelet", 100),
    kubernetes("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager", 109),
    kubernetes("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler", 11),
    kubernetes("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy", 25),
    kubernetes("kubectl", "k8s.io/kubernetes/cmd/kubectl", 28),
    Tool {
        name: "coredns",
        version: "1.15.0",
        package: ".",
        source: Source::Module { folder: "coredns" },
        stamped: false,
        cold_seconds: 97,
    },
    published("containerd", "2.4.2", "github.com/containerd/containerd/v2/cmd/containerd", 98),
    published(
        "containerd-shim-runc-v2",
        "2.4.2",
        "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
        2,
    ),
    published("ctr", "2.4.2", "github.com/containerd/containerd/v2/cmd/ctr", 6),
    published("crictl", "1.37.0", "sigs.k8s.io/cri-tools/cmd/crictl", 30),
    published("helm", "4.3.1", "helm.sh/helm/v4/cmd/helm", 168),
];

/// Servers that tests start beside a cluster: object stores which others wrote.
pub const SERVERS: [Tool; 2] = [
    published("versitygw", "1.8.0", "github.com/versity/versitygw/cmd/versitygw", 162),
    published("fake-gcs-server", "1.56.1", "github.com/fsouza/fake-gcs-server", 135),
];

impl Tool {
    /// What the linker is told: no symbols, and for Kubernetes its version (it would call itself v0.0.0).
    pub fn ldflags(&self) -> String {
        let mut flags = vec![STRIP.to_owned()];
        if self.stamped {
            let minor = KUBERNETES.split('.').nth(1).unwrap_or_default();
            for package in ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"] {
                flags.push(format!("-X {package}.gitVersion=v{KUBERNETES}"));
                flags.push(format!("-X {package}.gitMajor=1"));
                flags.push(format!("-X {package}.gitMinor={minor}"));
            }
        }
        flags.join(" ")
    }

    /// The folder of its module, if it is built from one of ours.
    pub fn module(&self) -> Option<PathBuf> {
        match self.source {
            Source::Module { folder } => Some(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)),
            Source::Published => None,
        }
    }

    /// The name of the file that holds it: changes whenever what it is built from changes.
    pub fn file_name(&self) -> Result<String> {
        let mut digest = Sha256::new();
        digest.update(format!("{} {} {}", self.package, self.version, self.ldflags()));
        if let Some(module) = self.module() {
            for file in ["go.mod", "go.sum", "main.go"] {
                let path = module.join(file);
                if path.exists() {
                    digest.update(fs::read(&path).map_err(Error::file("read", &path))?);
                }
            }
        }
        Ok(format!("{}-{}-{}", self.name, self.version, hex(&digest.finalize()[..6])))
    }
}

#[cfg(test)]
mod tests;
