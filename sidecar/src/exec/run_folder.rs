//! Where the sockets of one *exec* lie: a folder of its own, which ends with it. Who was killed leaves it to the next.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf, absolute};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, open};
use rustix::process::geteuid;

/// What the names of such folders begin with.
const PREFIX: &str = "fencedlease-exec-";

/// The folder.
#[derive(Debug)]
pub(super) struct RunFolder {
    root: PathBuf,
    /// Held until all processes that use the folder have ended: *exec*, *hold* and the guard each hold one.
    _use: Option<OwnedFd>,
    shared: PathBuf,
    private: PathBuf,
}

impl RunFolder {
    /// Makes it where temporary things in memory lie, else where temporary files do.
    pub(super) fn make() -> io::Result<Self> {
        let place = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let mut places = place.into_iter().chain([PathBuf::from("/run"), env::temp_dir()]);
        let number = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
        let name = format!("{PREFIX}{number:016x}");
        let (place, new) = places
            .find_map(|place| {
                let new = place.join(format!(".{name}"));
                // Others may pass, as the command may run as another user, but not look.
                DirBuilder::new().mode(0o711).create(&new).ok().map(|()| (place, new))
            })
            .ok_or_else(|| {
                io::Error::other("neither XDG_RUNTIME_DIR, /run nor TMPDIR can be written: set TMPDIR")
            })?;
        remove_unused(&place);
        // It has its name once it is in use: what has the name and is not is removed by others.
        let in_use = use_of(&new, FlockOperation::LockShared);
        let root = place.join(name);
        fs::rename(&new, &root)?;
        let (shared, private) = (root.join("shared"), root.join("private"));
        let folder = Self { root, _use: in_use, shared, private };
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

/// Takes part in the use of the folder that this one lies in, to the end of the process.
pub(super) fn take_part(below: &Path) {
    // Where it fails, as on a file system without locks, there is nobody else's use either.
    let in_use = below.parent().and_then(|root| use_of(root, FlockOperation::LockShared));
    std::mem::forget(in_use);
}

/// Removes what others of this user left who were killed. What cannot be looked at is not theirs.
fn remove_unused(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if !entry.file_name().as_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let folder = entry.path();
        if use_of(&folder, FlockOperation::NonBlockingLockExclusive).is_some() {
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

/// The use of a folder of this user's, until it is dropped. A program that is started does not get it.
fn use_of(folder: &Path, how: FlockOperation) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = open(folder, flags, Mode::empty()).ok()?;
    let is_own = fstat(&folder).ok()?.st_uid == geteuid().as_raw();
    (is_own && flock(&folder, how).is_ok()).then_some(folder)
}
