#![allow(clippy::unwrap_used, reason = "a test fails so")]

use super::*;

#[test]
fn a_namespace_or_all_of_an_installation_is_named_and_selecting_only_where_it_is_needed() {
    let one = Rights::new("c1", Some("shop"), 0).unwrap().rules();
    assert_eq!(&one[..3], ["~fencedlease:v1:{c1/shop/*}:*", "&fencedlease:v1:{c1/shop/*}:*", "+eval"]);
    assert!(!one.contains(&"+select".to_owned()), "{one:?}");
    let all = Rights::new("c1", None, 3).unwrap().rules();
    assert_eq!(all[0], "~fencedlease:v1:{c1/*}:*");
    assert!(all.contains(&"+select".to_owned()), "{all:?}");
}

#[test]
fn what_is_no_name_is_no_part_of_a_pattern() {
    let error = Rights::new("c1", Some("*"), 0).unwrap_err().to_string();
    assert!(error.contains("namespace \"*\""), "{error}");
}
