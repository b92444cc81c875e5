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

#[test]
fn a_death_is_seen_only_when_what_came_later_is_dead_too() {
    // A script of its own in place of the list: one process at first, another when that has ended.
    let list = r#"list() {
  if [ -d "/proc/$FIRST" ]; then echo "$FIRST first"; elif [ -d "/proc/$SECOND" ]; then echo "$SECOND second"; fi
}"#;
    let sleep = || Command::new("sleep").arg("60").spawn().unwrap();
    let (mut first, mut second) = (sleep(), sleep());
    let mut watch = Command::new("sh")
        .args(["-c", &format!("{list}{WATCH}"), "sh", "any", "20"])
        .env("FIRST", first.id().to_string())
        .env("SECOND", second.id().to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("watching"));
    first.kill().unwrap();
    first.wait().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert!(watch.try_wait().unwrap().is_none(), "the second lives");
    second.kill().unwrap();
    second.wait().unwrap();
    assert!(lines.next().is_some_and(|line| line.starts_with("gone ")));
    watch.wait().unwrap();
}
