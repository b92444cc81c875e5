use super::*;

#[test]
fn the_tests_figures_are_read() {
    assert_eq!(read("100 times: p50 7 ms, p99 31 ms"), Some(("100 times: p50 7 ms", 31.0)));
    assert_eq!(read("100 times"), None);
}
