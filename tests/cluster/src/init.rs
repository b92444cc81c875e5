//! The first process of a simulated machine: mounts what is the machine's own, starts components on
//! request, reaps what ends, and tells what it has seen. It runs until it is killed, and all else with it.

mod client;
mod protocol;
mod server;

pub use client::Client;
pub use protocol::{ComponentState, ComponentStatus, Request, Start};
use std::env;
use std::fs;
use std::path::Path;

use crate::command::{command, run};
use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::paths::{COVERED, Paths};

/// In the environment of everything that a machine's first process starts: the machine's folder.
/// By it the processes of a run are found whatever else was lost.
pub const MARKER: &str = "FENCEDLEASE_CLUSTER_MACHINE";

/// What a kubelet would otherwise set for the whole host. It finds these files instead.
const KERNEL_SETTINGS: [(&str, &str); 6] = [
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/keys/root_maxbytes", "25000000"),
];

/// The first word for a program that is started as a machine's first process; the machine's name follows.
pub const ROLE: &str = "first-process-of";

/// Becomes the first process of a machine, if that is what this program was started as, and then returns only
/// with the reason of a failure. Every program that calls [`up`](crate::cluster::up) calls this first: `up`
/// starts it again in this role.
pub fn take_over_if_asked() -> Option<Error> {
    env::var_os(MARKER)?;
    let mut words = env::args().skip(1);
    if words.next()? != ROLE {
        return None;
    }
    let machine = words.next().and_then(|name| Machine::from_name(&name))?;
    Paths::from_env()
        .and_then(|paths| prepare(&paths, machine).and_then(|()| server::serve(&paths, machine)))
        .err()
}

/// Whether this program was started as a first process; then it must not bring up a cluster itself.
pub fn was_asked() -> bool {
    env::args().nth(1).is_some_and(|word| word == ROLE)
}

/// Gives the machine its own `/run`, `/var/lib`, `/var/log`, kernel settings and host name.
/// Only to be called in fresh namespaces; fails where something cannot be mounted.
fn prepare(paths: &Paths, machine: Machine) -> Result<()> {
    let folder = paths.machine(machine);
    run(&mut command(&["hostname", &machine.name()]))?;
    run(&mut command(&["mount", "--make-rshared", "/"]))?;
    for covered in COVERED {
        let own = folder.join(covered.trim_start_matches('/').replace('/', "-"));
        fs::create_dir_all(&own).map_err(Error::file("make", &own))?;
        mount_over(&own, Path::new(covered))?;
    }
    for (setting, value) in KERNEL_SETTINGS {
        let real = Path::new("/proc/sys").join(setting);
        if !real.exists() {
            continue;
        }
        let own = folder.join(setting.replace('/', "."));
        fs::write(&own, format!("{value}\n")).map_err(Error::file("write", &own))?;
        mount_over(&own, &real)?;
    }
    run(&mut command(&["ip", "link", "set", "lo", "up"]))?;
    for setting in ["all/rp_filter", "default/rp_filter", "all/forwarding"] {
        let path = Path::new("/proc/sys/net/ipv4/conf").join(setting);
        let value = if setting.ends_with("forwarding") { "1" } else { "0" };
        fs::write(&path, value).map_err(Error::file("write", &path))?;
    }
    Ok(())
}

fn mount_over(own: &Path, covered: &Path) -> Result<()> {
    run(command(&["mount", "--bind"]).arg(own).arg(covered)).map(|_| ())
}
