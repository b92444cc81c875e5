use super::*;

#[test]
fn the_status_stands_behind_the_body() {
    assert_eq!(answer("{\"a\":\n1}\n200").unwrap(), (200, "{\"a\":\n1}".to_owned()));
    assert_eq!(answer("\n202").unwrap(), (202, String::new()));
    assert!(answer("curl: no").is_err());
}
