//! From whatever is there to nothing.

use std::fs;
use std::io::ErrorKind;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::leftovers::{foreign_run, leftovers, marked_processes, mounts_below};
use crate::cgroups;
use crate::command::{command, run};
use crate::error::{Error, Result};
use crate::network;
use crate::paths::Paths;

/// How long the kernel may take to end killed processes.
const DEAD_WITHIN: Duration = Duration::from_secs(30);

/// Ends a cluster, complete or not, and removes all that it had on this host.
/// The lock is the caller's. Fails, naming what remains, if something does not go away.
pub fn down(paths: &Paths) -> Result<()> {
    refuse_foreign(paths)?;
    kill_all(paths)?;
    network::disconnect_host()?;
    cgroups::remove(&cgroups::of_this_host()?)?;
    for mount in mounts_below(&paths.run())? {
        run(&mut command(&["umount", "--lazy", &mount]))?;
    }
    match fs::remove_dir_all(paths.run()) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(Error::file("remove", &paths.run())(error));
        }
        _ => {}
    }
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

/// The first process of a machine takes all others of the machine with it; the rest of the list is for
/// what a half-finished start has left.
fn kill_all(paths: &Paths) -> Result<()> {
    let hierarchies = cgroups::of_this_host()?;
    let run_folder = paths.run();
    let until = Instant::now() + DEAD_WITHIN;
    loop {
        let mut pids: Vec<i32> =
            marked_processes(|run| run == run_folder)?.into_iter().map(|process| process.pid).collect();
        pids.extend(cgroups::processes(&hierarchies));
        if pids.is_empty() {
            return Ok(());
        }
        if Instant::now() > until {
            return Err(Error::Timeout {
                what: "the end of the cluster's processes".to_owned(),
                seconds: DEAD_WITHIN.as_secs(),
                hint: format!("this is left:\n{}", leftovers(paths)?),
            });
        }
        for pid in pids.into_iter().filter_map(Pid::from_raw) {
            // It may have ended since it was found.
            let _ = kill_process(pid, Signal::KILL);
        }
        thread::sleep(Duration::from_millis(30));
    }
}
