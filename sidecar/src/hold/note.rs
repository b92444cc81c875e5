//! What outlives the sidecar process in the private volume: the note of the present holding, and a mapped
//! page that says how far it got.
//!
//! The page is written by single stores that never wait. At 0 is how the holding named at 1..17 ended
//! (0 it did not, 1 LOST, 2 in order); at 32 and 40 is the last confirmed `t_s` in milliseconds, twice,
//! because a process can be killed between two of its bytes.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use fencedlease_core::BootTime;
use fencedlease_wire::{Fence, HoldingId};
use serde::{Deserialize, Serialize};

use super::pod::{Interrupted, Mark};
use super::private::replace;
use crate::sys::SharedPage;

const NOTE_FILE: &str = "holding.json";
const PAGE_FILE: &str = "page";
const BOOT_ID_FILE: &str = "/proc/sys/kernel/random/boot_id";

const NOT_ENDED: u8 = 0;
const LOST: u8 = 1;
const RELEASED: u8 = 2;
const ID_PLACE: usize = 1;
const ID_BYTES: usize = 16;
const CONFIRMED_PLACES: [usize; 2] = [32, 40];

/// The mapped page.
#[derive(Debug)]
pub struct Page(SharedPage);

/// The note of a holding, kept from before its first grant until its workload is proven dead.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    /// The machine's boot; instants of another one mean nothing.
    pub boot_id: String,
    /// The holding.
    pub holding: HoldingId,
    /// Its fence.
    pub fence: Fence,
    /// The pod's guards.
    pub guards: Vec<NotedGuard>,
}

/// A guard that was, or may have been, granted the holding.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotedGuard {
    /// The container.
    pub container: String,
    /// What proves that it is the same life.
    pub secret: String,
}

/// The note's file.
#[derive(Clone, Debug)]
pub struct NoteFile {
    path: PathBuf,
    boot_id: String,
}

// === impl Page ===

impl Page {
    /// The page of this private volume.
    pub fn open(state_dir: &Path) -> io::Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(state_dir.join(PAGE_FILE))?;
        SharedPage::map(&file).map(Self)
    }

    /// Notes a fact; never waits.
    pub fn mark(&self, mark: &Mark) {
        match mark {
            Mark::Confirmed(at) => {
                for place in CONFIRMED_PLACES {
                    for (offset, byte) in at.as_millis().to_ne_bytes().into_iter().enumerate() {
                        self.0.store(place + offset, byte);
                    }
                }
            }
            Mark::Lost(holding) => self.end(holding, LOST),
            Mark::Released(holding) => self.end(holding, RELEASED),
        }
    }

    fn end(&self, holding: &HoldingId, how: u8) {
        self.0.store(0, NOT_ENDED);
        for (offset, byte) in holding.as_str().bytes().take(ID_BYTES).enumerate() {
            self.0.store(ID_PLACE + offset, byte);
        }
        self.0.store(0, how);
    }

    fn byte(&self, place: usize) -> u8 {
        self.0.byte(place).load(std::sync::atomic::Ordering::SeqCst)
    }

    fn end_of(&self, holding: &HoldingId) -> u8 {
        let same =
            holding.as_str().bytes().enumerate().all(|(offset, byte)| self.byte(ID_PLACE + offset) == byte);
        if same { self.byte(0) } else { NOT_ENDED }
    }

    /// The later of the two copies: a torn one must not make a holding look older than it is.
    fn confirmed_at(&self) -> BootTime {
        let read = |place: usize| {
            let mut bytes = [0; 8];
            for (offset, byte) in bytes.iter_mut().enumerate() {
                *byte = self.byte(place + offset);
            }
            u64::from_ne_bytes(bytes)
        };
        BootTime::from_millis(CONFIRMED_PLACES.map(read).into_iter().max().unwrap_or_default())
    }
}

// === impl NoteFile ===

impl NoteFile {
    /// The note of this private volume.
    pub fn new(state_dir: &Path) -> io::Result<Self> {
        let boot_id = fs::read_to_string(BOOT_ID_FILE)?.trim().to_owned();
        Ok(Self { path: state_dir.join(NOTE_FILE), boot_id })
    }

    /// Writes the note of a holding.
    pub fn write(&self, holding: &HoldingId, fence: Fence, guards: &[(String, String)]) -> io::Result<()> {
        let guards = guards
            .iter()
            .map(|(container, secret)| NotedGuard { container: container.clone(), secret: secret.clone() })
            .collect();
        let note = Note { boot_id: self.boot_id.clone(), holding: holding.clone(), fence, guards };
        replace(&self.path, &serde_json::to_vec(&note)?)
    }

    /// The holding is over.
    pub fn remove(&self) -> io::Result<()> {
        remove(&self.path)
    }

    /// A holding that an earlier run of the sidecar did not see to its end. Of another boot it has nobody
    /// left who could run under it. A note that cannot be read counts as none: guards that come back with
    /// a holding are ended all the same.
    pub fn interrupted(&self, page: &Page, now: BootTime) -> Option<Interrupted> {
        let note: Note = serde_json::from_slice(&fs::read(&self.path).ok()?).ok()?;
        let end = page.end_of(&note.holding);
        if end == RELEASED {
            return None;
        }
        let same_boot = note.boot_id == self.boot_id;
        let grants = note.guards.into_iter().map(|guard| (guard.container, guard.secret));
        Some(Interrupted {
            holding: note.holding,
            fence: note.fence,
            confirmed_at: if same_boot { page.confirmed_at().min(now) } else { BootTime::default() },
            loss_was_noted: end == LOST,
            grants: if same_boot { grants.collect() } else { Vec::new() },
        })
    }
}

/// Removes a file that may not be there.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
