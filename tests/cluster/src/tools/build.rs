//! Builds what is not there yet, with Go, and links it under its plain name.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::{GO, SERVERS, TOOLS, Tool};
use crate::command::{command, run};
use crate::error::{Error, Result};
use crate::paths::Paths;
use crate::progress::Progress;

/// Whether all these programs are there, in the versions of today.
pub fn is_built(paths: &Paths, tools: &[Tool]) -> Result<bool> {
    Ok(missing(paths, tools)?.is_empty())
}

/// Builds what is missing of these, and says what it does and how long that takes.
/// Fails if Go is absent or too old, or if a build fails; what was built before stays.
pub fn build_missing(paths: &Paths, tools: &[Tool], progress: &Progress) -> Result<()> {
    let missing = missing(paths, tools)?;
    if !missing.is_empty() {
        check_go()?;
        let folder = paths.tools();
        fs::create_dir_all(&folder).map_err(Error::file("make", &folder))?;
    }
    for (index, tool) in missing.iter().enumerate() {
        let next = missing
            .get(index + 1)
            .map_or_else(|| "then all are there".to_owned(), |it| format!("next: {}", it.name));
        let text = format!(
            "Building {} {} ({} of {}; about {} s when nothing is cached, a few when Go has it; {next})",
            tool.name,
            tool.version,
            index + 1,
            missing.len(),
            tool.cold_seconds
        );
        progress.during(&text, || build(tool, &paths.tools()))?;
    }
    link_all(paths, tools)?;
    remove_old(paths)
}

fn missing<'a>(paths: &Paths, tools: &'a [Tool]) -> Result<Vec<&'a Tool>> {
    let mut missing = Vec::new();
    for tool in tools {
        if !paths.tools().join(tool.file_name()?).exists() {
            missing.push(tool);
        }
    }
    Ok(missing)
}

fn build(tool: &Tool, folder: &Path) -> Result<()> {
    let file = folder.join(tool.file_name()?);
    let unfinished = folder.join("unfinished");
    fs::create_dir_all(&unfinished).map_err(Error::file("make", &unfinished))?;
    let built = unfinished.join(tool.name);
    let mut go = go();
    let flags = ["-trimpath", "-ldflags", &tool.ldflags()];
    if let Some(module) = tool.module() {
        go.current_dir(module).arg("build").args(flags).arg("-o").arg(&built).arg(tool.package);
    } else {
        let package = format!("{}@v{}", tool.package, tool.version);
        go.env("GOBIN", &unfinished).arg("install").args(flags).arg(package);
    }
    run(&mut go)?;
    fs::rename(&built, &file).map_err(Error::file("keep", &file))
}

fn go() -> Command {
    let mut go = command(&["go"]);
    go.env("CGO_ENABLED", "0").env("GOTOOLCHAIN", "local").env_remove("GOFLAGS");
    go
}

fn check_go() -> Result<()> {
    let remedy = format!("Install Go {}.{} or newer from https://go.dev/dl and put it into PATH", GO.0, GO.1);
    let version = match run(go().args(["env", "GOVERSION"])) {
        Ok(version) => version.trim().to_owned(),
        Err(Error::Spawn { .. }) => return Err(Error::missing("there is no program `go` in PATH", remedy)),
        Err(other) => return Err(other),
    };
    if version_of(&version).is_some_and(|found| found >= GO) {
        return Ok(());
    }
    Err(Error::missing(format!("the Go in PATH is {version}"), remedy))
}

/// Major and minor of what `go env GOVERSION` prints.
pub(super) fn version_of(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.strip_prefix("go")?.split(['.', 'r', 'b', ' ', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn link_all(paths: &Paths, tools: &[Tool]) -> Result<()> {
    let bin = paths.bin();
    fs::create_dir_all(&bin).map_err(Error::file("make", &bin))?;
    for tool in tools {
        let target = Path::new("../tools").join(tool.file_name()?);
        let link = bin.join(tool.name);
        if fs::read_link(&link).is_ok_and(|found| found == target) {
            continue;
        }
        let fresh = bin.join(format!(".{}", tool.name));
        let _ = fs::remove_file(&fresh);
        symlink(&target, &fresh).map_err(Error::file("link", &fresh))?;
        fs::rename(&fresh, &link).map_err(Error::file("link", &link))?;
    }
    Ok(())
}

/// Programs of other versions would fill the disk in time.
fn remove_old(paths: &Paths) -> Result<()> {
    let folder = paths.tools();
    let mut current = vec!["unfinished".to_owned()];
    for tool in TOOLS.iter().chain(&SERVERS) {
        current.push(tool.file_name()?);
    }
    for entry in fs::read_dir(&folder).map_err(Error::file("read", &folder))?.flatten() {
        if !current.iter().any(|name| entry.file_name() == name.as_str()) {
            fs::remove_file(entry.path()).map_err(Error::file("remove", &entry.path()))?;
        }
    }
    Ok(())
}
