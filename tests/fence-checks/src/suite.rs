//! The cases that every fence check must pass, each on a resource of its own.

mod cases;
mod race;

use std::fmt;

use crate::check::FenceCheck;
pub use race::{Race, run_race};

/// Why a case failed, in words.
type Failure = String;

/// One thing that a fence check must do.
struct Case {
    name: &'static str,
    run: fn(&dyn FenceCheck, &str) -> Result<(), Failure>,
}

const CASES: [Case; 12] = [
    Case { name: "lower_is_refused", run: cases::lower_is_refused },
    Case { name: "greater_raises", run: cases::greater_raises },
    Case { name: "equal_of_the_same_holder_passes", run: cases::equal_of_the_same_holder_passes },
    Case { name: "equal_of_another_is_refused", run: cases::equal_of_another_is_refused },
    Case { name: "other_failures_are_no_refusals", run: cases::other_failures_are_no_refusals },
    Case { name: "a_failed_write_leaves_no_value", run: cases::a_failed_write_leaves_no_value },
    Case { name: "a_lost_answer_is_unknown", run: cases::a_lost_answer_is_unknown },
    Case {
        name: "a_lost_answer_hides_no_accepted_zombie",
        run: cases::a_lost_answer_hides_no_accepted_zombie,
    },
    Case { name: "fifteen_digits_pass", run: cases::fifteen_digits_pass },
    Case { name: "what_is_no_fence_is_invalid", run: cases::what_is_no_fence_is_invalid },
    Case { name: "the_memory_survives_a_crash", run: cases::the_memory_survives_a_crash },
    Case { name: "eight_writers_race", run: race::eight_writers_race },
];

/// What the suite found.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Report {
    /// The cases that failed, and why.
    pub failed: Vec<(&'static str, String)>,
    /// The number of cases that passed.
    pub passed: usize,
}

/// Runs every case of a broken check until this one fails, at most 20 times, since a race is lost only now and then,
/// and gives the last report. `family` as in [`run`], up to 17 characters of it.
pub fn run_until_failed(check: &dyn FenceCheck, case: &str, family: &str) -> Report {
    let mut report = run(check, family);
    for round in 1..20 {
        if report.failed_names().contains(&case) {
            break;
        }
        report = run(check, &format!("{family}-{round}"));
    }
    report
}

/// Runs every case. `family` tells this run's resources from those of others on the same server: up to 20
/// characters of a resource's name.
pub fn run(check: &dyn FenceCheck, family: &str) -> Report {
    let mut report = Report::default();
    for case in CASES {
        let resource = format!("{family}/{}", case.name.replace('_', "-"));
        let result = check
            .prepare(&resource)
            .map_err(|error| format!("the resource could not be made: {error:#}"))
            .and_then(|()| (case.run)(check, &resource));
        match result {
            Ok(()) => report.passed += 1,
            Err(why) => report.failed.push((case.name, why)),
        }
    }
    report
}

// === impl Report ===

impl Report {
    /// The names of the cases that failed.
    pub fn failed_names(&self) -> Vec<&'static str> {
        self.failed.iter().map(|(name, _)| *name).collect()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed.len())?;
        self.failed.iter().try_for_each(|(name, why)| write!(f, "\n  {name}: {why}"))
    }
}

#[cfg(test)]
mod tests;
