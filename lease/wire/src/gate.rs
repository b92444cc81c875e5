//! What a holder shows to a gate: one header that names resource, fence, holder and time, signed with the
//! resource's key. Sidecars write it and gates read it, both with what is here.
//!
//! ```text
//! FencedLease: v1;resource=shop/report;fence=42;holder=0123456789abcdef;time_ms=1764684611123;signature=…
//! ```
//!
//! The order is fixed, so one meaning has one text. The signature is HMAC-SHA-256 over all that stands before
//! `;signature=`, in lower-case hexadecimal digits.

mod key;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use key::{GateKey, GateKeyError};

use crate::resource::checked;
use crate::{Fence, FenceError, HoldingId, ResourceName, ResourceNameError, TokenError};

/// The header that carries a [`Ticket`]. Its value is signed; header names know no case.
pub const TICKET_HEADER: &str = "fencedlease";
/// The same as the socket gives it, in the case that the docs have.
pub const TICKET_HEADER_IN_DOCS: &str = "FencedLease";
/// The header by which a gate says what became of a request: a word of [`GateResult`].
pub const RESULT_HEADER: &str = "fencedlease-result";
/// The header by which a gate tells the backend the fence that it has checked.
pub const FENCE_HEADER: &str = "fencedlease-fence";
/// Where a gate takes raises: POST with a ticket and without a body.
pub const RAISE_PATH: &str = "/.fencedlease/v1/raise";
/// The longest ticket that is read, in bytes.
pub const MAX_TICKET_BYTES: usize = 600;

const VERSION: &str = "v1";
const SIGNATURE: &str = ";signature=";

/// What a holder shows: who it is, and when it said so.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ticket {
    /// What it works on.
    pub resource: GuardedResource,
    /// The fence that it holds.
    pub fence: Fence,
    /// Its holding, which tells two holders of one fence apart.
    pub holder: HoldingId,
    /// When it was signed, in ms of Unix time.
    pub time_ms: u64,
}

/// A ticket as it came, whose signature nobody has looked at yet.
#[derive(Clone, Debug)]
pub struct UnverifiedTicket<'a> {
    ticket: Ticket,
    signed: &'a str,
    signature: [u8; 32],
}

/// `namespace/name` of a FencedLease. The installation is not named: its key is what binds a ticket to it.
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct GuardedResource(String);

/// What became of a request, as the gate's [`RESULT_HEADER`] says it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GateResult {
    /// The fence was accepted and the backend has answered: status and body are the backend's.
    Passed,
    /// A newer fence is known, or this one is another holder's. Nothing reached the backend.
    Refused,
    /// The request cannot be judged: no ticket, a forged or old one, a limit. Nothing reached the backend.
    Rejected,
    /// The gate, its store or the backend cannot be used now. Nothing reached the backend.
    Unavailable,
    /// It may have been done, wholly or in part, or may still be.
    Unknown,
}

/// The answer to a raise that was stored.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RaiseAnswer {
    /// What was raised.
    pub resource: GuardedResource,
    /// The highest fence, stored durably.
    pub fence: Fence,
    /// Requests of older fences that were cut since the last raise and whose fate nobody knows.
    pub unsettled: u64,
}

/// Any other answer of the gate's own.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GateProblem {
    /// A stable word, for programs.
    pub code: String,
    /// What happened and what to do, for people.
    pub message: String,
    /// The highest fence that the gate has stored, where one was met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub highest: Option<Fence>,
}

/// Why a header is no ticket.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum TicketError {
    /// It is longer than any ticket.
    #[error("a ticket has at most {MAX_TICKET_BYTES} bytes, not {0}")]
    TooLong(usize),
    /// A part is missing or stands elsewhere.
    #[error("expected {0:?} at its place; take the header as the socket gives it, unchanged")]
    Missing(&'static str),
    /// The fence is none.
    #[error("the ticket's fence is none: {0}")]
    Fence(FenceError),
    /// The resource is none.
    #[error("the ticket's resource is none: {0}")]
    Resource(ResourceNameError),
    /// The holder is no holding id.
    #[error("the ticket's holder is none: {0}")]
    Holder(TokenError),
    /// The time is no number of milliseconds.
    #[error("time_ms is 1 to 15 decimal digits, not {0:?}")]
    Time(String),
    /// The signature has another form.
    #[error("the signature is 64 lower-case hexadecimal digits")]
    Signature,
}

/// Why a well-formed ticket is not believed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Disbelief {
    /// No key of the resource made this signature.
    #[error("no key of this resource made the signature")]
    Forged,
    /// It was signed too long ago.
    #[error("the ticket is {age_ms} ms old, more than {window_ms}; take a new one from the socket")]
    Old {
        /// Its age.
        age_ms: u64,
        /// What is accepted.
        window_ms: u64,
    },
    /// Its time lies ahead of the gate's clock.
    #[error(
        "the ticket's time is {ahead_ms} ms ahead of the gate's clock, more than {window_ms}; set the clocks"
    )]
    Ahead {
        /// By how much.
        ahead_ms: u64,
        /// What is accepted.
        window_ms: u64,
    },
}

impl Ticket {
    /// The header's value, signed with this key.
    pub fn sign(&self, key: &GateKey) -> String {
        let mut text = self.to_string();
        let signature = key.sign(text.as_bytes());
        text.push_str(SIGNATURE);
        for byte in signature {
            text.push(digit(byte >> 4));
            text.push(digit(byte & 15));
        }
        text
    }
}

impl<'a> UnverifiedTicket<'a> {
    /// Reads a header's value. Whether it is true, [`UnverifiedTicket::verify`] says.
    pub fn parse(value: &'a str) -> Result<Self, TicketError> {
        if value.len() > MAX_TICKET_BYTES {
            return Err(TicketError::TooLong(value.len()));
        }
        let (signed, signature) = value.split_once(SIGNATURE).ok_or(TicketError::Missing(SIGNATURE))?;
        let mut parts = signed.split(';');
        if parts.next() != Some(VERSION) {
            return Err(TicketError::Missing(VERSION));
        }
        let mut part = |name: &'static str| {
            parts.next().and_then(|part| part.strip_prefix(name)).ok_or(TicketError::Missing(name))
        };
        let ticket = Ticket {
            resource: part("resource=")?.parse().map_err(TicketError::Resource)?,
            fence: part("fence=")?.parse().map_err(TicketError::Fence)?,
            holder: HoldingId::try_from(part("holder=")?.to_owned()).map_err(TicketError::Holder)?,
            time_ms: milliseconds(part("time_ms=")?)?,
        };
        if parts.next().is_some() {
            return Err(TicketError::Missing(SIGNATURE));
        }
        Ok(Self { ticket, signed, signature: unhex(signature).ok_or(TicketError::Signature)? })
    }

    /// The resource that it claims, by which its keys are found.
    pub fn claimed_resource(&self) -> &GuardedResource {
        &self.ticket.resource
    }

    /// The ticket, if one of these keys signed it and its time lies within `window` of `now_ms`, in ms of Unix
    /// time, on either side.
    pub fn verify(self, keys: &[GateKey], now_ms: u64, window: Duration) -> Result<Ticket, Disbelief> {
        let is_signed = keys.iter().any(|key| key.verifies(self.signed.as_bytes(), &self.signature));
        if !is_signed {
            return Err(Disbelief::Forged);
        }
        let window_ms = u64::try_from(window.as_millis()).unwrap_or(u64::MAX);
        let age_ms = now_ms.saturating_sub(self.ticket.time_ms);
        let ahead_ms = self.ticket.time_ms.saturating_sub(now_ms);
        if age_ms > window_ms {
            Err(Disbelief::Old { age_ms, window_ms })
        } else if ahead_ms > window_ms {
            Err(Disbelief::Ahead { ahead_ms, window_ms })
        } else {
            Ok(self.ticket)
        }
    }
}

impl GateResult {
    /// The word in the header.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Refused => "refused",
            Self::Rejected => "rejected",
            Self::Unavailable => "unavailable",
            Self::Unknown => "unknown",
        }
    }
}

impl GuardedResource {
    /// `namespace/name`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

// === impl Ticket ===

/// What is signed.
impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resource, fence, holder, time_ms } = self;
        write!(f, "{VERSION};resource={resource};fence={fence};holder={holder};time_ms={time_ms}")
    }
}

// === impl GuardedResource ===

impl FromStr for GuardedResource {
    type Err = ResourceNameError;

    fn from_str(text: &str) -> Result<Self, ResourceNameError> {
        let (namespace, name) = text.split_once('/').unwrap_or((text, ""));
        checked("namespace", namespace, 63)?;
        checked("name", name, 253)?;
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for GuardedResource {
    type Error = ResourceNameError;

    fn try_from(text: String) -> Result<Self, ResourceNameError> {
        text.parse()
    }
}

impl From<GuardedResource> for String {
    fn from(resource: GuardedResource) -> Self {
        resource.0
    }
}

impl From<&ResourceName> for GuardedResource {
    fn from(resource: &ResourceName) -> Self {
        Self(resource.to_string())
    }
}

impl fmt::Display for GuardedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn milliseconds(text: &str) -> Result<u64, TicketError> {
    let digits = (1..=15).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = digits && !text.starts_with('0');
    let wrong = || TicketError::Time(text.chars().take(40).collect());
    if plain { text.parse().map_err(|_| wrong()) } else { Err(wrong()) }
}

fn digit(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).unwrap_or('0')
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
