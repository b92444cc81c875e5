//! The files that a machine's components read, and the one number that says whether they are today's.

use std::fs;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::command::hex;
use crate::components;
use crate::config;
use crate::error::{Error, Result};
use crate::machine::{MAX_NODES, Machine};
use crate::paths::Paths;
use crate::pki::{Authority, Subject};
use crate::tools::TOOLS;

/// Writes the certificates and kubeconfigs of a machine.
pub(super) fn write_identities(paths: &Paths, machine: Machine, authority: &Authority) -> Result<()> {
    let pki = paths.pki();
    fs::create_dir_all(&pki).map_err(Error::file("make", &pki))?;
    if machine == Machine::Control {
        authority.identity().write(&pki, "ca")?;
        authority
            .issue(&Subject { name: "service-accounts", ..Subject::default() })?
            .write(&pki, "service-account")?;
    }
    let mut result = Ok(());
    components::subjects(machine, &machine.name(), |file, subject| {
        let written = authority.issue(&subject).and_then(|identity| {
            identity.write(&pki, file)?;
            let text = config::kubeconfig(&authority.identity().certificate, &identity);
            write(&pki.join(format!("{file}.kubeconfig")), &text)
        });
        if result.is_ok() {
            result = written;
        }
    });
    result
}

/// Writes the configuration files of a machine.
pub(super) fn write_configs(paths: &Paths, machine: Machine) -> Result<()> {
    for (path, text) in configs(paths, machine) {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(Error::file("make", folder))?;
        }
        write(&path, &text)?;
    }
    Ok(())
}

/// Changes whenever a cluster would be started differently.
pub(super) fn fingerprint(paths: &Paths) -> Result<String> {
    let mut digest = Sha256::new();
    for tool in &TOOLS {
        digest.update(tool.file_name()?);
    }
    for machine in std::iter::once(Machine::Control).chain((1..=MAX_NODES).map(Machine::Node)) {
        for (path, text) in configs(paths, machine) {
            digest.update(format!("{}\n{text}", path.display()));
        }
        for component in components::of(paths, machine) {
            digest.update(component.argv.join("\n"));
        }
    }
    Ok(hex(&digest.finalize()[..8]))
}

fn configs(paths: &Paths, machine: Machine) -> Vec<(PathBuf, String)> {
    let folder = paths.machine(machine);
    let pki = paths.pki().display().to_string();
    if machine == Machine::Control {
        let kubeconfig = format!("{pki}/admin.kubeconfig");
        return vec![(folder.join("Corefile"), config::coredns(&kubeconfig))];
    }
    let resolv = folder.join("resolv.conf");
    let plugins = folder.join("volume-plugins");
    let cni = folder.join("cni");
    let kubelet =
        config::kubelet(machine, &pki, &resolv.display().to_string(), &plugins.display().to_string());
    vec![
        (resolv, String::new()),
        (folder.join("kubelet.json"), kubelet),
        (
            folder.join("kube-proxy.json"),
            config::kube_proxy(machine, &format!("{pki}/kube-proxy.kubeconfig")),
        ),
        (folder.join("containerd.toml"), config::containerd(&cni.display().to_string())),
        (cni.join("10-fencedlease.conflist"), config::cni(machine)),
    ]
}

fn write(path: &std::path::Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(Error::file("write", path))
}
