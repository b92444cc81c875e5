//! What does a fence check do, in a few lines? A model in memory, for the suite's own tests: right, and broken in
//! each of the ways that are met in the field.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::check::{Claim, FenceCheck, Outcome};

const MAX: u64 = 999_999_999_999_999;

/// How a model is broken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// It is not.
    None,
    /// Fences are not compared.
    NoComparison,
    /// A bare `<`: a holder cannot write twice.
    BareLess,
    /// `<=` without the owner: two holders with one fence both write.
    NoOwner,
    /// Compared as texts: 10 is below 9.
    AsText,
    /// Compared in one transaction, written in another.
    TwoTransactions,
    /// A refusal looks like any other error.
    SilentRefusal,
    /// A lost answer is reported as a refusal.
    LostIsRefused,
    /// A lost answer is reported as done.
    LostIsDone,
    /// The fence is kept in memory alone.
    ForgetsAtCrash,
    /// Any number is taken for a fence.
    NoLimit,
    /// What is no number counts as zero, which is how SQL casts.
    LenientDigits,
}

/// A fence check in memory.
#[derive(Debug)]
pub struct Model {
    fault: Fault,
    rows: Mutex<BTreeMap<String, Row>>,
}

#[derive(Clone, Debug, Default)]
struct Row {
    fence: u64,
    holder: String,
    value: Option<i64>,
}

// === impl Model ===

impl Model {
    /// A check with this fault.
    pub fn new(fault: Fault) -> Self {
        Self { fault, rows: Mutex::default() }
    }

    fn with_row<T>(&self, resource: &str, action: impl FnOnce(&mut Row) -> T) -> T {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        action(rows.entry(resource.to_owned()).or_default())
    }

    fn parse(&self, claim: &Claim) -> Result<u64, Outcome> {
        let text = &claim.fence;
        let invalid = || Outcome::Invalid(format!("{text:?} is no fence"));
        if self.fault == Fault::LenientDigits {
            return Ok(text.parse().unwrap_or(0));
        }
        let digits = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
        let fence: u64 = text.parse().ok().filter(|_| digits).ok_or_else(invalid)?;
        let too_great = fence > MAX && self.fault != Fault::NoLimit;
        if too_great || claim.holder.is_empty() { Err(invalid()) } else { Ok(fence) }
    }

    fn admits(&self, row: &Row, fence: u64, holder: &str) -> bool {
        let same = row.holder == holder;
        match self.fault {
            Fault::NoComparison => true,
            Fault::BareLess => row.fence < fence,
            Fault::NoOwner => row.fence <= fence,
            Fault::AsText => row.fence.to_string() < fence.to_string() || (row.fence == fence && same),
            _ => row.fence < fence || (row.fence == fence && same),
        }
    }

    fn refusal(&self, row: &Row, fence: u64) -> Outcome {
        let text = format!("fence {fence} is refused: {} was here", row.fence);
        if self.fault == Fault::SilentRefusal { Outcome::Failed(text) } else { Outcome::Refused(text) }
    }

    fn store(row: &mut Row, fence: u64, claim: &Claim, value: i64) -> Outcome {
        if value < 0 {
            return Outcome::Failed("no value below zero".to_owned());
        }
        *row = Row { fence, holder: claim.holder.clone(), value: Some(value) };
        Outcome::Done
    }
}

impl FenceCheck for Model {
    fn prepare(&self, resource: &str) -> anyhow::Result<()> {
        self.with_row(resource, |row| *row = Row::default());
        Ok(())
    }

    fn write(&self, resource: &str, claim: &Claim, value: i64) -> Outcome {
        let fence = match self.parse(claim) {
            Ok(fence) => fence,
            Err(outcome) => return outcome,
        };
        let compare = |row: &mut Row| {
            self.admits(row, fence, &claim.holder).then_some(()).ok_or_else(|| self.refusal(row, fence))
        };
        let write = |row: &mut Row| Self::store(row, fence, claim, value);
        if self.fault == Fault::TwoTransactions {
            if let Err(refusal) = self.with_row(resource, compare) {
                return refusal;
            }
            thread::sleep(Duration::from_millis(1));
            return self.with_row(resource, write);
        }
        self.with_row(resource, |row| compare(row).map_or_else(|refusal| refusal, |()| write(row)))
    }

    fn write_and_lose_the_answer(&self, resource: &str, claim: &Claim, value: i64) -> Outcome {
        let outcome = self.write(resource, claim, value);
        match self.fault {
            Fault::LostIsDone => Outcome::Done,
            Fault::LostIsRefused => Outcome::Refused("the connection broke".to_owned()),
            _ if outcome == Outcome::Done => Outcome::Unknown("the connection broke".to_owned()),
            _ => outcome,
        }
    }

    fn value(&self, resource: &str) -> anyhow::Result<Option<i64>> {
        Ok(self.with_row(resource, |row| row.value))
    }

    fn crash(&self) -> anyhow::Result<()> {
        if self.fault == Fault::ForgetsAtCrash {
            let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
            rows.values_mut().for_each(|row| row.fence = 0);
        }
        Ok(())
    }
}
