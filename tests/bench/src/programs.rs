//! The programs that are measured: ours, built as they are shipped, and Debian's.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

/// Builds one of our programs with cargo's release profile, and gives its path. Cargo says what it does, since
/// that can take minutes.
pub fn release(package: &str, binary: &str) -> anyhow::Result<PathBuf> {
    let format = "--message-format=json-render-diagnostics";
    let text = cargo(&["build", "--release", "--locked", format, "-p", package, "--bin", binary])?;
    let executables = text.lines().filter_map(|line| line.split_once("\"executable\":\"")).map(|(_, it)| it);
    let path = executables.filter_map(|it| it.split('"').next()).next_back();
    path.map(PathBuf::from).with_context(|| format!("cargo does not say where it put {binary}"))
}

/// Runs cargo at the workspace's root, and gives what it printed. What it says of its own work is shown.
pub fn cargo(words: &[&str]) -> anyhow::Result<String> {
    let mut cargo = Command::new("cargo");
    cargo.args(words).current_dir(root()?).stdin(Stdio::null()).stderr(Stdio::inherit());
    // What the cargo that started us says of our own package would have dependencies built anew.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&name);
        }
    }
    let output = cargo.output().context("cannot run cargo")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        bail!("cargo {} failed:\n{text}", words.join(" "));
    }
    Ok(text)
}

/// Installs Debian's packages that are missing, as the tests of the whole do.
pub fn install() -> anyhow::Result<()> {
    let cluster = fencedlease_cluster::progress::Progress::start();
    Ok(fencedlease_cluster::tools::install_missing(&cluster)?)
}

fn root() -> anyhow::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    Ok(root.context("this crate lies two folders below the root")?.to_owned())
}
