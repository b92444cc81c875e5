//! Where the sockets of one *exec* lie: a folder of its own, which ends with it.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf, absolute};

/// The folder.
#[derive(Debug)]
pub(super) struct RunFolder {
    root: PathBuf,
    shared: PathBuf,
    private: PathBuf,
}

impl RunFolder {
    /// Makes it where temporary things in memory lie, else where temporary files do.
    pub(super) fn make() -> io::Result<Self> {
        let place = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let mut places = place.into_iter().chain([PathBuf::from("/run"), env::temp_dir()]);
        let number = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
        let name = format!("fencedlease-exec-{number:016x}");
        let root = places
            .find_map(|place| {
                let folder = place.join(&name);
                // Others may pass, as the command may run as another user, but not look.
                DirBuilder::new().mode(0o711).create(&folder).ok().map(|()| folder)
            })
            .ok_or_else(|| {
                io::Error::other("neither XDG_RUNTIME_DIR, /run nor TMPDIR can be written: set TMPDIR")
            })?;
        let (shared, private) = (root.join("shared"), root.join("private"));
        let folder = Self { root, shared, private };
        DirBuilder::new().mode(0o755).create(&folder.shared)?;
        DirBuilder::new().mode(0o700).create(&folder.private)?;
        Ok(folder)
    }

    /// For both sides.
    pub(super) fn shared(&self) -> &Path {
        &self.shared
    }

    /// Where *hold* finds the authorities of these gates: links to one file, so that a new one needs no restart.
    pub(super) fn link_authorities<'a>(
        &self,
        gates: impl Iterator<Item = &'a str>,
        file: &Path,
    ) -> io::Result<PathBuf> {
        let (folder, file) = (self.private.join("gate-tls"), absolute(file)?);
        for gate in gates {
            let place = folder.join(gate);
            fs::create_dir_all(&place)?;
            symlink(&file, place.join("ca.crt"))?;
        }
        Ok(folder)
    }

    /// For *hold* alone.
    pub(super) fn private(&self) -> &Path {
        &self.private
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // What cannot be removed is small, and in memory where that is possible.
        let _ = fs::remove_dir_all(&self.root);
    }
}
