//! Where processes of workloads keep their first and last instant: a file in memory, which outlives them. A record
//! is one write by the only process that owns its place, so SIGKILL leaves it old or new, never torn.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};

use crate::history::{Nanos, Stamps};

/// Bytes of one run.
const RUN_BYTES: usize = 256;
/// Bytes of one process.
const PLACE_BYTES: usize = 32;
/// Processes of a run that stamp, at most.
const PLACES: u64 = 7;

/// The board of one lease.
#[derive(Debug)]
pub struct Board(File);

/// The present instant on CLOCK_BOOTTIME.
pub fn now() -> Nanos {
    let time = clock_gettime(ClockId::Boottime);
    u64::try_from(time.tv_sec).unwrap_or_default() * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or_default()
}

impl Board {
    /// Opens it; it is made where it is not there.
    pub fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(File::options().read(true).write(true).create(true).truncate(false).open(path)?))
    }

    /// Keeps the life so far of one process of a run.
    pub fn stamp(&self, run: u64, process: u64, fence: u64, first: Nanos, last: Nanos) -> io::Result<()> {
        let mut record = [0; PLACE_BYTES];
        for (place, value) in record.chunks_exact_mut(8).zip([fence, first, last, 0]) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        self.0.write_all_at(
            &record,
            run * RUN_BYTES as u64 + (1 + process.min(PLACES - 1)) * PLACE_BYTES as u64,
        )
    }

    /// Asks a run's workload to end by itself.
    pub fn ask_to_end(&self, run: u64) -> io::Result<()> {
        self.0.write_all_at(&[1], run * RUN_BYTES as u64)
    }

    /// Whether a run's workload is asked to end.
    pub fn is_to_end(&self, run: u64) -> bool {
        let mut word = [0];
        self.0.read_exact_at(&mut word, run * RUN_BYTES as u64).is_ok() && word[0] == 1
    }

    /// The life so far of a run's processes together; `None` if none ran.
    pub fn read(&self, run: u64) -> io::Result<Option<Stamps>> {
        let mut bytes = [0; RUN_BYTES];
        let mut count = 0;
        while count < bytes.len() {
            match self.0.read_at(&mut bytes[count..], run * RUN_BYTES as u64 + count as u64)? {
                0 => break,
                more => count += more,
            }
        }
        let number = |at: usize| {
            bytes[at..at + 8].iter().rev().fold(0, |number: u64, byte| (number << 8) | u64::from(*byte))
        };
        let mut all: Option<Stamps> = None;
        for place in (PLACE_BYTES..bytes.len()).step_by(PLACE_BYTES) {
            let (fence, first, last) = (number(place), number(place + 8), number(place + 16));
            if fence == 0 {
                continue;
            }
            let before = all.unwrap_or(Stamps { run, fence, first, last });
            all = Some(Stamps { first: before.first.min(first), last: before.last.max(last), ..before });
        }
        Ok(all)
    }
}
