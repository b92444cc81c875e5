//! What each case does, and what it holds the answers to.

use crate::check::{Claim, FenceCheck, Outcome};

use super::Failure;

const MAX: &str = "999999999999999";

/// Texts that are no fence.
const NO_FENCES: [&str; 13] = [
    "",
    " ",
    "0",
    "-1",
    "042",
    "+42",
    " 42",
    "42abc",
    "4.5",
    "1e3",
    "1000000000000000",
    "9223372036854775808",
    "٤٢",
];

/// A [`FenceCheck`] on one resource, whose answers are compared with what they must be.
struct Asked<'a> {
    check: &'a dyn FenceCheck,
    resource: &'a str,
}

fn done() -> Outcome {
    Outcome::Done
}

fn refused() -> Outcome {
    Outcome::Refused(String::new())
}

fn invalid() -> Outcome {
    Outcome::Invalid(String::new())
}

fn failed() -> Outcome {
    Outcome::Failed(String::new())
}

// === impl Asked ===

impl Asked<'_> {
    fn write(&self, fence: &str, holder: &str, value: i64, expected: &Outcome) -> Result<Outcome, Failure> {
        let outcome = self.check.write(self.resource, &Claim::new(fence, holder), value);
        if outcome.is_like(expected) {
            return Ok(outcome);
        }
        Err(format!("writing {value} with fence {fence:?} of {holder} gave {outcome:?}, not {expected:?}"))
    }

    fn has(&self, expected: Option<i64>) -> Result<(), Failure> {
        let value = self.check.value(self.resource).map_err(|error| format!("no value: {error:#}"))?;
        if value == expected {
            return Ok(());
        }
        Err(format!("the resource has {value:?}, not {expected:?}"))
    }
}

pub(super) fn lower_is_refused(check: &dyn FenceCheck, resource: &str) -> Result<(), Failure> {
    let it = Asked { check, resource };
    it.write("7", "new", 1, &done())?;
    it.write("6", "old", 2, &refused())?;
    // A name says nothing about age.
    it.write("6", "new", 3, &refused())?;
    it.has(Some(1))
}

pub(super) fn greater_raises(check: &dyn FenceCheck, resource: &str) -> Result<(), Failure> {
    let it = Asked { check, resource };
    it.write("9", "a", 1, &done())?;
    // As text 10 would come before 9.
    it.write("10", "b", 2, &done())?;
    it.has(Some(2))?;
    it.write("9", "a", 3, &refused())?;
    it.has(Some(2))
}

pub(super) fn equal_of_the_same_holder_passes(check: &dyn FenceCheck, resource: &str) -> Result<(), Failure> {
    let it = Asked { check, resource };
    for value in 1..=3 {
        it.write("7", "a", value, &done())?;
        it.has(Some(value))?;
    }
    Ok(())
}

pub(super) fn equal_of_another_is_refused(check: &dyn FenceCheck, resource: &str) -> Result<(), Failure> {
    let it = Asked { check, resource };
    it.write("7", "a", 1, &done())?;
    it.write("7", "b", 2, &refused())?;
    it.has(Some(1))?;
    it.write("7", "a", 3, &done())?;
    it.has(Some(3))
}

pub(super) fn other_failures_are_no_refusals(check: &dyn FenceCheck, resource: &str) -> Result<(), Failure> {
    let it = Asked { check, resource };
    it.write("7", "a", 1, &done())?;
    it.write("7", "a", -1, &failed())?;
    let refusal = it.write("6", "b", 2, &refused())?;
    let Outcome::Refused(text) = refusal else { return Err(format!("no text: {refusal:?}")) };
    if text.contains('7') && text.contains('6') {
        return Ok(());
    }
    Err(format!("the refusal names neither the fence that was met nor the one that was given: {text:?}"))
}

pub(super) fn a_failed_write_leaves_no_value(check: &dyn FenceCheck, resource: &str) -> Result<(), Failure> {
    let it = Asked { check, resource };
    it.write("7", "a", 1, &done())?;
    it.write("8", "b", -1, &failed())?;
    it.has(Some(1))?;
    // Whether the failed write raised the fence is the check's to say; the newer holder goes on in any case.
    it.write("8", "b", 2, &done())?;
    it.has(Some(2))
}

pub(super) fn a_lost_answer_is_unknown(check: &dyn FenceCheck, resource: &str) -> Result<(), Failure> {
    let it = Asked { check, resource };
    it.write("7", "a", 1, &done())?;
    let outcome = check.write_and_lose_the_answer(resource, &Claim::new("8", "b"), 2);
    if !matches!(outcome, Outcome::Unknown(_)) {
        return Err(format!("nobody could know, but the writer was told {outcome:?}"));
    }
    // It had been carried out, and so the fence was raised.
    it.has(Some(2))?;
    it.write("7", "a", 3, &refused())?;
    it.write("8", "b", 4, &done()).and_then(|_| it.has(Some(4)))
}

pub(super) fn a_lost_answer_hides_no_accepted_zombie(
    check: &dyn FenceCheck,
    resource: &str,
) -> Result<(), Failure> {
    let it = Asked { check, resource };
    it.write("7", "a", 1, &done())?;
    let outcome = check.write_and_lose_the_answer(resource, &Claim::new("6", "old"), 2);
    if !matches!(outcome, Outcome::Unknown(_) | Outcome::Refused(_)) {
        return Err(format!("a former holder was told {outcome:?}"));
    }
    it.has(Some(1))
}

pub(super) fn fifteen_digits_pass(check: &dyn FenceCheck, resource: &str) -> Result<(), Failure> {
    let it = Asked { check, resource };
    it.write("999999999999998", "a", 1, &done())?;
    it.write(MAX, "b", 2, &done())?;
    it.write("999999999999998", "a", 3, &refused())?;
    it.write(MAX, "b", 4, &done())?;
    it.has(Some(4))
}

pub(super) fn what_is_no_fence_is_invalid(check: &dyn FenceCheck, resource: &str) -> Result<(), Failure> {
    let it = Asked { check, resource };
    it.write("1", "a", 1, &done())?;
    for fence in NO_FENCES {
        it.write(fence, "b", 2, &invalid())?;
        it.has(Some(1))?;
    }
    it.write("2", "", 3, &invalid())?;
    // None of them was remembered.
    it.write("2", "b", 4, &done())?;
    it.has(Some(4))
}

pub(super) fn the_memory_survives_a_crash(check: &dyn FenceCheck, resource: &str) -> Result<(), Failure> {
    let it = Asked { check, resource };
    let crash = || check.crash().map_err(|error| format!("it did not come back: {error:#}"));
    for (fence, holder, value) in [("6", "a", 1), ("8", "b", 2), ("9", "c", 3)] {
        it.write(fence, holder, value, &done())?;
        crash()?;
        it.has(Some(value))?;
        it.write("5", "old", 10, &refused())?;
        it.write(fence, "another", 11, &refused())?;
        it.write(fence, holder, value, &done())?;
    }
    it.write("8", "b", 12, &refused())?;
    it.has(Some(3))
}
