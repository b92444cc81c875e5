//! What guard and sidecar say to each other: bytes of `guard.sock`, in pieces of any size.

use fencedlease_sidecar::lines::{LineError, Lines};
use fencedlease_wire::guard::{FromGuard, MAX_LINE_BYTES, ToGuard};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) const WORDS: &[&str] = &[
    "{\"type\":\"hello\",\"container\":\"app\"}\n",
    "{\"type\":\"started\",\"holding\":\"0123456789abcdef\"}\n",
    "\"type\":\"startFailed\"",
    "\"type\":\"acted\"",
    "\"type\":\"terminating\"",
    "\"type\":\"ended\"",
    "\"type\":\"welcome\"",
    "\"type\":\"grant\"",
    "\"type\":\"extend\"",
    "\"type\":\"end\"",
    "\"type\":\"dismiss\"",
    "\"secret\":",
    "\"holding\":",
    "\"acted\":true",
    "\"exitCode\":",
    "\"message\":",
    "\"fence\":",
    "\"resource\":",
    "\"termAtMs\":",
    "\"killAtMs\":",
    "\"reason\":\"RenewalTimeout\"",
    "\"reason\":\"MaxHold\"",
    "\\ud83d\\ude00",
];

pub(crate) fn run(bytes: &[u8]) {
    both::<FromGuard>(bytes);
    both::<ToGuard>(bytes);
}

/// How a stream of bytes was read: its messages, and how it ended.
#[derive(Debug, PartialEq)]
struct Heard<M> {
    messages: Vec<M>,
    end: End,
}

#[derive(Debug, PartialEq)]
enum End {
    Open,
    Long,
    Broken,
}

fn both<M: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    let whole = heard::<M>(bytes.chunks(bytes.len().max(1)));
    // Looking for the end of a long line at each byte of it takes long.
    let least = 1 + bytes.len() / 256;
    for size in [least, 7 * least, MAX_LINE_BYTES] {
        assert_eq!(heard::<M>(bytes.chunks(size)), whole, "read in pieces of {size} bytes");
    }
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    for (line, message) in lines.iter().zip(&whole.messages) {
        assert!(line.len() < MAX_LINE_BYTES, "a line of {} bytes was read", line.len());
        check(line, message);
    }
    let unread = lines.get(whole.messages.len()).copied().unwrap_or_default();
    match whole.end {
        // The last piece has no newline yet.
        End::Open => {
            assert_eq!(whole.messages.len() + 1, lines.len(), "a whole line was not read");
            assert!(unread.len() < MAX_LINE_BYTES, "{} bytes are kept", unread.len());
        }
        End::Long => assert!(unread.len() >= MAX_LINE_BYTES, "{} bytes are not too long", unread.len()),
        End::Broken => assert!(serde_json::from_slice::<M>(unread).is_err(), "a message was refused"),
    }
}

fn heard<'a, M: DeserializeOwned>(pieces: impl Iterator<Item = &'a [u8]>) -> Heard<M> {
    let mut lines = Lines::default();
    let mut messages = Vec::new();
    for piece in pieces {
        lines.push(piece);
        loop {
            match lines.message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(LineError::Long) => return Heard { messages, end: End::Long },
                Err(LineError::Broken(_)) => return Heard { messages, end: End::Broken },
            }
        }
    }
    Heard { messages, end: End::Open }
}

/// A message says all that its line says, and means the same when it is said again.
fn check<M: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(line: &[u8], message: &M) {
    let again = serde_json::to_vec(message).unwrap();
    assert!(!again.contains(&b'\n'), "a message of two lines");
    assert_eq!(serde_json::from_slice::<M>(&again).unwrap(), *message);
    let (line, again): (Value, Value) =
        (serde_json::from_slice(line).unwrap(), serde_json::from_slice(&again).unwrap());
    let fields = line.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    for (key, value) in fields {
        assert_eq!(again.get(key), Some(value), "{key} was overlooked in {line}");
    }
}
