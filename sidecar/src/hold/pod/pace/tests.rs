use super::*;

#[test]
fn the_first_of_a_kind_is_told_and_then_one_a_minute_with_those_left_out() {
    let mut pace = Pace::new();
    let at = |seconds: u64| BootTime::from_millis(1_000_000 + seconds * 1000);
    assert_eq!(pace.tell("slow", at(0)), Some(0));
    assert_eq!(pace.tell("full", at(1)), Some(0), "another kind");
    for second in 1..60 {
        assert_eq!(pace.tell("slow", at(second)), None);
    }
    assert_eq!(pace.tell("slow", at(60)), Some(59));
    assert_eq!(pace.tell("slow", at(61)), None);
    assert_eq!(pace.tell("slow", at(500)), Some(1));
    assert_eq!(pace.tell("full", at(500)), Some(0));
}
