//! What the tests of the repository's shape read: cargo's metadata and trees, and the files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde::Deserialize;

/// Folders that hold no files of ours.
const NOT_OURS: [&str; 3] = [".git", "target", "node_modules"];

/// A crate of the workspace.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its Cargo.toml.
    pub manifest_path: PathBuf,
    /// What it declares to depend on.
    pub dependencies: Vec<Dependency>,
}

/// A declared dependency.
#[derive(Debug, Deserialize)]
pub struct Dependency {
    /// The crate's name.
    pub name: String,
    /// `None` is a normal one; else `dev` or `build`.
    pub kind: Option<String>,
}

/// The repository's root.
pub fn root() -> anyhow::Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().nth(2).context("this crate lies two folders below the root")?;
    Ok(root.to_owned())
}

/// Every crate of the workspace, with what it declares.
pub fn packages() -> anyhow::Result<Vec<Package>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    let text = cargo(&["metadata", "--format-version", "1", "--no-deps"])?;
    let metadata: Metadata = serde_json::from_str(&text).context("cargo's metadata has another form")?;
    Ok(metadata.packages)
}

/// The names of all crates that end up in this one's programs or build them, itself included.
pub fn tree(package: &str) -> anyhow::Result<BTreeSet<String>> {
    let edges = "normal,build";
    let text = cargo(&["tree", "-p", package, "-e", edges, "--prefix", "none", "--format", "{p}"])?;
    Ok(text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
}

/// Every file of ours with one of these endings, as its path from the root and its text.
pub fn files(endings: &[&str]) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let root = root()?;
    let mut folders = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let entry = entry?;
            let (name, path) = (entry.file_name(), entry.path());
            let name = name.to_string_lossy();
            if entry.file_type()?.is_dir() {
                if !NOT_OURS.contains(&name.as_ref()) {
                    folders.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                let text =
                    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                found.push((path.strip_prefix(&root)?.to_owned(), text));
            }
        }
    }
    Ok(found)
}

fn cargo(arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()?).output()?;
    if !output.status.success() {
        bail!("cargo {} failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
