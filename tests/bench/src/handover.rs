//! How long does nobody hold between two pods? The test of it measures it; here it is shown with the rest.

use anyhow::Context as _;

use crate::programs::cargo;
use crate::table::{Bound, Line, Table};

/// The bound of its 99th percentile, in ms.
const MOST_MS: f64 = 50.0;
/// How the test's line of figures begins.
const FIGURES: &str = "handover, from release to the next workload's first word, ";

/// Runs the test, in the release profile.
pub fn measure() -> anyhow::Result<Table> {
    let words = [
        "test",
        "--release",
        "--locked",
        "-p",
        "fencedlease-sidecar",
        "--test",
        "handover",
        "--",
        "--nocapture",
    ];
    let text = cargo(&words)?;
    let figures = text.lines().find_map(|line| line.split_once(FIGURES)).map(|(_, figures)| figures);
    let figures = figures.context("the test of handovers has no line of figures any more")?;
    let (of, p99) = read(figures).with_context(|| format!("the test of handovers says {figures:?}"))?;
    let line = Line {
        what: "release to the next workload's first word, p99".to_owned(),
        of: of.to_owned(),
        figure: p99,
        unit: "ms",
        bound: Bound::AtMost(MOST_MS),
    };
    let title = "A warm handover: two sidecars, two guarded containers, a real Redis".to_owned();
    Ok(Table { title, lines: vec![line] })
}

/// `N times: p50 N ms, p99 N ms`: what stands before the p99, and the p99.
fn read(figures: &str) -> Option<(&str, f64)> {
    let (before, p99) = figures.split_once(", p99 ")?;
    Some((before, p99.split(' ').next()?.parse().ok()?))
}

#[cfg(test)]
mod tests;
