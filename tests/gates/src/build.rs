//! Our own programs, built as the tests are.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, ensure};

/// What this process has built already: cargo may have to wait for somebody else's build each time.
static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());

/// Builds a program with cargo, once, and gives its place, below the folder where this test lies.
pub(crate) fn program(package: &str, name: &str) -> anyhow::Result<PathBuf> {
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(place) = built.get(name) {
        return Ok(place.clone());
    }
    let place = build(package, name)?;
    built.insert(name.to_owned(), place.clone());
    Ok(place)
}

fn build(package: &str, name: &str) -> anyhow::Result<PathBuf> {
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
