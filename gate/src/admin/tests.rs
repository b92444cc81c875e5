use fencedlease_wire::{Fence, HoldingId};

use super::*;
use crate::check::Mark;

#[test]
fn the_page_has_a_row_for_each_resource() {
    let highest = Mark { fence: Fence::new(42).unwrap(), holder: Some(HoldingId::from_random([1; 8])) };
    let row = |resource: &str, highest| Row {
        resource: format!("shop/{resource}").parse().unwrap(),
        highest,
        since_ms: 1_000_000,
        on_their_way: 3,
    };
    let rows = [row("ledger", Some(highest)), row("report", None)];
    assert_eq!(
        page(&rows, 1_000_000 + 3_720_000),
        "RESOURCE               FENCE  HOLDER                 SINCE  ON THEIR WAY\n\
         shop/ledger               42  0101010101010101        1h2m  3\n\
         shop/report                -  -                          -  3\n"
    );
}

#[test]
fn ages_have_their_two_greatest_units() {
    for (seconds, text) in [(0, "0s"), (59, "59s"), (61, "1m1s"), (3600, "1h0m"), (90_000, "1d1h")] {
        assert_eq!(ago(seconds * 1000), text);
    }
}
