//! What comes from the distribution, and how does it get here?

use std::path::Path;
use std::process::Command;

use crate::command::{command, run};
use crate::error::{Error, Result};
use crate::progress::Progress;

/// A file that must be there, and the Debian package that brings it.
struct Needed {
    file: &'static str,
    package: &'static str,
}

const fn needed(file: &'static str, package: &'static str) -> Needed {
    Needed { file, package }
}

const NEEDED: [Needed; 22] = [
    needed("unshare", "util-linux"),
    needed("mount", "mount"),
    needed("hostname", "hostname"),
    needed("runc", "runc"),
    needed("/usr/lib/cni/ptp", "containernetworking-plugins"),
    needed("ip", "iproute2"),
    needed("iptables", "iptables"),
    needed("nft", "nftables"),
    needed("conntrack", "conntrack"),
    needed("redis-server", "redis-server"),
    needed("redis-cli", "redis-tools"),
    needed("mariadbd", "mariadb-server"),
    needed("/usr/bin/curl", "curl"),
    needed("busybox", "busybox-static"),
    needed("nginx", "nginx-light"),
    // The client alone makes /usr/lib/postgresql.
    needed("/var/lib/postgresql", "postgresql"),
    needed("psql", "postgresql-client"),
    needed("pgbouncer", "pgbouncer"),
    needed("python3", "python3"),
    // Counts what a gate syncs, in the bench.
    needed("strace", "strace"),
    needed("pip3", "python3-pip"),
    needed("javac", "default-jdk-headless"),
];

const FOLDERS: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Installs the distribution's packages that are missing, where it may: as root, with apt-get.
/// Else fails with the command to type.
pub fn install_missing(progress: &Progress) -> Result<()> {
    let missing = missing_packages(|file| Path::new(file).exists());
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    let typed = format!("apt-get update && apt-get install -y {list}");
    if !rustix::process::geteuid().is_root() || run(&mut command(&["apt-get", "--version"])).is_err() {
        return Err(Error::missing(
            format!("these packages are missing: {list}"),
            format!("As root on Debian or Ubuntu: {typed}"),
        ));
    }
    progress.during(&format!("Installing {list}"), || {
        run(quiet(&mut command(&["apt-get", "update"])))?;
        let mut install = command(&["apt-get", "install", "-y", "--no-install-recommends"]);
        run(quiet(install.args(&missing))).map(|_| ())
    })?;
    match missing_packages(|file| Path::new(file).exists()).first() {
        None => Ok(()),
        Some(package) => Err(Error::missing(
            format!("apt-get installed {list}, but {package} did not bring what is needed"),
            "Install that program by hand",
        )),
    }
}

fn quiet(apt: &mut Command) -> &mut Command {
    apt.env("DEBIAN_FRONTEND", "noninteractive").arg("-q")
}

/// The packages whose file is not there, by a function that says whether one is.
pub(super) fn missing_packages(exists: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let is_there = |file: &str| {
        if file.starts_with('/') {
            exists(file)
        } else {
            FOLDERS.iter().any(|at| exists(&format!("{at}/{file}")))
        }
    };
    NEEDED.iter().filter(|it| !is_there(it.file)).map(|it| it.package).collect()
}
