//! What does a log say, and is it whole? Pure: bytes in, records out.

use std::collections::BTreeMap;

use fencedlease_wire::gate::GuardedResource;

use super::record::{Chain, HEADER, MAX_LINE_BYTES, Record};

/// What a log says.
#[derive(Debug)]
pub(super) struct Log {
    /// The last record of each resource.
    pub(super) highest: BTreeMap<GuardedResource, Record>,
    /// Bytes after the last whole line, of a write that the process did not live to end. Nobody was answered
    /// on its account.
    pub(super) torn_bytes: usize,
}

/// Where a log is damaged.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Damage {
    /// Not ours, or its beginning is gone.
    #[error("its first line is not {:?}", HEADER.trim_end())]
    Header,
    /// A line does not follow from those before it.
    #[error("line {0} was changed, or lines before it are missing")]
    Line(usize),
    /// A mark is not above the one before it.
    #[error("line {0} goes back behind a line before it")]
    Backwards(usize),
    /// What follows the last whole line is no part of a line.
    #[error("{0} bytes after the last whole line are not the beginning of a line")]
    Tail(usize),
}

/// Reads a whole log.
pub(super) fn read(bytes: &[u8]) -> Result<Log, Damage> {
    let mut rest = bytes.strip_prefix(HEADER.as_bytes()).ok_or(Damage::Header)?;
    let mut chain = Chain::start();
    let mut highest: BTreeMap<GuardedResource, Record> = BTreeMap::new();
    let mut number = 1;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        number += 1;
        let (record, next) = chain.read(&rest[..end]).ok_or(Damage::Line(number))?;
        let goes_back = |before: &Record| {
            let (before, after) = (&before.mark, &record.mark);
            before.fence > after.fence || (before.fence == after.fence && before.holder.is_some())
        };
        if highest.get(&record.resource).is_some_and(goes_back) {
            return Err(Damage::Backwards(number));
        }
        highest.insert(record.resource.clone(), record);
        (chain, rest) = (next, &rest[end + 1..]);
    }
    if is_torn(&chain, rest) {
        Ok(Log { highest, torn_bytes: rest.len() })
    } else {
        Err(Damage::Tail(rest.len()))
    }
}

/// A whole line whose newline was overwritten has been answered for, so it is damage, not a torn write.
fn is_torn(chain: &Chain, tail: &[u8]) -> bool {
    let Some(without_newline) = tail.len().checked_sub(1).map(|end| &tail[..end]) else { return true };
    tail.len() < MAX_LINE_BYTES && chain.read(without_newline).is_none()
}
