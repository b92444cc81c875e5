//! Redis as the resource under the conformance suite, and what else the script's contract says.
#![allow(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use fencedlease_fence_checks::redis_resource::{RedisCheck, SCRIPT, Shape};
use fencedlease_fence_checks::{Claim, FenceCheck as _, Outcome, suite};

/// The error code of what is sent to the script with the keys `f` and `v`.
fn code(check: &RedisCheck, arguments: &[&str]) -> String {
    let words = [&["EVAL", SCRIPT, "2", "f", "v"], arguments].concat();
    check.send(&words).unwrap_err().code().unwrap().to_owned()
}

#[test]
fn the_script_conforms() {
    let check = RedisCheck::start(Shape::Script).unwrap();
    let report = suite::run(&*check, "script");
    assert!(report.failed.is_empty() && report.passed > 10, "{report}");
}

#[test]
fn broken_uses_fail_the_case_for_them() {
    for (shape, case) in
        [(Shape::TwoCommands, "eight_writers_race"), (Shape::NotPersisted, "the_memory_survives_a_crash")]
    {
        let check = RedisCheck::start(shape).unwrap();
        let report = suite::run_until_failed(&*check, case, "round");
        assert!(report.failed_names().contains(&case), "{shape:?} passed {case} 20 times: {report}");
    }
}

#[test]
fn a_raise_alone_writes_nothing_and_shuts_the_door() {
    let check = RedisCheck::start(Shape::Script).unwrap();
    check.write("shop/report", &Claim::new("7", "old"), 1);
    let raise = ["EVAL", SCRIPT, "1", "{shop/report}:fence", "8", "new"];
    check.send(&raise).unwrap();
    assert!(matches!(check.write("shop/report", &Claim::new("7", "old"), 2), Outcome::Refused(_)));
    assert_eq!(check.value("shop/report").unwrap(), Some(1));
}

#[test]
fn a_command_that_fails_is_told_in_redis_words_and_leaves_the_fence_raised() {
    let check = RedisCheck::start(Shape::Script).unwrap();
    check.send(&["SET", "v", "1"]).unwrap();
    assert_eq!(code(&check, &["7", "a", "LPUSH", "v", "x"]), "WRONGTYPE");
    assert_eq!(code(&check, &["6", "b", "SET", "v", "2"]), "FENCEDLEASE_REFUSED");
}

#[test]
fn a_memory_that_somebody_else_wrote_lets_nothing_through() {
    let check = RedisCheck::start(Shape::Script).unwrap();
    for spoilt in
        [&["SET", "f", "7"][..], &["HSET", "f", "fence", "7e3", "holder", "a"], &["HSET", "f", "x", "1"]]
    {
        check.send(&["DEL", "f"]).unwrap();
        check.send(spoilt).unwrap();
        assert_eq!(code(&check, &["9", "a", "SET", "v", "1"]), "FENCEDLEASE_MEMORY", "{spoilt:?}");
    }
    assert_eq!(check.send(&["EXISTS", "v"]).unwrap(), redis::Value::Int(0));
}

#[test]
fn a_full_redis_raises_nothing_and_writes_nothing() {
    let check = RedisCheck::start(Shape::Script).unwrap();
    check.write("shop/report", &Claim::new("7", "a"), 1);
    check.send(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    assert!(matches!(check.write("shop/report", &Claim::new("8", "b"), 2), Outcome::Failed(_)));
    check.send(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    assert_eq!(check.write("shop/report", &Claim::new("7", "a"), 3), Outcome::Done);
}
