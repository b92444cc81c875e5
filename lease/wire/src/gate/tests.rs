use std::time::Duration;

use super::*;

const WINDOW: Duration = Duration::from_secs(60);
const NOW: u64 = 1_764_684_611_123;

fn key(digit: char) -> GateKey {
    digit.to_string().repeat(64).parse().unwrap()
}

fn ticket() -> Ticket {
    Ticket {
        resource: "shop/report".parse().unwrap(),
        fence: Fence::new(42).unwrap(),
        holder: HoldingId::from_random([1; 8]),
        time_ms: NOW,
    }
}

fn read(value: &str, keys: &[GateKey], now_ms: u64) -> Result<Ticket, Disbelief> {
    UnverifiedTicket::parse(value).unwrap().verify(keys, now_ms, WINDOW)
}

#[test]
fn the_header_is_as_it_was_published() {
    assert_eq!(
        ticket().sign(&key('a')),
        "v1;resource=shop/report;fence=42;holder=0101010101010101;time_ms=1764684611123;\
         signature=67cd7fa28afb4ec6eb3b068d22cc46acd58ac2d55751d971e23f15b1916aa3e3"
    );
}

#[test]
fn what_was_signed_is_read_by_either_key() {
    let value = ticket().sign(&key('a'));
    assert_eq!(read(&value, &[key('a'), key('b')], NOW), Ok(ticket()));
    assert_eq!(read(&value, &[key('b'), key('a')], NOW), Ok(ticket()));
    assert_eq!(read(&value, &[key('b')], NOW), Err(Disbelief::Forged));
    assert_eq!(read(&value, &[], NOW), Err(Disbelief::Forged));
}

#[test]
fn no_byte_can_be_another() {
    let value = ticket().sign(&key('a'));
    for index in 0..value.len() {
        let mut other = value.clone().into_bytes();
        other[index] = if other[index] == b'1' { b'2' } else { b'1' };
        let other = String::from_utf8(other).unwrap();
        let believed = UnverifiedTicket::parse(&other)
            .ok()
            .and_then(|ticket| ticket.verify(&[key('a')], NOW, WINDOW).ok());
        assert_eq!(believed, None, "{other}");
    }
}

#[test]
fn a_ticket_is_fresh_for_the_window_on_both_sides() {
    let value = ticket().sign(&key('a'));
    let keys = [key('a')];
    assert!(read(&value, &keys, NOW + 60_000).is_ok());
    assert!(read(&value, &keys, NOW - 60_000).is_ok());
    assert_eq!(read(&value, &keys, NOW + 60_001), Err(Disbelief::Old { age_ms: 60_001, window_ms: 60_000 }));
    assert_eq!(
        read(&value, &keys, NOW - 60_001),
        Err(Disbelief::Ahead { ahead_ms: 60_001, window_ms: 60_000 })
    );
}

#[test]
fn other_texts_are_refused_with_what_is_wrong() {
    let good = ticket().sign(&key('a'));
    let cases = [
        (good.replace("v1;", "v2;"), "v1"),
        (good.replace("fence=42", "fence=0"), "fence"),
        (good.replace("fence=42", "fence=042"), "fence"),
        (good.replace("fence=42", "fence=-1"), "fence"),
        (good.replace("fence=42", "fence="), "fence"),
        (good.replace("fence=42", "fence=1000000000000000"), "fence"),
        (good.replace("shop/report", "shop"), "resource"),
        (good.replace("shop/report", "shop/report/x"), "resource"),
        (good.replace("time_ms=", "time_ms=+"), "time_ms"),
        (good.replace(";holder", ";extra=1;holder"), "holder="),
        (good.replace(";signature=", ";more=1;signature="), "signature"),
        (good.replace(";signature=", ""), "signature"),
        (format!("{good}0"), "signature"),
        ("x".repeat(601), "600"),
        (String::new(), "signature"),
    ];
    for (text, says) in cases {
        let error = UnverifiedTicket::parse(&text).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[test]
fn a_key_file_has_one_key_or_two() {
    let one = "a".repeat(64);
    assert_eq!(GateKey::parse_file(&one).unwrap().len(), 1);
    assert_eq!(GateKey::parse_file(&format!("{one}\n{one}\n")).unwrap().len(), 2);
    assert_eq!(GateKey::parse_file("\n").unwrap_err(), GateKeyError::Count(0));
    assert_eq!(GateKey::parse_file(&format!("{one}\n{one}\n{one}")).unwrap_err(), GateKeyError::Count(3));
    assert_eq!(GateKey::parse_file(&format!("{one}\nabc")).unwrap_err(), GateKeyError::Line(2));
    assert_eq!(GateKey::parse_file(&one.to_uppercase()).unwrap_err(), GateKeyError::Line(1));
}

#[test]
fn a_key_is_not_shown() {
    assert_eq!(format!("{:?}", key('a')), "GateKey(…)");
}
