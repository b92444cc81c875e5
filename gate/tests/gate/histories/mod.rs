//! What eight clients saw while the gate was killed: an order must explain it.

mod judge;
mod run;

use judge::{Judgement, Saw, Seen, judge};
pub(crate) use run::Disk;
use run::run;

use crate::support::{Holder, Nginx, holder};

/// How many histories have an order, have none, and had too many to try; and the first that has none.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) explained: u32,
    pub(crate) undecided: u32,
    pub(crate) first_impossible: Option<Vec<String>>,
}

/// Runs one history for each seed, up to the first that has no order.
pub(crate) fn tally(seeds: std::ops::Range<u64>, disk: Disk) -> Tally {
    let nginx = Nginx::start();
    let mut tally = Tally::default();
    for seed in seeds {
        let mut history = run(&nginx, seed, disk);
        match judge(&history) {
            Judgement::Explained => tally.explained += 1,
            Judgement::Undecided => tally.undecided += 1,
            Judgement::Impossible => {
                history.sort_by_key(|seen| seen.called);
                tally.first_impossible = Some(history.iter().map(|seen| format!("{seen:?}")).collect());
                break;
            }
        }
    }
    tally
}

#[test]
fn every_history_has_an_order() {
    let tally = tally(0..30, Disk::Kept);
    assert!(tally.first_impossible.is_none() && tally.explained >= 27, "{tally:#?}");
}

#[test]
fn a_gate_that_loses_its_store_is_found_out() {
    // One in twenty shows it; the first that does ends this.
    let tally = tally(0..600, Disk::Lost);
    assert!(tally.first_impossible.is_some(), "the check sees nothing: {tally:?}");
}

/// A history in which each thing was over before the next began.
fn in_turn(all: &[(Holder, &str, Saw)]) -> Vec<Seen> {
    let seen = |(at, (holder, value, saw)): (u64, &(Holder, &str, Saw))| Seen {
        holder: Some(*holder),
        value: (!value.is_empty()).then(|| (*value).to_owned()),
        called: 2 * at,
        answered: 2 * at + 1,
        saw: saw.clone(),
    };
    (0..).zip(all).map(seen).collect()
}

#[test]
fn what_cannot_have_happened_has_no_order() {
    let (five, six, other) = (holder(5), holder(6), Holder { fence: 5, holder: 9 });
    let read = |value: &str| Saw::Read(Some(value.to_owned()));
    for (history, is_right) in [
        (vec![(five, "a", Saw::Written), (six, "b", Saw::Written), (five, "c", Saw::Refused)], true),
        (vec![(six, "b", Saw::Written), (five, "c", Saw::Written)], false),
        (vec![(five, "a", Saw::Written), (other, "b", Saw::Written)], false),
        (vec![(five, "a", Saw::Written), (other, "b", Saw::Refused)], true),
        (vec![(five, "a", Saw::Refused)], false),
        (vec![(six, "", Saw::Raised), (five, "a", Saw::Written)], false),
        (vec![(six, "", Saw::Raised), (five, "a", Saw::Refused), (six, "", Saw::Read(None))], true),
        (vec![(five, "a", Saw::Written), (six, "", Saw::Read(None))], false),
        (vec![(five, "a", Saw::Written), (six, "", read("a")), (five, "", read("a"))], false),
        // An unknown write takes effect late, but not after a newer fence.
        (vec![(five, "a", Saw::Unknown), (five, "b", Saw::Written), (five, "", read("a"))], true),
        (vec![(five, "a", Saw::Unknown), (six, "b", Saw::Written), (six, "", read("a"))], false),
        // It may have raised without having written.
        (vec![(six, "a", Saw::Unknown), (five, "b", Saw::Refused), (six, "", Saw::Read(None))], true),
    ] {
        let expected = if is_right { Judgement::Explained } else { Judgement::Impossible };
        assert_eq!(judge(&in_turn(&history)), expected, "{history:?}");
    }
}

#[test]
fn a_newer_fence_refuses_at_once_and_passes_when_the_older_write_is_over() {
    let (five, six, other) = (holder(5), holder(6), Holder { fence: 6, holder: 9 });
    let seen = |holder, value: &str, called, answered, saw| Seen {
        holder: Some(holder),
        value: Some(value.to_owned()),
        called,
        answered,
        saw,
    };
    let reads = |value: &str, called| Seen {
        holder: None,
        value: None,
        called,
        answered: called + 1,
        saw: Saw::Read(Some(value.to_owned())),
    };
    // Six is stored before time 4, since another six is refused then; five's write is seen after that.
    let five_writes = seen(five, "a", 0, 20, Saw::Written);
    let refused = seen(other, "c", 3, 4, Saw::Refused);
    let mut history = vec![seen(five, "0", 1, 2, Saw::Written), five_writes, refused];
    history.push(seen(six, "b", 2, 30, Saw::Written));
    history.extend([reads("0", 6), reads("a", 8), reads("b", 10)]);
    assert_eq!(judge(&history), Judgement::Explained);
    // But not after six has written.
    history.push(reads("a", 12));
    assert_eq!(judge(&history), Judgement::Impossible);
}
