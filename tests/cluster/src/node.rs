//! A node from outside: programs run in it, images handed to it, containers found in it.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::command::{command, run};
use crate::config::CONTAINERD;
use crate::error::{Error, Result};
use crate::images::ImageArchive;
use crate::init::Client;
use crate::machine::Machine;
use crate::paths::Paths;
use crate::progress::Progress;

/// A node of a cluster of this host's own.
#[derive(Debug, Clone)]
pub struct Node {
    machine: Machine,
    paths: Paths,
}

/// A container as its node sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// Its id.
    pub id: String,
    /// Its first process, by its number in the node.
    pub pid: u32,
}

impl Node {
    /// That machine; nothing is asked yet.
    pub fn new(paths: &Paths, machine: Machine) -> Self {
        Self { machine, paths: paths.clone() }
    }

    /// A command that runs inside the machine: its processes, mounts and network.
    /// Fails if the machine does not run.
    pub fn command(&self, words: &[&str]) -> Result<Command> {
        let pid = Client::new(&self.paths, self.machine).pid()?.to_string();
        let mut inside =
            command(&["nsenter", "--target", &pid, "--mount", "--uts", "--ipc", "--net", "--pid", "--"]);
        let path = std::env::var("PATH").unwrap_or_default();
        inside
            .args(words)
            .env("PATH", format!("{}:{path}:/usr/sbin:/sbin", self.paths.bin().display()))
            .env("CONTAINER_RUNTIME_ENDPOINT", format!("unix://{CONTAINERD}"))
            .env("IMAGE_SERVICE_ENDPOINT", format!("unix://{CONTAINERD}"));
        Ok(inside)
    }

    /// Runs a command inside the machine and gives what it printed.
    pub fn run(&self, words: &[&str]) -> Result<String> {
        run(&mut self.command(words)?)
    }

    /// The running container of a pod. Fails if there is none.
    pub fn container(&self, namespace: &str, pod: &str, container: &str) -> Result<Container> {
        let pod_label = format!("io.kubernetes.pod.name={pod}");
        let namespace_label = format!("io.kubernetes.pod.namespace={namespace}");
        let name_label = format!("io.kubernetes.container.name={container}");
        let listed = self.run(&[
            "crictl",
            "ps",
            "--quiet",
            "--state=Running",
            "--label",
            &pod_label,
            "--label",
            &namespace_label,
            "--label",
            &name_label,
        ])?;
        let gone = || Error::Refused {
            machine: self.machine.name(),
            message: format!("no running container {container} of pod {namespace}/{pod} is here"),
        };
        let id = listed.lines().next().ok_or_else(gone)?.to_owned();
        let text = self.run(&["crictl", "inspect", &id])?;
        let document: Value = serde_json::from_str(&text)
            .map_err(|source| Error::Document { what: "what crictl inspect printed".to_owned(), source })?;
        let pid =
            document["info"]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).ok_or_else(gone)?;
        Ok(Container { id, pid })
    }

    /// Sends a signal, by the name that `kill` knows, to a container's first process, from outside.
    pub fn signal(&self, container: &Container, signal: &str) -> Result<()> {
        self.run(&["kill", "-s", signal, &container.pid.to_string()]).map(|_| ())
    }

    /// Every process of a container, by its number in the node, also those that changed user or group.
    /// Empty once the container is gone.
    pub fn processes(&self, container: &Container) -> Result<Vec<u32>> {
        let script =
            "for p in /proc/[0-9]*; do grep -q \"$0\" $p/cgroup 2>/dev/null && echo ${p#/proc/}; done; :";
        let found = self.run(&["sh", "-c", script, &container.id])?;
        Ok(found.lines().filter_map(|line| line.parse().ok()).collect())
    }

    /// Whether an image of that name was handed to the node.
    pub fn has(&self, image: &str) -> bool {
        self.images().contains_key(image)
    }

    /// Hands images to the node, those only that it does not have yet.
    /// Fails if containerd refuses one.
    pub fn import(&self, archives: &[ImageArchive], progress: &Progress) -> Result<()> {
        let record = self.images_file();
        let mut has = self.images();
        for archive in archives {
            if has.get(&archive.name) == Some(&archive.digest) {
                continue;
            }
            let path = archive.path.display().to_string();
            self.run(&["ctr", "--namespace=k8s.io", "images", "import", &path])?;
            progress.step(&format!(
                "{} has {} ({:.19}, {} KiB)",
                self.machine.name(),
                archive.name,
                archive.digest,
                archive.bytes / 1024
            ));
            has.insert(archive.name.clone(), archive.digest.clone());
            let text = serde_json::to_string(&has)
                .map_err(|source| Error::Document { what: record.display().to_string(), source })?;
            fs::write(&record, text).map_err(Error::file("write", &record))?;
        }
        Ok(())
    }

    /// Names and ids of what was handed to the node.
    fn images(&self) -> BTreeMap<String, String> {
        fs::read(self.images_file())
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default()
    }

    fn images_file(&self) -> PathBuf {
        self.paths.machine(self.machine).join("images.json")
    }
}
