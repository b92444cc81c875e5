use super::*;

#[test]
fn the_state_is_found_behind_a_name_with_brackets() {
    assert_eq!(state_letter("12 (re) T (x) S 1 2"), Some('S'));
    assert_eq!(state_letter("12 (redis-server) T 1 2"), Some('T'));
    assert_eq!(state_letter(""), None);
}
