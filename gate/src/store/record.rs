//! One line of the log. Its check is over the line and the check of the line before, so that a line that was
//! changed, lost, doubled or moved is met when the log is read.

use fencedlease_wire::gate::GuardedResource;
use sha2::{Digest as _, Sha256};

use crate::check::Mark;

/// The first line of every log.
pub(super) const HEADER: &str = "fencedlease-gate 1\n";
/// Longer than any line.
pub(super) const MAX_LINE_BYTES: usize = 512;

const CHECK_DIGITS: usize = 16;
const NO_HOLDER: &str = "-";

/// A resource's highest mark, and when it was stored.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Record {
    /// Of which resource.
    pub resource: GuardedResource,
    /// The mark.
    pub mark: Mark,
    /// When, in ms of Unix time; for people.
    pub time_ms: u64,
}

/// The check of the last line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Chain(String);

impl Chain {
    /// The chain of a log that has its header alone.
    pub(super) fn start() -> Self {
        Self(check("", HEADER))
    }

    /// The line of this record, and the chain with it.
    pub(super) fn line(&self, record: &Record) -> (String, Self) {
        let Record { resource, mark, time_ms } = record;
        let holder = mark.holder.as_ref().map_or(NO_HOLDER, |holder| holder.as_str());
        let body = format!("{time_ms} {resource} {} {holder}", mark.fence);
        let check = check(&self.0, &body);
        (format!("{check} {body}\n"), Self(check))
    }

    /// The record in a line without its newline, and the chain with it; `None` if it does not follow.
    pub(super) fn read(&self, line: &[u8]) -> Option<(Record, Self)> {
        let line = std::str::from_utf8(line).ok()?;
        let (found, body) = line.split_at_checked(CHECK_DIGITS)?;
        let body = body.strip_prefix(' ')?;
        if found != check(&self.0, body) {
            return None;
        }
        let mut words = body.split(' ');
        let time_ms = words.next()?.parse().ok()?;
        let resource = words.next()?.parse().ok()?;
        let fence = words.next()?.parse().ok()?;
        let holder = match words.next()? {
            NO_HOLDER => None,
            holder => Some(holder.to_owned().try_into().ok()?),
        };
        let record = Record { resource, mark: Mark { fence, holder }, time_ms };
        words.next().is_none().then(|| (record, Self(found.to_owned())))
    }
}

fn check(before: &str, body: &str) -> String {
    let digest = Sha256::new().chain_update(before).chain_update("\n").chain_update(body).finalize();
    let head = digest.iter().take(CHECK_DIGITS / 2).fold(0_u64, |head, byte| head << 8 | u64::from(*byte));
    format!("{head:016x}")
}
