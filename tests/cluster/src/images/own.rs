//! The programs of this workspace, linked statically: one file that runs in an empty image.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::list::{Image, Part};
use crate::command::{command, run};
use crate::error::{Error, Result};
use crate::progress::Progress;

/// Builds the programs of these images with cargo, which does nothing for what has not changed, and gives
/// the folder that they lie in.
pub(super) fn build(images: &[&Image], target: &Path, progress: &Progress) -> Result<PathBuf> {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let folder = target.join(&triple).join("release");
    let programs = programs(images);
    if programs.is_empty() {
        return Ok(folder);
    }
    // One package a call: built together, each would get the features that the others ask for, and be built
    // again for every other choice of images.
    for package in programs.chunk_by(|one, next| one.0 == next.0) {
        let names = package.iter().map(|&(_, binary)| binary).collect::<Vec<_>>().join(", ");
        let text = format!("Building {names} (minutes when nothing is cached; next: images)");
        progress.during(&text, || run(&mut cargo(package, target, &triple)))?;
    }
    for (_, name) in programs {
        let program = folder.join(name);
        if !is_static(&program) {
            return Err(Error::missing(
                format!(
                    "{} is not linked statically, so that it cannot run in an empty image",
                    program.display()
                ),
                "Unset build.rustflags and linker settings in cargo's configuration",
            ));
        }
    }
    Ok(folder)
}

/// Crate and name of each program, once.
pub(super) fn programs(images: &[&Image]) -> Vec<(&'static str, &'static str)> {
    let mut programs = Vec::new();
    for part in images.iter().flat_map(|image| image.parts) {
        if let &Part::Own { package, binary } = part {
            programs.push((package, binary));
        }
    }
    programs.sort_unstable();
    programs.dedup();
    programs
}

pub(super) fn cargo(programs: &[(&str, &str)], target: &Path, triple: &str) -> Command {
    let mut cargo = command(&["cargo", "build", "--release", "--quiet", "--target", triple]);
    let variable = format!("CARGO_TARGET_{}_RUSTFLAGS", triple.to_uppercase().replace('-', "_"));
    cargo
        .current_dir(workspace())
        .arg("--target-dir")
        .arg(target)
        .env(variable, "-C target-feature=+crt-static")
        // Either would take the place of the variable above.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    // What a cargo that started us says of our own package. Build scripts of dependencies look at these, so the
    // same programs would be built anew for each caller.
    let of_our_package = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| of_our_package(name)) {
        cargo.env_remove(name);
    }
    for (package, binary) in programs {
        cargo.args(["-p", package, "--bin", binary]);
    }
    cargo
}

/// The folder with the workspace's Cargo.toml.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A program that asks for a loader and libraries has a list of them; `ldd` fails or says so for others.
fn is_static(program: &Path) -> bool {
    run(Command::new("ldd").arg(program)).map_or(true, |list| list.contains("statically linked"))
}
