//! Our own programs, built as the tests are.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};

/// Builds a program with cargo and gives its place, below the folder where this test lies.
pub(crate) fn program(package: &str, name: &str) -> anyhow::Result<PathBuf> {
    let test = env::current_exe()?;
    let profile = test.ancestors().nth(2).context("a test lies two folders below its profile's")?;
    let target = profile.parent().context("a profile's folder lies in the target folder")?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--quiet", "-p", package, "--bin", name]);
    cargo.current_dir(Path::new(env!("CARGO_MANIFEST_DIR"))).arg("--target-dir").arg(target);
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let output = cargo.output().context("cannot run cargo")?;
    ensure!(output.status.success(), "cargo: {}", String::from_utf8_lossy(&output.stderr));
    Ok(profile.join(name))
}
