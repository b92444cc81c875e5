//! What Redis answers: bytes of its protocol, through the library's parser, to what `lease/redis` makes of them.

use std::sync::LazyLock;
use std::time::Duration;

use fencedlease_core::RenewalOutcome;
use fencedlease_redis::{
    AcquireReply, CallError, Inspection, ReleaseReply, RenewReply, Sequence, Server, renewal_outcome,
};
use fencedlease_wire::Fence;
use redis::Value;

use crate::is_one_line;

pub(crate) const WORDS: &[&str] = &[
    "ACQUIRED",
    "HELD",
    "RENEWED",
    "SEQUENCE_LOST",
    "OTHER_OWNER",
    "KEY_GONE",
    "RELEASED",
    "NOT_OWNER",
    "*1\r\n",
    "*2\r\n",
    "*3\r\n",
    "*4\r\n",
    "*7\r\n",
    "$8\r\n",
    "$0\r\n\r\n",
    ":-1\r\n",
    ":-2\r\n",
    ":1\r\n",
    "-NOPERM ",
    "-ERR ",
    "-FENCEDLEASE_SEQUENCE ",
    "!21\r\n",
    "%1\r\n",
    "|1\r\n",
    ">2\r\n",
    "_\r\n",
    "#t\r\n",
    ",1.5\r\n",
    "(12345\r\n",
    "=7\r\ntxt:abc\r\n",
    "999999999999999",
];

/// The longest text about a call, in characters: it stands in logs, events and conditions.
const MOST_TEXT: usize = 700;

static SERVER: LazyLock<Server> = LazyLock::new(|| Server {
    address: "redis:6379".to_owned(),
    tls: None,
    database: 0,
    client_name: "fuzz".to_owned(),
});

pub(crate) fn run(bytes: &[u8]) {
    let read = redis::parse_redis_value(bytes);
    let is_a_reply = read.is_ok();
    match SERVER.judged(read) {
        Err(error) => no_answer(error, is_a_reply),
        Ok(value) => answer(&value),
    }
}

fn no_answer(error: CallError, is_a_reply: bool) {
    let is_refusal = matches!(error, CallError::Refused { .. });
    assert_eq!(is_refusal, is_a_reply, "only Redis itself can refuse: {error:?}");
    assert_eq!(error.may_have_happened(), !is_a_reply, "{error:?}");
    check_text(&error.to_string());
    assert!(error.to_string().contains("redis:6379"), "which Redis? {error}");
    failed(&renewal_outcome(&Err(error)));
}

fn answer(value: &Value) {
    let acquired = AcquireReply::parse(value);
    let renewed = RenewReply::parse(value);
    let released = ReleaseReply::parse(value);
    let inspected = Inspection::parse(value);
    let meanings = [acquired.is_ok(), renewed.is_ok(), released.is_ok(), inspected.is_ok()];
    assert!(meanings.iter().filter(|is_one| **is_one).count() <= 1, "two meanings: {value:?}");
    match &acquired {
        Ok(reply) => same(value, &of_acquire(reply)),
        Err(error) => check_text(&error.to_string()),
    }
    match &renewed {
        Ok(reply) => same(value, &of_renew(reply)),
        Err(error) => check_text(&error.to_string()),
    }
    match &released {
        Ok(reply) => same(value, &of_release(*reply)),
        Err(error) => check_text(&error.to_string()),
    }
    match &inspected {
        Ok(reply) => same(value, &of_inspection(reply)),
        Err(error) => check_text(&error.to_string()),
    }
    let is_renewed = matches!(renewed, Ok(RenewReply::Renewed { .. }));
    let address = SERVER.address.clone();
    let outcome =
        renewal_outcome(&renewed.map_err(|error| CallError::Protocol { address, text: error.to_string() }));
    assert_eq!(outcome == RenewalOutcome::Confirmed, is_renewed, "{value:?}");
    if !is_renewed {
        failed(&outcome);
    }
}

fn failed(outcome: &RenewalOutcome) {
    let RenewalOutcome::Failed { message, .. } = outcome else { panic!("confirmed by nothing") };
    check_text(message);
}

fn check_text(text: &str) {
    assert!(!text.is_empty() && text.chars().count() <= MOST_TEXT, "{} bytes: {text:.900}", text.len());
    assert!(is_one_line(text), "{text:?}");
}

/// A part of a reply as it must have been.
enum Part {
    Word(String),
    Int(i64),
    /// What anybody may have stored, of which a text shows so much.
    Text(Option<String>),
    /// Digits with this value.
    Number(u64),
    /// Digits, or something else that begins with this text.
    Sequence(Sequence),
}

fn same(found: &Value, expected: &[Part]) {
    let Value::Array(found) = found else { panic!("no array was taken for a reply: {found:?}") };
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (found, expected) in found.iter().zip(expected) {
        let is_same = match (expected, found) {
            (Part::Int(expected), Value::Int(found)) => expected == found,
            (Part::Word(word), Value::BulkString(bytes)) => word.as_bytes() == bytes,
            (Part::Text(text), Value::BulkString(bytes)) => *text == shown(bytes),
            (Part::Number(number), Value::BulkString(bytes)) => digits(bytes) == Some(*number),
            (Part::Sequence(sequence), Value::BulkString(bytes)) => is_sequence(sequence, bytes),
            _ => false,
        };
        assert!(is_same, "another reply was read: {found:?}");
    }
}

fn shown(bytes: &[u8]) -> Option<String> {
    let text: String =
        String::from_utf8_lossy(bytes).chars().filter(|char| !char.is_control()).take(253).collect();
    Some(text).filter(|text| !text.is_empty())
}

fn digits(bytes: &[u8]) -> Option<u64> {
    let text = str::from_utf8(bytes).ok()?;
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

fn is_sequence(sequence: &Sequence, bytes: &[u8]) -> bool {
    let text = shown(bytes).unwrap_or_default();
    match sequence {
        Sequence::Empty => text.is_empty() || text == "0",
        Sequence::At(fence) => fence.to_string() == text,
        Sequence::Invalid(start) => text.starts_with(start.as_str()) && text.parse::<Fence>().is_err(),
    }
}

fn word(word: &str) -> Part {
    Part::Word(word.to_owned())
}

fn ttl(remaining: Option<Duration>) -> Part {
    Part::Int(remaining.map_or(-1, |remaining| i64::try_from(remaining.as_millis()).unwrap()))
}

fn fence(fence: Option<Fence>) -> Part {
    Part::Word(fence.map_or_else(|| "0".to_owned(), |fence| fence.to_string()))
}

fn time(time: Duration) -> [Part; 2] {
    [Part::Number(time.as_secs()), Part::Number(u64::from(time.subsec_micros()))]
}

fn of_acquire(reply: &AcquireReply) -> Vec<Part> {
    match reply.clone() {
        AcquireReply::Acquired { fence: given, clean, previous_holder } => vec![
            word("ACQUIRED"),
            fence(Some(given)),
            Part::Int(i64::from(clean)),
            Part::Text(previous_holder),
        ],
        AcquireReply::Held { remaining, highest, holder } => {
            vec![word("HELD"), ttl(remaining), fence(highest), Part::Text(holder)]
        }
    }
}

fn of_renew(reply: &RenewReply) -> Vec<Part> {
    match reply.clone() {
        RenewReply::Renewed { found, server_time } => {
            [word("RENEWED"), ttl(found)].into_iter().chain(time(server_time)).collect()
        }
        RenewReply::SequenceLost { found } => vec![word("SEQUENCE_LOST"), fence(found)],
        RenewReply::OtherOwner { remaining, highest, holder } => {
            vec![word("OTHER_OWNER"), ttl(remaining), fence(highest), Part::Text(holder)]
        }
        RenewReply::KeyGone { highest } => vec![word("KEY_GONE"), fence(highest)],
    }
}

fn of_release(reply: ReleaseReply) -> Vec<Part> {
    match reply {
        ReleaseReply::Released { listeners } => {
            let listeners = listeners.map_or(-1, |listeners| i64::try_from(listeners).unwrap());
            vec![word("RELEASED"), Part::Int(listeners)]
        }
        ReleaseReply::NotOwner => vec![word("NOT_OWNER")],
    }
}

fn of_inspection(reply: &Inspection) -> Vec<Part> {
    let Inspection { held, remaining, sequence, holder, clean, server_time } = reply.clone();
    let left = if held { ttl(remaining) } else { Part::Int(-2) };
    let [seconds, microseconds] = time(server_time);
    vec![
        Part::Int(i64::from(held)),
        left,
        Part::Sequence(sequence),
        Part::Text(holder),
        Part::Int(i64::from(clean)),
        seconds,
        microseconds,
    ]
}
