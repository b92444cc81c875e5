use super::*;

#[test]
fn no_script_has_a_header_that_would_keep_a_full_redis_from_renewing() {
    for script in [ACQUIRE, RENEW, RELEASE, INSPECT] {
        assert!(script.starts_with("-- "), "{script}");
    }
}

#[test]
fn scripts_that_read_the_sequence_judge_it_alike() {
    let judgement = |script: &'static str| {
        let start = script.find("local sequence").unwrap();
        let end = script.find(" NUMBER')\nend\n").unwrap();
        &script[start..end]
    };
    assert_eq!(judgement(ACQUIRE), judgement(RENEW));
}

#[test]
fn a_ttl_below_a_millisecond_is_one() {
    assert_eq!(milliseconds(Duration::from_micros(3)), "1");
    assert_eq!(milliseconds(Duration::from_micros(15_000_900)), "15000");
}
