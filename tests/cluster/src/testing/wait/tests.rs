use super::*;
use crate::error::Error;

#[test]
fn what_is_found_is_given_and_the_state_is_not_asked_for() {
    let mut looks = 0;
    let found = eventually(
        Duration::from_secs(5),
        "three looks",
        || {
            looks += 1;
            Ok((looks == 3).then_some(looks))
        },
        || unreachable!("nothing was missed"),
    );
    assert_eq!(found.unwrap(), 3);
}

#[test]
fn a_missed_deadline_tells_what_was_awaited_the_last_error_and_the_state() {
    let look = || -> Result<Option<()>> { Err(Error::missing("no pod", "Wait")) };
    let missed = eventually(Duration::from_millis(1), "a pod", look, || "STATE".to_owned()).unwrap_err();
    let text = format!("{missed:?}");
    for part in ["not within 1 ms: a pod", "the last look failed: no pod. Wait", "STATE"] {
        assert!(text.contains(part), "{text}");
    }
}
