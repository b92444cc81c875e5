//! One change at a time: `up`, `down` and `images` wait for each other.

use std::fs::{self, File};
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};

use crate::error::{Error, Result};
use crate::paths::Paths;
use crate::progress::Progress;

/// Held while a cluster is changed; the kernel takes it back when its holder ends, however it ends.
#[derive(Debug)]
#[must_use = "dropping it lets others in"]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock called `name`, and says so if another process has it.
    /// Fails only if the cache folder cannot be written.
    pub fn take(paths: &Paths, name: &str, progress: &Progress) -> Result<Self> {
        fs::create_dir_all(paths.cache()).map_err(Error::file("make", paths.cache()))?;
        let path: PathBuf = paths.cache().join(format!("{name}.lock"));
        let file = File::create(&path).map_err(Error::file("open", &path))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            progress.step(&format!(
                "Another `cluster` command is at work ({} is locked); waiting for it",
                path.display()
            ));
            flock(&file, FlockOperation::LockExclusive)
                .map_err(|error| Error::file("lock", &path)(error.into()))?;
        }
        Ok(Self { _file: file })
    }
}
