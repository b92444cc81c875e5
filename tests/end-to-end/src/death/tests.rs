use std::process::Command;

use super::*;

fn watch(what: &str, seconds: &str) -> String {
    let output =
        Command::new("sh").args(["-c", &format!("{LIST}{WATCH}"), "sh", what, seconds]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn an_instant_is_read_from_its_line_alone() {
    assert_eq!(instant("gone 12.25"), Some(Duration::from_millis(12_250)));
    assert_eq!(instant("alive"), None);
}

#[test]
fn what_lives_on_is_said_to_be_alive() {
    assert_eq!(watch(":", "0"), "watching\nalive\n");
}

#[test]
fn what_never_lived_is_said_at_once() {
    assert_eq!(watch("no such cgroup", "5"), "none\n");
}
