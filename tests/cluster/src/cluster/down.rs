//! From whatever is there to nothing.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::leftovers::{foreign_run, leftovers, marked_processes, mounts_below};
use crate::cgroups;
use crate::command::{command, run};
use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::network;
use crate::paths::Paths;

/// How long the kernel may take to end killed processes.
const DEAD_WITHIN: Duration = Duration::from_secs(30);

/// Ends a cluster, complete or not, and removes all that it had on this host.
/// The lock is the caller's. Fails, naming what remains, if something does not go away.
pub fn down(paths: &Paths) -> Result<()> {
    refuse_foreign(paths)?;
    let run_folder = paths.run();
    kill(paths, |machine| machine.parent() == Some(&run_folder))?;
    network::disconnect_host()?;
    cgroups::remove(&cgroups::of_this_host()?)?;
    for mount in mounts_below(&run_folder)? {
        run(&mut command(&["umount", "--lazy", &mount]))?;
    }
    remove_folder(&run_folder)?;
    let remaining = leftovers(paths)?;
    if remaining.is_empty() {
        return Ok(());
    }
    Err(Error::Timeout {
        what: "the removal of the cluster".to_owned(),
        seconds: DEAD_WITHIN.as_secs(),
        hint: format!("this is left:\n{remaining}"),
    })
}

/// Pods of two clusters would stand in the same cgroup folders and networks.
pub(super) fn refuse_foreign(paths: &Paths) -> Result<()> {
    match foreign_run(paths)? {
        None => Ok(()),
        Some(run) => Err(Error::missing(
            format!("a cluster with another cache folder runs: {}", run.display()),
            format!(
                "End it first: FENCEDLEASE_CACHE={} cluster down",
                run.parent().unwrap_or(&run).display()
            ),
        )),
    }
}

/// Ends what a killed `up` has left of a node that is about to be started, while others go on.
pub(super) fn clear_machine(paths: &Paths, machine: Machine) -> Result<()> {
    let own = paths.machine(machine);
    kill(paths, |folder| folder == own)?;
    remove_folder(&own)
}

fn remove_folder(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::file("remove", folder)(error)),
        _ => Ok(()),
    }
}

/// Kills the processes of the machines whose folder `wanted` accepts, and waits for their end. The first
/// process of a machine takes all others of the machine with it, those of its pods too.
fn kill(paths: &Paths, wanted: impl Fn(&Path) -> bool) -> Result<()> {
    let until = Instant::now() + DEAD_WITHIN;
    loop {
        let processes = marked_processes(&wanted)?;
        if processes.is_empty() {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(Error::Timeout {
                what: "the end of the cluster's processes".to_owned(),
                seconds: DEAD_WITHIN.as_secs(),
                hint: format!("this is left:\n{}", leftovers(paths)?),
            });
        }
        for pid in processes.into_iter().filter_map(|process| Pid::from_raw(process.pid)) {
            // It may have ended since it was found.
            let _ = kill_process(pid, Signal::KILL);
        }
        thread::sleep(Duration::from_millis(30));
    }
}
