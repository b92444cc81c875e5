//! A whole run: all lanes, the judge, and the report.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::anyhow;

use crate::faults::Fault;
use crate::history::{Executed, History, Violation, check};
use crate::lane::{self, Outcome, Stage};
use crate::processes::program;

/// Leases side by side.
pub const LANES: u64 = 8;

/// What came of a run.
#[derive(Debug)]
pub struct Report {
    /// Changes of holder.
    pub handovers: u64,
    /// How often each fault was injected.
    pub faults: BTreeMap<Fault, u64>,
    /// From each loss that a sidecar noticed to the last stamp, ascending.
    pub loss_to_last_stamp: Vec<Duration>,
    /// What must never happen, with the history around it.
    pub violations: Vec<String>,
}

/// Plays until so many handovers have happened. Fails where it cannot, and where no holder is to be had any more.
pub fn play(handovers: u64, seed: u64) -> anyhow::Result<Report> {
    let folder = lane::memory_folder()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let stage = Stage {
        fencedlease: program("fencedlease-sidecar", "fencedlease")?,
        stamp: program("fencedlease-nemesis", "stamp")?,
        folder: folder.path().to_owned(),
        handovers: AtomicU64::new(0),
        wanted: handovers,
        runtime: runtime.handle().clone(),
    };
    let outcomes = thread::scope(|scope| {
        let stage = &stage;
        let lanes: Vec<_> =
            (0..LANES).map(|number| scope.spawn(move || lane::play(stage, number, seed))).collect();
        let join = |lane: thread::ScopedJoinHandle<'_, anyhow::Result<Outcome>>| {
            lane.join().map_err(|_| anyhow!("a lane panicked"))?
        };
        lanes.into_iter().map(join).collect::<anyhow::Result<Vec<Outcome>>>()
    })?;
    let mut report = Report {
        handovers: stage.handovers.load(Ordering::SeqCst),
        faults: BTreeMap::new(),
        loss_to_last_stamp: Vec::new(),
        violations: Vec::new(),
    };
    for (number, outcome) in outcomes.into_iter().enumerate() {
        for violation in check(&outcome.history) {
            let around = around(&outcome.history, &violation);
            report.violations.push(format!("seed {seed}, lane {number}: {violation:?}\n{around}"));
        }
        for (fault, count) in outcome.faults {
            *report.faults.entry(fault).or_default() += count;
        }
        report.loss_to_last_stamp.extend(outcome.loss_to_last_stamp);
    }
    report.loss_to_last_stamp.sort_unstable();
    Ok(report)
}

/// What Redis executed around a violation, and the stamps of the runs in it.
fn around(history: &History, violation: &Violation) -> String {
    let runs = match violation {
        Violation::Overlap(one, two)
        | Violation::TakenOverAlive(one, two)
        | Violation::FenceOrder(one, two)
        | Violation::TokenReused(one, two) => vec![*one, *two],
        Violation::ReleasedAlive(run)
        | Violation::RunWithoutLease(run)
        | Violation::StampAfterEnd(run)
        | Violation::HeldAfterLoss(run) => vec![*run],
    };
    let mut text = String::new();
    let is_one =
        |executed: &Executed| matches!(executed, Executed::Acquired { run, .. } if runs.contains(run));
    let first = history.redis.iter().position(is_one).unwrap_or_default();
    let last = history.redis.iter().rposition(is_one).unwrap_or_default();
    for executed in history.redis.iter().take(last + 12).skip(first.saturating_sub(4)) {
        // Writing to a text cannot fail.
        let _ = writeln!(text, "  {executed:?}");
    }
    for run in runs {
        let stamps = history.stamps.iter().find(|stamps| stamps.run == run);
        let (ended, said) = (history.ended.get(&run), history.said.get(&run));
        let _ = writeln!(text, "  run {run}: {stamps:?}, ended {ended:?}, said {said:?}");
    }
    text
}

// === impl Report ===

impl Report {
    /// For people.
    pub fn text(&self) -> String {
        let mut text = format!("{} handovers, {} violations\n", self.handovers, self.violations.len());
        for (fault, count) in &self.faults {
            let _ = writeln!(text, "  {count:6} {fault:?}");
        }
        let all = &self.loss_to_last_stamp;
        let at = |thousandths: usize| {
            all.get((all.len() * thousandths / 1000).min(all.len().saturating_sub(1)))
                .copied()
                .unwrap_or_default()
        };
        let _ = writeln!(
            text,
            "loss noticed to last stamp, {} times, grace included: p50 {:?}, p99 {:?}, p99.9 {:?}, max {:?}",
            all.len(),
            at(500),
            at(990),
            at(999),
            at(1000)
        );
        for violation in &self.violations {
            let _ = writeln!(text, "{violation}");
        }
        text
    }
}
