//! The inputs that are kept, by target.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// An input that is kept.
#[derive(Clone, Debug)]
pub struct Input {
    /// Its file.
    pub path: PathBuf,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// The folder of a target's inputs.
pub fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// A target's inputs, in the order of their names.
pub fn inputs(target: &str) -> anyhow::Result<Vec<Input>> {
    let folder = folder(target);
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut inputs = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        inputs.push(Input { path, bytes });
    }
    inputs.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(inputs)
}
