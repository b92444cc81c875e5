//! What of a cluster is on this host: all of it while one runs, nothing after `down`.

use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::cgroups;
use crate::command::{command, run};
use crate::error::{Error, Result};
use crate::init::MARKER;
use crate::machine::HOST_INTERFACE;
use crate::network;
use crate::paths::Paths;

/// A process and its command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id on this host.
    pub pid: i32,
    /// Its command line, or its name if it has none.
    pub command: String,
}

/// Everything of a cluster that is on this host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Leftovers {
    /// Processes that a machine's first process started, and whatever runs in the pods' cgroups.
    pub processes: Vec<Process>,
    /// Mounts below the run folder that this host sees.
    pub mounts: Vec<String>,
    /// Cgroup folders.
    pub cgroups: Vec<PathBuf>,
    /// The interface and routes into the cluster's networks.
    pub network: Vec<String>,
    /// The run folder, if it is there.
    pub folder: Option<PathBuf>,
}

impl Leftovers {
    /// Whether nothing is there.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Leftovers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for process in &self.processes {
            writeln!(out, "process {}: {:.120}", process.pid, process.command)?;
        }
        for mount in &self.mounts {
            writeln!(out, "mount {mount}")?;
        }
        for folder in self.cgroups.iter().chain(&self.folder) {
            writeln!(out, "folder {}", folder.display())?;
        }
        for line in &self.network {
            writeln!(out, "network {line}")?;
        }
        Ok(())
    }
}

/// Looks for everything of a cluster with this cache folder.
pub fn leftovers(paths: &Paths) -> Result<Leftovers> {
    let run_folder = paths.run();
    let hierarchies = cgroups::of_this_host()?;
    let mut processes = marked_processes(|machine| machine.parent() == Some(&run_folder))?;
    for pid in cgroups::processes(&hierarchies) {
        if !processes.iter().any(|it| it.pid == pid) {
            processes.push(Process { pid, command: command_line(pid) });
        }
    }
    let links = run(&mut command(&["ip", "-brief", "link", "show"]))?;
    let mut network: Vec<String> =
        links.lines().filter(|line| line.starts_with(HOST_INTERFACE)).map(str::to_owned).collect();
    network.extend(network::host_routes()?);
    Ok(Leftovers {
        processes,
        mounts: mounts_below(&run_folder)?,
        cgroups: cgroups::remaining(&hierarchies),
        network,
        folder: run_folder.exists().then_some(run_folder),
    })
}

/// The run folder of a cluster that was started with another cache folder, if one runs.
pub(super) fn foreign_run(paths: &Paths) -> Result<Option<PathBuf>> {
    let own = paths.run();
    let mut foreign = None;
    marked_processes(|machine| {
        if let Some(run) = machine.parent().filter(|run| *run != own) {
            foreign = Some(run.to_path_buf());
        }
        false
    })?;
    Ok(foreign)
}

/// Processes whose environment says that they belong to a machine whose folder `wanted` accepts.
pub(super) fn marked_processes(mut wanted: impl FnMut(&Path) -> bool) -> Result<Vec<Process>> {
    let proc = Path::new("/proc");
    let start = format!("{MARKER}=").into_bytes();
    let mut found = Vec::new();
    for entry in fs::read_dir(proc).map_err(Error::file("read", proc))?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        // A process that ends meanwhile, or a kernel thread, has no environment to read.
        let Ok(environment) = fs::read(entry.path().join("environ")) else { continue };
        let machine = environment.split(|byte| *byte == 0).find_map(|it| it.strip_prefix(start.as_slice()));
        let Some(machine) = machine else { continue };
        let machine = Path::new(std::ffi::OsStr::from_bytes(machine));
        if wanted(machine) {
            found.push(Process { pid, command: command_line(pid) });
        }
    }
    Ok(found)
}

/// Mounts below a folder, the deepest first.
pub(super) fn mounts_below(folder: &Path) -> Result<Vec<String>> {
    let path = Path::new("/proc/self/mounts");
    let text = fs::read_to_string(path).map_err(Error::file("read", path))?;
    let mut mounts: Vec<String> = text
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .filter(|mount| Path::new(mount).starts_with(folder))
        .map(str::to_owned)
        .collect();
    mounts.reverse();
    Ok(mounts)
}

fn command_line(pid: i32) -> String {
    let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let words =
        read("cmdline").split(|byte| *byte == 0).map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ");
    if words.is_empty() {
        String::from_utf8_lossy(&read("comm")).trim().to_owned()
    } else {
        words.trim().to_owned()
    }
}

#[cfg(test)]
mod tests;
