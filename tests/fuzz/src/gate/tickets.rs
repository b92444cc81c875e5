//! A ticket has one text, and nobody without the key has one.

use std::sync::LazyLock;
use std::time::Duration;

use fencedlease_wire::gate::{Disbelief, GateKey, MAX_TICKET_BYTES, Ticket, UnverifiedTicket};
use fencedlease_wire::{Fence, HoldingId};
use hyper::header::HeaderValue;

const WINDOW: Duration = Duration::from_secs(60);

static KEY: LazyLock<GateKey> = LazyLock::new(|| "a".repeat(64).parse().unwrap());

pub(super) fn check(value: &HeaderValue) {
    let Ok(value) = value.to_str() else { return };
    let unverified = match UnverifiedTicket::parse(value) {
        Ok(unverified) => unverified,
        Err(error) => {
            let text = error.to_string();
            assert!(!text.is_empty() && text.len() <= 500, "{} bytes: {text:.600}", text.len());
            return;
        }
    };
    assert!(value.len() <= MAX_TICKET_BYTES, "{} bytes", value.len());
    let ticket = ticket(value).expect("it was read, but has another form");
    assert_eq!(unverified.claimed_resource(), &ticket.resource);
    assert_eq!(unverified.clone().verify(&[], ticket.time_ms, WINDOW), Err(Disbelief::Forged));
    let signed = ticket.sign(&KEY);
    let (said, _) = value.split_once(";signature=").unwrap();
    assert_eq!(
        signed.split_once(";signature="),
        Some((said, &signed[said.len() + 11..])),
        "two texts of one ticket"
    );
    let keys = [KEY.clone()];
    let believed = unverified.verify(&keys, ticket.time_ms, WINDOW);
    assert_eq!(believed.is_ok(), value == signed, "{value} is believed");
    let ours = UnverifiedTicket::parse(&signed).unwrap();
    assert_eq!(ours.clone().verify(&keys, ticket.time_ms, WINDOW), Ok(ticket.clone()));
    for (now, is_fresh) in [
        (ticket.time_ms.saturating_add(60_000), true),
        (ticket.time_ms.saturating_add(60_001), false),
        (ticket.time_ms.saturating_sub(60_000), true),
        (0, ticket.time_ms <= 60_000),
        (u64::MAX, false),
    ] {
        assert_eq!(ours.clone().verify(&keys, now, WINDOW).is_ok(), is_fresh, "{signed} at {now}");
    }
}

/// What a text of the published form says.
fn ticket(value: &str) -> Option<Ticket> {
    let mut parts = value.split(';');
    let mut part = |name: &str| parts.next().and_then(|part| part.strip_prefix(name));
    part("v1").filter(|rest| rest.is_empty())?;
    Some(Ticket {
        resource: part("resource=")?.parse().ok()?,
        fence: Fence::new(part("fence=")?.parse().ok()?).ok()?,
        holder: HoldingId::try_from(part("holder=")?.to_owned()).ok()?,
        time_ms: part("time_ms=")?.parse().ok()?,
    })
}
