use super::*;

#[test]
fn fifteen_digits_are_the_most() {
    assert_eq!("999999999999999".parse::<Fence>().unwrap(), Fence::MAX);
    assert!("1000000000000000".parse::<Fence>().is_err());
    assert!(Fence::new(Fence::MAX.get() + 1).is_err());
}

#[test]
fn what_is_no_positive_number_is_refused() {
    for text in ["", "0", "-1", "+1", "01", "1 ", " 1", "1e3", "1.0", "abc", "١"] {
        assert!(text.parse::<Fence>().is_err(), "{text:?} was taken for a fence");
    }
    assert!(serde_json::from_str::<Fence>("0").is_err());
    assert!(serde_json::from_str::<Fence>("\"7\"").is_err());
}

#[test]
fn json_is_a_plain_number() {
    assert_eq!(serde_json::to_string(&Fence::new(42).unwrap()).unwrap(), "42");
    assert_eq!(serde_json::from_str::<Fence>("42").unwrap().get(), 42);
}
