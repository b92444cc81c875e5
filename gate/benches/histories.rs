//! Many histories of eight clients at a gate that is killed: an order must explain each. A bench by name only, since
//! it takes minutes: `make histories`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_types,
    reason = "it is a test; only its kind of target is not"
)]

#[path = "../tests/gate/histories/mod.rs"]
mod histories;
#[allow(dead_code, unused_imports, reason = "shared with tests that need more of it")]
#[path = "../tests/gate/support/mod.rs"]
mod support;

use std::time::Instant;

use histories::{Disk, tally};

/// The seeds, one history each. The tests of every day have those below.
const SEEDS: std::ops::Range<u64> = 1000..2000;
/// How many histories are judged between two lines of progress.
const STEP: u64 = 100;
/// How many in a thousand may have too many orders to try, so that the others say enough.
const MOST_UNDECIDED: u32 = 100;

#[test]
fn a_thousand_histories_have_an_order_each() {
    let start = Instant::now();
    let (mut explained, mut undecided) = (0, 0);
    for first in SEEDS.step_by(usize::try_from(STEP).unwrap()) {
        let tally = tally(first..first + STEP, Disk::Kept);
        assert!(tally.first_impossible.is_none(), "no order explains one of {first}..: {tally:#?}");
        explained += tally.explained;
        undecided += tally.undecided;
        println!(
            "seeds {} to {}: {explained} explained, {undecided} undecided, 0 violations, {} s",
            SEEDS.start,
            first + STEP - 1,
            start.elapsed().as_secs()
        );
    }
    assert!(undecided <= MOST_UNDECIDED, "{undecided} of {} are undecided", SEEDS.end - SEEDS.start);
}
