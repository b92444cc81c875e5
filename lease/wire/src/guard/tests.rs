use super::*;
use crate::LossReason;

#[test]
fn a_bounded_message_fits_into_a_line_whatever_it_is_made_of() {
    for letter in ["\u{1}", "\u{1F680}", "\"", "a"] {
        let message = bounded(&letter.repeat(5000));
        assert_eq!(message.chars().count(), MAX_MESSAGE_CHARS);
        let end = ToGuard::End {
            holding: HoldingId::from_random([255; 8]),
            reason: EndReason::Lost(LossReason::ConnectionClosed),
            kill_at_ms: u64::MAX,
            exit_code: Some(255),
            message,
        };
        let line = serde_json::to_string(&end).unwrap();
        assert!(line.len() < MAX_LINE_BYTES, "{} bytes of {letter:?}", line.len());
    }
    assert_eq!(bounded("short"), "short");
}
