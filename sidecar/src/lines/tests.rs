use fencedlease_wire::guard::FromGuard;

use super::*;

const STARTED: &str = r#"{"type":"started","holding":"0101010101010101"}"#;

#[test]
fn the_longest_line_is_read_and_a_longer_one_is_not() {
    for (length, is_read) in [(MAX_LINE_BYTES - 1, true), (MAX_LINE_BYTES, false)] {
        let mut lines = Lines::default();
        lines.push(format!("{STARTED:length$}\n").as_bytes());
        assert_eq!(matches!(lines.message::<FromGuard>(), Ok(Some(_))), is_read, "{length}");
    }
    let mut lines = Lines::default();
    lines.push(&[b' '; MAX_LINE_BYTES]);
    assert!(matches!(lines.message::<FromGuard>(), Err(LineError::Long)));
}

#[test]
fn what_comes_before_a_broken_line_counts() {
    let mut lines = Lines::default();
    lines.push(format!("{STARTED}\n{STARTED}").as_bytes());
    assert!(matches!(lines.message::<FromGuard>(), Ok(Some(FromGuard::Started { .. }))));
    assert!(matches!(lines.message::<FromGuard>(), Ok(None)));
    lines.push(b"\n{}\n");
    assert!(matches!(lines.message::<FromGuard>(), Ok(Some(FromGuard::Started { .. }))));
    assert!(matches!(lines.message::<FromGuard>(), Err(LineError::Broken(_))));
}
