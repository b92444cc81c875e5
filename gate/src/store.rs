//! Where are the highest fences kept? In one log that is only appended to, owned by one process, and synced
//! before anybody is told. At each start it is read whole, written anew and put in its own place at once, so
//! that what was read is durable, whatever an earlier process left in the kernel's memory.

mod log;
mod record;
mod thread;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fencedlease_wire::gate::GuardedResource;
use rustix::fs::{FlockOperation, flock};

pub use log::Damage;
pub use record::Record;
use record::{Chain, HEADER};
pub(crate) use thread::unix_ms;
pub use thread::{Job, StoreThread, StoreThreadError, Stored};

const LOG: &str = "fences.log";
const NEW_LOG: &str = "fences.log.new";
const LOCK: &str = "lock";
const CLEAN: &str = "clean-end";
/// A log is written anew when it has grown by this much.
const REWRITE_BYTES: u64 = 4 << 20;

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another gate has it.
    #[error("{0} is in use by another gate; one store has one gate: end the other, or give this one its own")]
    InUse(PathBuf),
    /// The log was changed by something else than a gate.
    #[error(
        "{path} is damaged: {damage}. Nothing was changed. Put a good copy in its place; or move it away and \
         start once with --floor RESOURCE=FENCE for each resource, with the fence that \
         `kubectl get fencedlease` shows as highestFence"
    )]
    Damaged {
        /// The log.
        path: PathBuf,
        /// Where.
        damage: Damage,
    },
    /// The log has gone, and with it what was answered for.
    #[error(
        "{0} has gone, though gates have used this folder. Put it back; or start once with --floor RESOURCE=FENCE for \
         each resource, with the fence that `kubectl get fencedlease` shows as highestFence"
    )]
    Gone(PathBuf),
    /// The system refused something.
    #[error("cannot {verb} {path}")]
    Io {
        /// What was tried.
        verb: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// An earlier write may or may not be on the disk.
    #[error("an earlier write to the store could not be synced or taken back; the gate has to be restarted")]
    Broken,
}

/// What a log is written to: a file, or in tests one that fails.
pub trait LogFile: Send {
    /// Appends all of it.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Returns when what was appended is on the disk.
    fn sync(&mut self) -> io::Result<()>;
    /// Takes away what follows.
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

/// The store of this process.
pub struct Store {
    folder: PathBuf,
    log: Box<dyn LogFile>,
    length: u64,
    rewrite_at: u64,
    chain: Chain,
    highest: BTreeMap<GuardedResource, Record>,
    ended_cleanly: bool,
    is_broken: bool,
    /// Holds the lock for as long as the store lives.
    _lock: File,
}

impl Store {
    /// Opens the store in `folder`, which is made if it is not there, and raises it to `floors`.
    pub fn open(folder: &Path, floors: &[Record]) -> Result<Self, StoreError> {
        fs::create_dir_all(folder).map_err(failed("make", folder))?;
        let lock = lock(folder)?;
        let was_used = lock.metadata().map_err(failed("read", &folder.join(LOCK)))?.len() > 0;
        if was_used && floors.is_empty() && !folder.join(LOG).exists() {
            return Err(StoreError::Gone(folder.join(LOG)));
        }
        let mut highest = read(&folder.join(LOG))?;
        for floor in floors {
            let is_lower = |found: &Record| found.mark.fence < floor.mark.fence;
            if highest.get(&floor.resource).is_none_or(is_lower) {
                highest.insert(floor.resource.clone(), floor.clone());
            }
        }
        let clean = folder.join(CLEAN);
        let is_first = floors.is_empty() && !folder.join(LOG).exists();
        let ended_cleanly = remove(&clean)? || is_first;
        let (log, length, chain) = write_anew(folder, &highest)?;
        if !was_used {
            mark_as_used(&lock).map_err(failed("write", &folder.join(LOCK)))?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            log: Box::new(log),
            length,
            rewrite_at: length + REWRITE_BYTES,
            chain,
            highest,
            ended_cleanly,
            is_broken: false,
            _lock: lock,
        })
    }

    /// Whether the last process ended with nothing on its way to the backend, or there was none.
    pub fn ended_cleanly(&self) -> bool {
        self.ended_cleanly
    }

    /// The highest record of each resource.
    pub fn highest(&self) -> &BTreeMap<GuardedResource, Record> {
        &self.highest
    }

    /// Stores these durably, in one write and one sync. After an error none of them counts; where it may be on
    /// the disk all the same, every later call fails too.
    pub fn append(&mut self, records: &[Record]) -> Result<(), StoreError> {
        if self.is_broken {
            return Err(StoreError::Broken);
        }
        let mut chain = self.chain.clone();
        let mut text = String::new();
        for record in records {
            let line;
            (line, chain) = chain.line(record);
            text.push_str(&line);
        }
        let path = self.folder.join(LOG);
        if let Err(source) = self.log.append(text.as_bytes()) {
            self.is_broken = self.log.truncate(self.length).is_err();
            return Err(StoreError::Io { verb: "append to", path, source });
        }
        if let Err(source) = self.log.sync() {
            // What the kernel could not write it may have forgotten: a second sync would say yes.
            self.is_broken = true;
            return Err(StoreError::Io { verb: "sync", path, source });
        }
        self.length += text.len() as u64;
        self.chain = chain;
        for record in records {
            self.highest.insert(record.resource.clone(), record.clone());
        }
        if self.length >= self.rewrite_at {
            self.rewrite();
        }
        Ok(())
    }

    /// Whether nothing can be stored until a restart.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Leaves the mark of a clean end.
    pub fn end_cleanly(self) -> Result<(), StoreError> {
        let path = self.folder.join(CLEAN);
        let written = File::create(&path).and_then(|file| file.sync_all());
        written.map_err(failed("write", &path))?;
        sync_folder(&self.folder)
    }

    /// What is stored stays so if this fails; it is tried again when the log has grown as much again.
    fn rewrite(&mut self) {
        match write_anew(&self.folder, &self.highest) {
            Ok((log, length, chain)) => {
                (self.log, self.length, self.chain) = (Box::new(log), length, chain);
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot write the log anew");
                // The new file may or may not have taken the old one's place.
                self.is_broken = true;
            }
        }
        self.rewrite_at = self.length + REWRITE_BYTES;
    }
}

// === impl LogFile ===

impl LogFile for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

fn lock(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join(LOCK);
    let options = &mut File::options();
    let file = options.create(true).truncate(false).write(true).open(&path).map_err(failed("open", &path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(StoreError::InUse(folder.to_owned())),
        Err(error) => Err(failed("lock", &path)(error.into())),
    }
}

/// Once there is a log: from then on a folder without one has lost it.
fn mark_as_used(mut lock: &File) -> io::Result<()> {
    lock.write_all(b"used\n")?;
    lock.sync_all()
}

fn read(path: &Path) -> Result<BTreeMap<GuardedResource, Record>, StoreError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(failed("read", path)(error)),
    };
    let log = log::read(&bytes).map_err(|damage| StoreError::Damaged { path: path.to_owned(), damage })?;
    if log.torn_bytes > 0 {
        tracing::warn!(
            bytes = log.torn_bytes,
            "dropped the beginning of a line that nobody was answered for"
        );
    }
    Ok(log.highest)
}

/// A log with these records alone, in the place of the old one, durably. Opened to append.
fn write_anew(
    folder: &Path,
    highest: &BTreeMap<GuardedResource, Record>,
) -> Result<(File, u64, Chain), StoreError> {
    let (new, path) = (folder.join(NEW_LOG), folder.join(LOG));
    remove(&new)?;
    let mut chain = Chain::start();
    let mut text = HEADER.to_owned();
    for record in highest.values() {
        let line;
        (line, chain) = chain.line(record);
        text.push_str(&line);
    }
    let opened = File::options().create_new(true).append(true).open(&new);
    let mut file = opened.map_err(failed("make", &new))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed("write", &new))?;
    fs::rename(&new, &path).map_err(failed("put in its place", &new))?;
    sync_folder(folder)?;
    Ok((file, text.len() as u64, chain))
}

/// Whether there was such a file.
fn remove(path: &Path) -> Result<bool, StoreError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed("remove", path)(error)),
    }
}

fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed("sync", folder))
}

fn failed<'a>(verb: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> StoreError + 'a {
    move |source| StoreError::Io { verb, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests;
