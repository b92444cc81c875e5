//! The thread that writes files, so that nobody who watches or renews waits for a volume.

use std::fs::{self, File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

use fencedlease_wire::paths::{FENCE_FILE, GUARD_BINARY, LOST_FILE};

use super::mailbox::Post;
use super::note::{NoteFile, remove};
use super::pod::{Event, FileOrder};
use super::watch::Letter;
use crate::clock;

/// The shared volume and the note.
#[derive(Debug)]
pub struct Files {
    shared_dir: PathBuf,
    note: NoteFile,
}

impl Files {
    /// The files of this pod.
    pub fn new(shared_dir: &Path, note: NoteFile) -> Self {
        Self { shared_dir: shared_dir.to_owned(), note }
    }

    /// Nothing of an earlier run counts: the fence is not held by this one.
    pub fn remove_left_over_fence(&self) -> io::Result<()> {
        remove(&self.shared_dir.join(FENCE_FILE))
    }

    /// Puts this program into the shared volume, where the guarded containers run it as their guard. A guard
    /// may be running from the file that is there, so it is left alone if it is the same.
    pub fn install_guard(&self) -> io::Result<()> {
        let (here, there) = (Path::new("/proc/self/exe"), self.shared_dir.join(GUARD_BINARY));
        if same_content(here, &there).unwrap_or(false) {
            return Ok(());
        }
        let unfinished = self.shared_dir.join(".fencedlease.unfinished");
        remove(&unfinished)?;
        fs::copy(here, &unfinished)?;
        fs::set_permissions(&unfinished, Permissions::from_mode(0o555))?;
        fs::rename(&unfinished, there)
    }

    /// Carries out orders until there can be no more.
    pub fn serve(&self, orders: &Receiver<FileOrder>, post: &Post<Letter>) {
        while let Ok(order) = orders.recv() {
            let what = self.carry_out(&order);
            match (what, order) {
                (Ok(()), FileOrder::Hold { holding, .. }) => {
                    post.send(Letter { event: Event::Filed { holding }, at: clock::now() });
                }
                (Ok(()), _) => {}
                (Err(error), order) => tracing::error!(%error, ?order, "cannot write a file"),
            }
        }
    }

    fn carry_out(&self, order: &FileOrder) -> io::Result<()> {
        match order {
            FileOrder::Hold { holding, fence, grants } => {
                self.note.write(holding, *fence, grants)?;
                remove(&self.shared_dir.join(LOST_FILE))?;
                self.publish(FENCE_FILE, format!("{fence}\n").as_bytes())
            }
            FileOrder::Grants { holding, fence, grants } => self.note.write(holding, *fence, grants),
            FileOrder::RemoveFence => remove(&self.shared_dir.join(FENCE_FILE)),
            FileOrder::Lost(flag) => self.publish(LOST_FILE, &serde_json::to_vec(flag)?),
            FileOrder::RemoveNote => self.note.remove(),
        }
    }

    /// Whole or not at all, readable by every user of the pod.
    fn publish(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let unfinished = self.shared_dir.join(format!(".{name}.unfinished"));
        let mut file = File::create(&unfinished)?;
        file.write_all(content)?;
        file.set_permissions(Permissions::from_mode(0o444))?;
        drop(file);
        fs::rename(&unfinished, self.shared_dir.join(name))
    }
}

fn same_content(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        let count = one.read(&mut left)?;
        if count == 0 {
            return Ok(true);
        }
        other.read_exact(&mut right[..count])?;
        if left[..count] != right[..count] {
            return Ok(false);
        }
    }
}
