use proptest::prelude::*;

use super::*;

#[test]
fn what_users_write_is_read() {
    for (text, milliseconds) in [
        ("15s", 15_000),
        ("500ms", 500),
        ("1m30s", 90_000),
        ("1h", 3_600_000),
        ("0s", 0),
        ("1s1s", 2000),
        ("1ms1h", 3_600_001),
    ] {
        assert_eq!(parse(text), Ok(Duration::from_millis(milliseconds)), "{text}");
    }
}

#[test]
fn what_the_pattern_refuses_is_refused() {
    for text in [
        "",
        "15",
        "s",
        "-1s",
        "1.5s",
        "1d",
        "100000s",
        "1s ",
        " 1s",
        "1S",
        "1s1s1s1s1s",
        "1µs",
        "1us",
        "1mss",
    ] {
        assert!(parse(text).is_err(), "{text:?} was read");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(milliseconds in 0_u64..99_999 * 3_600_000) {
        let duration = Duration::from_millis(milliseconds);
        prop_assert_eq!(parse(&format(duration)), Ok(duration));
    }

    #[test]
    fn no_text_makes_it_panic(text in ".{0,40}") {
        let _ = parse(&text);
    }
}

#[test]
fn sums_are_told_in_seconds() {
    assert_eq!(in_seconds(Duration::from_millis(9200)), "9.2s");
    assert_eq!(in_seconds(Duration::from_secs(10)), "10s");
    assert_eq!(in_seconds(Duration::from_millis(4)), "0.004s");
    assert_eq!(in_seconds(Duration::ZERO), "0s");
}
