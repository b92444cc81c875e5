use super::*;

fn event(span: (u64, u64), fence: u64, value: i64, outcome: Outcome) -> Event {
    Event { began: span.0, ended: span.1, fence, holder: format!("holder-{fence}"), value, outcome }
}

fn done(span: (u64, u64), fence: u64, value: i64) -> Event {
    event(span, fence, value, Outcome::Done)
}

fn refused() -> Outcome {
    Outcome::Refused(String::new())
}

#[test]
fn nothing_is_wrong_with_an_empty_history_or_an_orderly_one() {
    assert!(violations(&[], &[]).is_empty());
    let orderly = [done((1, 2), 1, 10), done((3, 4), 2, 11), event((5, 6), 1, 12, refused())];
    assert_eq!(violations(&orderly, &[Some(11)]), []);
}

#[test]
fn an_older_fence_after_a_newer_one_is_found_only_if_it_began_later() {
    let overlapping = [done((1, 5), 2, 10), done((2, 3), 1, 11)];
    assert_eq!(violations(&overlapping, &[Some(10)]), []);
    let after = [done((1, 2), 2, 10), done((3, 4), 1, 11)];
    let went_back = Violation::WentBack { early: 10, early_fence: 2, late: 11, late_fence: 1 };
    assert_eq!(violations(&after, &[Some(10)]), [went_back]);
}

#[test]
fn one_fence_of_two_holders_is_found_once() {
    let mut both = [done((1, 5), 1, 10), done((2, 3), 1, 11)];
    both[1].holder = "somebody".to_owned();
    assert_eq!(violations(&both, &[Some(11)]), [Violation::TwoHolders { one: 10, other: 11, fence: 1 }]);
}

#[test]
fn a_refusal_needs_a_newer_write_that_was_sent_by_then() {
    let none = [done((1, 2), 1, 10), event((3, 4), 1, 11, refused()), done((5, 6), 2, 12)];
    assert_eq!(violations(&none, &[Some(12)]), [Violation::NoReason { value: 11, fence: 1 }]);
    let unknown = [done((1, 2), 1, 10), event((3, 9), 2, 11, Outcome::Unknown(String::new()))];
    let refused = [unknown.as_slice(), &[event((4, 5), 1, 12, refused())]].concat();
    assert_eq!(violations(&refused, &[Some(11)]), []);
}

#[test]
fn the_last_value_is_of_the_highest_accepted_fence_or_of_an_unknown_newer_one() {
    let events = [done((1, 2), 1, 10), done((3, 4), 2, 11)];
    assert_eq!(violations(&events, &[Some(10)]), [Violation::WrongValue { found: Some(10), fence: 2 }]);
    assert_eq!(violations(&events, &[None]), [Violation::WrongValue { found: None, fence: 2 }]);
    let unknown = event((5, 6), 3, 12, Outcome::Unknown(String::new()));
    assert_eq!(violations(&[events.as_slice(), &[unknown]].concat(), &[Some(12)]), []);
}

#[test]
fn a_reader_never_sees_an_older_fence_after_a_newer_one() {
    let events = [done((1, 9), 1, 10), done((2, 8), 2, 11), done((3, 7), 2, 12)];
    assert_eq!(violations(&events, &[None, Some(10), Some(11), Some(12), Some(11)]), []);
    let back = Violation::SeenGoingBack { early: Some(12), late: Some(10) };
    assert_eq!(violations(&events, &[Some(12), Some(10), Some(11)]), [back]);
    let emptied = Violation::SeenGoingBack { early: Some(10), late: None };
    assert_eq!(violations(&events, &[Some(10), None, Some(11)]), [emptied]);
}
