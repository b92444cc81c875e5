//! What workloads wrote into a Redis that they share, in the order in which it arrived: the judge of whether two
//! ever worked at once.

use anyhow::{Context as _, Result, bail};

use crate::redis::RedisBehindProxy;
use crate::seconds;
use crate::stage::Stage;

/// A workload's script: it writes its fence into the journal, first of all and then again and again.
pub const WRITES_JOURNAL: &str = r#"write() {
  printf 'RPUSH journal %s\r\n' "$FENCEDLEASE_FENCE" | timeout 1 nc "${REDIS_SERVICE_HOST:-redis}" 6379 >/dev/null
}
write
echo "working with fence $FENCEDLEASE_FENCE"
while sleep 0.1; do write; done"#;

/// Every fence that was written, in the order of arrival.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Journal {
    fences: Vec<i64>,
}

impl RedisBehindProxy<'_> {
    /// The journal that workloads with the script [`WRITES_JOURNAL`] wrote here.
    pub fn journal(&self) -> Result<Journal> {
        Journal::parse(&self.cli(&["LRANGE", "journal", "0", "-1"])?)
    }

    /// Waits until somebody holds with a fence above this one and has written with it, and gives the fence.
    pub fn until_written_above(&self, stage: &Stage, lease: &str, fence: i64) -> Result<i64> {
        stage.holder_above(lease, fence, seconds(60))?;
        stage.eventually(seconds(30), "the holder writes", |stage| {
            let now = stage.fence(lease)?;
            Ok(self.journal()?.has(now).then_some(now))
        })
    }
}

// === impl Journal ===

impl Journal {
    pub(crate) fn parse(printed: &str) -> Result<Self> {
        let fences = printed
            .split_whitespace()
            .map(|word| word.parse().with_context(|| format!("the journal holds {word:?}")))
            .collect::<Result<_>>()?;
        Ok(Self { fences })
    }

    /// Whether somebody wrote with this fence.
    pub fn has(&self, fence: i64) -> bool {
        self.fences.contains(&fence)
    }

    /// Fails if a write arrived after one with a greater fence, as it would if two worked at once. Gives the
    /// fences that wrote, each once.
    pub fn turns(&self) -> Result<Vec<i64>> {
        let mut turns: Vec<i64> = Vec::new();
        for &fence in &self.fences {
            match turns.last() {
                Some(&last) if last > fence => bail!("fence {fence} wrote after fence {last}: {turns:?}"),
                Some(&last) if last == fence => {}
                _ => turns.push(fence),
            }
        }
        Ok(turns)
    }
}

#[cfg(test)]
mod tests;
