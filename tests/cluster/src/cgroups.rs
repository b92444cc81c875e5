//! Where do the pods of a cluster stand in the cgroup hierarchies, and how are these folders made and removed?

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::machine::Machine;

/// The folder, at the root of each hierarchy, below which everything of the harness lies.
pub const FOLDER: &str = "fencedlease";

/// Controllers that a kubelet needs on cgroup v2.
const NEEDED_V2: [&str; 3] = ["cpu", "memory", "pids"];
/// Controllers that it uses where they are there.
const WANTED_V2: [&str; 6] = ["cpuset", "cpu", "io", "memory", "hugetlb", "pids"];
/// How long the processes of a killed cluster may take to leave their folders.
const EMPTY_WITHIN: Duration = Duration::from_secs(20);

/// One mounted cgroup hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// Where it is mounted.
    pub mount: PathBuf,
    /// Whether it is cgroup v2.
    pub unified: bool,
}

/// The hierarchies among the mounts of `/proc/self/mounts`.
pub fn hierarchies(mounts: &str) -> Vec<Hierarchy> {
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let (mount, kind) = (fields.next()?, fields.next()?);
            matches!(kind, "cgroup" | "cgroup2")
                .then(|| Hierarchy { mount: PathBuf::from(mount), unified: kind == "cgroup2" })
        })
        .collect()
}

/// The hierarchies of this host.
pub fn of_this_host() -> Result<Vec<Hierarchy>> {
    let path = Path::new("/proc/self/mounts");
    Ok(hierarchies(&fs::read_to_string(path).map_err(Error::file("read", path))?))
}

/// Checks that a kubelet finds the controllers that it needs.
pub fn check(hierarchies: &[Hierarchy]) -> Result<()> {
    let v1 = ["memory", "cpu"].iter().all(|name| {
        hierarchies
            .iter()
            .any(|it| !it.unified && it.mount.to_string_lossy().split([',', '/']).any(|part| part == *name))
    });
    let v2 = hierarchies.iter().filter(|it| it.unified).any(|it| {
        let offered = read(&it.mount.join("cgroup.controllers"));
        NEEDED_V2.iter().all(|name| offered.split_whitespace().any(|have| have == *name))
    });
    if v1 || v2 {
        return Ok(());
    }
    Err(Error::missing(
        "no cgroup hierarchy below /sys/fs/cgroup offers the controllers cpu, memory and pids",
        "Run on a host (or in a privileged container with --cgroupns=host) that has them",
    ))
}

/// Makes the folder of a machine in every hierarchy, ready for a kubelet.
pub fn make(hierarchies: &[Hierarchy], machine: Machine) -> Result<()> {
    for hierarchy in hierarchies {
        let above = hierarchy.mount.join(FOLDER);
        let folder = above.join(machine.name());
        for (parent, child) in [(&hierarchy.mount, &above), (&above, &folder)] {
            if hierarchy.unified {
                offer_controllers(parent)?;
            }
            fs::create_dir_all(child).map_err(Error::file("make", child))?;
            for file in ["cpuset.cpus", "cpuset.mems"] {
                let (from, to) = (parent.join(file), child.join(file));
                if !hierarchy.unified && from.exists() && read(&to).trim().is_empty() {
                    fs::write(&to, read(&from)).map_err(Error::file("write", &to))?;
                }
            }
        }
        if hierarchy.unified {
            offer_controllers(&folder)?;
        }
    }
    Ok(())
}

/// The harness's folders that exist, one for each hierarchy.
pub fn remaining(hierarchies: &[Hierarchy]) -> Vec<PathBuf> {
    hierarchies.iter().map(|it| it.mount.join(FOLDER)).filter(|folder| folder.exists()).collect()
}

/// Process ids in the harness's folders: pods and whatever they started.
pub fn processes(hierarchies: &[Hierarchy]) -> Vec<i32> {
    let mut found = Vec::new();
    for folder in remaining(hierarchies) {
        walk(&folder, &mut |below| {
            found.extend(read(&below.join("cgroup.procs")).lines().filter_map(|pid| pid.parse::<i32>().ok()));
        });
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Removes the harness's folders, waiting for the processes in them to be gone.
/// Fails if one cannot be removed after 20 s.
pub fn remove(hierarchies: &[Hierarchy]) -> Result<()> {
    let until = Instant::now() + EMPTY_WITHIN;
    for folder in remaining(hierarchies) {
        loop {
            match remove_below(&folder) {
                Ok(()) => break,
                Err(_) if Instant::now() < until => thread::sleep(Duration::from_millis(50)),
                Err(error) => return Err(Error::file("remove", &folder)(error)),
            }
        }
    }
    Ok(())
}

fn offer_controllers(folder: &Path) -> Result<()> {
    let offered = read(&folder.join("cgroup.controllers"));
    let control = folder.join("cgroup.subtree_control");
    let given = read(&control);
    let missing: Vec<String> = WANTED_V2
        .iter()
        .filter(|name| offered.split_whitespace().any(|have| have == **name))
        .filter(|name| !given.split_whitespace().any(|have| have == **name))
        .map(|name| format!("+{name}"))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    fs::write(&control, missing.join(" ")).map_err(Error::file("write", &control))
}

fn remove_below(folder: &Path) -> std::io::Result<()> {
    let mut folders = Vec::new();
    walk(folder, &mut |below| folders.push(below.to_path_buf()));
    for below in folders.iter().rev() {
        match fs::remove_dir(below) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn walk(folder: &Path, visit: &mut impl FnMut(&Path)) {
    visit(folder);
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&entry.path(), visit);
        }
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests;
