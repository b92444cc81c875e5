//! Brings one machine to life, and starts its components.

use std::env;
use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::down::clear_machine;
use super::files;
use crate::cgroups;
use crate::command::tail;
use crate::components::{self, Phase};
use crate::error::{Error, Result};
use crate::init::{Client, ComponentState, MARKER, ROLE};
use crate::machine::Machine;
use crate::network;
use crate::paths::Paths;
use crate::pki::Authority;

/// How long the first process of a machine may take to be there.
const ALIVE_WITHIN: Duration = Duration::from_secs(20);
/// How many lines of a log are shown.
const TAIL_LINES: usize = 30;

/// Makes a machine: files, namespaces, network, cgroups. Nothing runs in it yet but its first process.
pub(super) fn machine(paths: &Paths, machine: Machine, authority: &Authority) -> Result<()> {
    clear_machine(paths, machine)?;
    for folder in [paths.machine(machine), paths.logs()] {
        fs::create_dir_all(&folder).map_err(Error::file("make", &folder))?;
    }
    files::write_identities(paths, machine, authority)?;
    files::write_configs(paths, machine)?;
    let pid = first_process(paths, machine)?;
    if machine == Machine::Control {
        return network::connect_control(pid);
    }
    cgroups::make(&cgroups::of_this_host()?, machine)?;
    network::connect_node(machine, pid, Client::new(paths, Machine::Control).pid()?)
}

/// Starts the components of a machine that belong to a phase.
pub(super) fn components(paths: &Paths, machine: Machine, phase: Phase) -> Result<()> {
    let client = Client::new(paths, machine);
    components::of(paths, machine)
        .iter()
        .filter(|component| component.phase == phase)
        .try_for_each(|component| client.start(component.start(paths, machine)))
}

/// Fails with the end of its log if a component has ended.
pub(super) fn check(paths: &Paths, machines: &[Machine]) -> Result<()> {
    for machine in machines {
        for component in Client::new(paths, *machine).components()? {
            if let ComponentState::Ended(how) = component.state {
                let log = paths.log(*machine, &component.name);
                let text = fs::read_to_string(&log).unwrap_or_default();
                return Err(Error::ComponentEnded {
                    component: component.name,
                    machine: machine.name(),
                    how,
                    log,
                    tail: tail(&text, TAIL_LINES),
                });
            }
        }
    }
    Ok(())
}

fn first_process(paths: &Paths, machine: Machine) -> Result<i32> {
    let exe = env::current_exe().map_err(Error::file("find", Path::new("/proc/self/exe")))?;
    let log_path = paths.log(machine, "init");
    let log = OpenOptions::new().create(true).append(true).open(&log_path);
    let log = log.map_err(Error::file("open", &log_path))?;
    let stdout = log.try_clone().map_err(Error::file("open", &log_path))?;
    let own = env::var("PATH").unwrap_or_default();
    let mut unshare = Command::new("setsid");
    unshare
        .args([
            "unshare",
            "--mount",
            "--uts",
            "--ipc",
            "--net",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ])
        .arg(exe)
        .args([ROLE, &machine.name()])
        .env(MARKER, paths.machine(machine))
        .env("FENCEDLEASE_CACHE", paths.cache())
        .env("PATH", format!("{}:{own}:/usr/sbin:/sbin", paths.bin().display()))
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(log);
    let mut child =
        unshare.spawn().map_err(|source| Error::Spawn { program: "setsid unshare".to_owned(), source })?;
    let client = Client::new(paths, machine);
    let until = Instant::now() + ALIVE_WITHIN;
    loop {
        if let Ok(pid) = client.pid() {
            return Ok(pid);
        }
        let ended = child.try_wait().ok().flatten();
        if ended.is_some() || Instant::now() > until {
            let text = fs::read_to_string(&log_path).unwrap_or_default();
            return Err(Error::ComponentEnded {
                component: "the first process".to_owned(),
                machine: machine.name(),
                how: ended.map_or_else(|| "no answer in time".to_owned(), |status| status.to_string()),
                log: log_path,
                tail: tail(&text, TAIL_LINES),
            });
        }
        thread::sleep(Duration::from_millis(10));
    }
}
