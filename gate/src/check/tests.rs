use super::*;

const DRAIN: Duration = Duration::from_secs(2);
const START: Duration = Duration::ZERO;

fn mark(fence: u64, holder: u8) -> Mark {
    Mark { fence: Fence::new(fence).unwrap(), holder: Some(HoldingId::from_random([holder; 8])) }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn door(fence: u64, holder: u8) -> Door {
    Door::new(Some(mark(fence, holder)), START, DRAIN)
}

#[test]
fn the_first_mark_is_stored_before_it_passes() {
    let mut door = Door::new(None, START, DRAIN);
    assert_eq!(door.judge(&mark(1, 1), START), Verdict::Store);
    assert_eq!(door.judge(&mark(1, 1), START), Verdict::Wait(None), "while it is being stored");
    door.stored(START);
    assert_eq!(door.judge(&mark(1, 1), START), Verdict::Pass);
}

#[test]
fn lower_is_refused_equal_from_the_same_passes_equal_from_another_is_refused() {
    let mut door = door(5, 1);
    let highest = Fence::new(5).unwrap();
    assert_eq!(
        door.judge(&mark(4, 1), START),
        Verdict::Refused(Refusal::Lower { offered: mark(4, 1).fence, highest })
    );
    assert_eq!(door.judge(&mark(5, 1), START), Verdict::Pass);
    assert_eq!(door.judge(&mark(5, 2), START), Verdict::Refused(Refusal::OtherHolder { highest }));
}

#[test]
fn while_a_raise_is_being_stored_nobody_passes_and_nobody_is_refused_by_it() {
    let mut door = door(5, 1);
    assert_eq!(door.judge(&mark(6, 2), START), Verdict::Store);
    assert_eq!(door.judge(&mark(5, 1), START), Verdict::Wait(None));
    assert_eq!(door.judge(&mark(7, 3), START), Verdict::Wait(None));
    door.not_stored();
    assert_eq!(door.judge(&mark(5, 1), START), Verdict::Pass, "what is not durable refuses nobody");
}

#[test]
fn an_incomplete_request_is_cut_at_once_and_a_complete_one_after_the_drain_time() {
    let mut door = door(5, 1);
    door.enter(1, mark(5, 1));
    door.enter(2, mark(5, 1));
    door.complete(2);
    assert_eq!((door.cut(1), door.cut(2)), (Cut::No, Cut::No));
    assert_eq!(door.judge(&mark(6, 2), START), Verdict::Store);
    door.stored(seconds(10));
    assert_eq!((door.cut(1), door.cut(2)), (Cut::Now, Cut::At(seconds(12))));
    door.ended(1, Fate::Settled);
    assert_eq!(door.judge(&mark(6, 2), seconds(10)), Verdict::Wait(None), "one is still on its way");
    door.ended(2, Fate::Unsettled);
    assert_eq!(door.judge(&mark(6, 2), seconds(12)), Verdict::Pass);
    assert_eq!(door.unsettled(), 1);
}

#[test]
fn a_second_raise_does_not_give_older_requests_more_time() {
    let mut door = door(5, 1);
    door.enter(1, mark(5, 1));
    door.complete(1);
    for (fence, at) in [(6, 10), (7, 11)] {
        assert_eq!(door.judge(&mark(fence, 2), seconds(at)), Verdict::Store);
        door.stored(seconds(at));
    }
    assert_eq!(door.cut(1), Cut::At(seconds(12)));
}

#[test]
fn what_timed_out_under_the_fence_before_counts_as_unsettled_too() {
    let mut door = door(5, 1);
    door.enter(1, mark(5, 1));
    door.complete(1);
    door.ended(1, Fate::Unsettled);
    assert_eq!(door.unsettled(), 0, "it is the highest itself");
    for (fence, expected) in [(6, 1), (7, 0)] {
        assert_eq!(door.judge(&mark(fence, 2), START), Verdict::Store);
        door.stored(START);
        assert_eq!(door.unsettled(), expected);
    }
}

#[test]
fn a_closed_door_refuses_and_stores_but_lets_nobody_pass() {
    let mut door = Door::new(Some(mark(5, 1)), seconds(3), DRAIN);
    assert_eq!(door.judge(&mark(5, 1), seconds(2)), Verdict::Wait(Some(seconds(3))));
    assert!(matches!(door.judge(&mark(4, 1), seconds(2)), Verdict::Refused(_)));
    assert_eq!(door.judge(&mark(5, 1), seconds(3)), Verdict::Pass);
}

#[test]
fn a_floor_belongs_to_the_first_who_comes_with_its_fence() {
    let floor = Mark { fence: Fence::new(5).unwrap(), holder: None };
    let mut door = Door::new(Some(floor), START, DRAIN);
    assert!(matches!(door.judge(&mark(4, 1), START), Verdict::Refused(_)));
    assert_eq!(door.judge(&mark(5, 1), START), Verdict::Store);
    door.stored(START);
    assert_eq!(door.judge(&mark(5, 1), START), Verdict::Pass);
    assert!(matches!(door.judge(&mark(5, 2), START), Verdict::Refused(_)));
}
