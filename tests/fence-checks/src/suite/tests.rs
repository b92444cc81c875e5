//! The suite is a test, so it is tested as one: what is right passes, and each fault fails the case for it.

use crate::model::{Fault, Model};

use super::*;

fn failed_with(fault: Fault) -> Vec<&'static str> {
    run(&Model::new(fault), "model").failed_names()
}

#[test]
fn a_check_that_keeps_its_word_passes_every_case() {
    let report = run(&Model::new(Fault::None), "model");
    assert_eq!((report.passed, report.failed.len()), (CASES.len(), 0), "{report}");
}

#[test]
fn every_fault_is_found_by_the_case_for_it() {
    for (fault, case) in [
        (Fault::NoComparison, "lower_is_refused"),
        (Fault::BareLess, "equal_of_the_same_holder_passes"),
        (Fault::NoOwner, "equal_of_another_is_refused"),
        (Fault::AsText, "greater_raises"),
        (Fault::SilentRefusal, "other_failures_are_no_refusals"),
        (Fault::LostIsRefused, "a_lost_answer_is_unknown"),
        (Fault::LostIsDone, "a_lost_answer_hides_no_accepted_zombie"),
        (Fault::ForgetsAtCrash, "the_memory_survives_a_crash"),
        (Fault::NoLimit, "what_is_no_fence_is_invalid"),
        (Fault::LenientDigits, "what_is_no_fence_is_invalid"),
        (Fault::TwoTransactions, "eight_writers_race"),
    ] {
        let failed = failed_with(fault);
        assert!(failed.contains(&case), "{fault:?} was found only by {failed:?}");
    }
}

#[test]
fn a_race_that_accepts_nothing_proves_nothing() {
    let report = run(&Model::new(Fault::SilentRefusal), "model");
    let race = report.failed.iter().find(|(name, _)| *name == "eight_writers_race");
    assert!(race.is_some_and(|(_, why)| why.contains("say too little")), "{report}");
}
