//! What do the scripts answer? Parsed strictly: a reply of unexpected shape is an error, never a success.

use std::num::TryFromIntError;
use std::time::Duration;

use fencedlease_wire::{Fence, LossReason};
use redis::Value;

/// Answer to an acquisition.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AcquireReply {
    /// The lease is ours.
    Acquired {
        /// Above every fence before it, and above the floor.
        fence: Fence,
        /// Whether the last holding ended cleanly.
        clean: bool,
        /// Who held last, if anybody did.
        previous_holder: Option<String>,
    },
    /// Somebody has it.
    Held {
        /// Until it expires; `None` if it never does.
        remaining: Option<Duration>,
        /// The greatest fence handed out, if any was.
        highest: Option<Fence>,
        /// Who holds it, as far as Redis tells.
        holder: Option<String>,
    },
}

/// Answer to a renewal.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RenewReply {
    /// Extended.
    Renewed {
        /// What was left until then; `None` if it would never have expired.
        found: Option<Duration>,
        /// Redis's wall clock right after that, since 1970.
        server_time: Duration,
    },
    /// The lease was ours, but the sequence was below our fence: Redis has lost data. Not extended.
    SequenceLost {
        /// The sequence as it was found; it is our fence now.
        found: Option<Fence>,
    },
    /// Somebody else has the lease.
    OtherOwner {
        /// Until it expires; `None` if it never does.
        remaining: Option<Duration>,
        /// The greatest fence handed out, as it was found.
        highest: Option<Fence>,
        /// Who holds it, as far as Redis tells.
        holder: Option<String>,
    },
    /// Nobody has the lease.
    KeyGone {
        /// The greatest fence handed out, as it was found.
        highest: Option<Fence>,
    },
}

/// Answer to a release.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReleaseReply {
    /// Given back.
    Released {
        /// How many heard of it; `None` if it could not be published, so that standbys wait for the expiry.
        listeners: Option<u64>,
    },
    /// It was not ours (any more).
    NotOwner,
}

/// How a lease stands in Redis, for diagnosis.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Inspection {
    /// Whether somebody has it.
    pub held: bool,
    /// Until it expires; `None` if nobody has it, or if it never does.
    pub remaining: Option<Duration>,
    /// The sequence.
    pub sequence: Sequence,
    /// Who holds or last held it.
    pub holder: Option<String>,
    /// Whether the last holding ended cleanly.
    pub clean: bool,
    /// Redis's wall clock, since 1970.
    pub server_time: Duration,
}

/// A stored sequence, whatever it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Sequence {
    /// There is none: no fence was handed out.
    Empty,
    /// The greatest fence that was handed out.
    At(Fence),
    /// Something else, up to 40 characters of it. No fence is handed out until somebody mends it.
    Invalid(String),
}

/// A reply of unexpected shape.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("expected {expected}, found {found}")]
pub struct ReplyError {
    expected: &'static str,
    found: String,
}

// === impl AcquireReply ===

impl AcquireReply {
    /// Reads the reply of acquire.lua.
    pub fn parse(reply: &Value) -> Result<Self, ReplyError> {
        const EXPECTED: &str = "ACQUIRED, fence, clean, previous holder or HELD, ttl, sequence, holder";
        let read = || match words(reply)? {
            (b"ACQUIRED", [fence, clean, holder]) => Ok(Self::Acquired {
                fence: sequence(fence)?.ok_or(Unexpected)?,
                clean: flag(clean)?,
                previous_holder: person(holder)?,
            }),
            (b"HELD", [ttl, highest, holder]) => Ok(Self::Held {
                remaining: remaining(ttl)?,
                highest: sequence(highest)?,
                holder: person(holder)?,
            }),
            _ => Err(Unexpected),
        };
        read().map_err(|Unexpected| ReplyError::new(EXPECTED, reply))
    }
}

// === impl RenewReply ===

impl RenewReply {
    /// Reads the reply of renew.lua.
    pub fn parse(reply: &Value) -> Result<Self, ReplyError> {
        const EXPECTED: &str = "RENEWED, ttl, time or SEQUENCE_LOST, sequence or OTHER_OWNER, ttl, sequence, \
                                holder or KEY_GONE, sequence";
        let read = || match words(reply)? {
            (b"RENEWED", [ttl, seconds, microseconds]) => {
                Ok(Self::Renewed { found: remaining(ttl)?, server_time: time(seconds, microseconds)? })
            }
            (b"SEQUENCE_LOST", [found]) => Ok(Self::SequenceLost { found: sequence(found)? }),
            (b"OTHER_OWNER", [ttl, highest, holder]) => Ok(Self::OtherOwner {
                remaining: remaining(ttl)?,
                highest: sequence(highest)?,
                holder: person(holder)?,
            }),
            (b"KEY_GONE", [highest]) => Ok(Self::KeyGone { highest: sequence(highest)? }),
            _ => Err(Unexpected),
        };
        read().map_err(|Unexpected| ReplyError::new(EXPECTED, reply))
    }

    /// The loss that this answer states, with a text for people; `None` if the lease was extended.
    pub fn loss(&self) -> Option<(LossReason, String)> {
        let number =
            |fence: &Option<Fence>| fence.map_or_else(|| "empty".to_owned(), |fence| fence.to_string());
        match self {
            Self::Renewed { .. } => None,
            Self::SequenceLost { found } => Some((
                LossReason::SequenceLost,
                format!("Redis has lost data: its sequence was {}, below our fence", number(found)),
            )),
            Self::OtherOwner { highest, holder, .. } => {
                let holder = holder.as_deref().unwrap_or("somebody else");
                let text = format!("{holder} has the lease; the sequence was {}", number(highest));
                Some((LossReason::OtherOwner, text))
            }
            Self::KeyGone { highest } => Some((
                LossReason::KeyGone,
                format!("there is no lease in Redis; the sequence was {}", number(highest)),
            )),
        }
    }
}

// === impl ReleaseReply ===

impl ReleaseReply {
    /// Reads the reply of release.lua.
    pub fn parse(reply: &Value) -> Result<Self, ReplyError> {
        let read = || match words(reply)? {
            (b"RELEASED", [Value::Int(-1)]) => Ok(Self::Released { listeners: None }),
            (b"RELEASED", [Value::Int(listeners)]) => {
                Ok(Self::Released { listeners: Some(u64::try_from(*listeners)?) })
            }
            (b"NOT_OWNER", []) => Ok(Self::NotOwner),
            _ => Err(Unexpected),
        };
        read().map_err(|Unexpected| ReplyError::new("RELEASED, listeners or NOT_OWNER", reply))
    }
}

// === impl Inspection ===

impl Inspection {
    /// Reads the reply of inspect.lua.
    pub fn parse(reply: &Value) -> Result<Self, ReplyError> {
        const EXPECTED: &str = "held, ttl, sequence, holder, clean, time";
        let read = || {
            let Value::Array(values) = reply else { return Err(Unexpected) };
            let [held, ttl, sequence, holder, clean, seconds, microseconds] = values.as_slice() else {
                return Err(Unexpected);
            };
            let held = flag(held)?;
            let left = match ttl {
                Value::Int(-2) if !held => None,
                ttl if held => remaining(ttl)?,
                _ => return Err(Unexpected),
            };
            Ok(Self {
                held,
                remaining: left,
                sequence: Sequence::of(&text(sequence)?),
                holder: person(holder)?,
                clean: flag(clean)?,
                server_time: time(seconds, microseconds)?,
            })
        };
        read().map_err(|Unexpected| ReplyError::new(EXPECTED, reply))
    }
}

// === impl Sequence ===

impl Sequence {
    fn of(text: &str) -> Self {
        match text {
            "" | "0" => Self::Empty,
            text => text.parse().map_or_else(|_| Self::Invalid(text.chars().take(40).collect()), Self::At),
        }
    }
}

// === impl ReplyError ===

impl ReplyError {
    fn new(expected: &'static str, found: &Value) -> Self {
        // A reply may be as long as whatever is stored.
        Self { expected, found: format!("{found:?}").chars().take(200).collect() }
    }
}

/// A part of a reply that is not what it should be.
struct Unexpected;

impl From<TryFromIntError> for Unexpected {
    fn from(_: TryFromIntError) -> Self {
        Self
    }
}

/// A reply's first word, and what follows it.
fn words(reply: &Value) -> Result<(&[u8], &[Value]), Unexpected> {
    match reply {
        Value::Array(values) => match values.split_first() {
            Some((Value::BulkString(word), rest)) => Ok((word, rest)),
            _ => Err(Unexpected),
        },
        _ => Err(Unexpected),
    }
}

fn flag(value: &Value) -> Result<bool, Unexpected> {
    match value {
        Value::Int(0) => Ok(false),
        Value::Int(1) => Ok(true),
        _ => Err(Unexpected),
    }
}

/// A PTTL of a key that exists.
fn remaining(value: &Value) -> Result<Option<Duration>, Unexpected> {
    match value {
        Value::Int(-1) => Ok(None),
        Value::Int(milliseconds) => Ok(Some(Duration::from_millis(u64::try_from(*milliseconds)?))),
        _ => Err(Unexpected),
    }
}

fn sequence(value: &Value) -> Result<Option<Fence>, Unexpected> {
    match value {
        Value::BulkString(digits) if digits == b"0" => Ok(None),
        Value::BulkString(digits) => {
            let digits = str::from_utf8(digits).map_err(|_| Unexpected)?;
            digits.parse().map(Some).map_err(|_| Unexpected)
        }
        _ => Err(Unexpected),
    }
}

fn person(value: &Value) -> Result<Option<String>, Unexpected> {
    Ok(Some(text(value)?).filter(|text| !text.is_empty()))
}

/// A text that anybody may have stored: as much of it as a message can show.
fn text(value: &Value) -> Result<String, Unexpected> {
    let Value::BulkString(bytes) = value else { return Err(Unexpected) };
    Ok(String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_control()).take(253).collect())
}

fn time(seconds: &Value, microseconds: &Value) -> Result<Duration, Unexpected> {
    let microseconds = number(microseconds)?;
    if microseconds >= 1_000_000 {
        return Err(Unexpected);
    }
    Ok(Duration::from_secs(number(seconds)?) + Duration::from_micros(microseconds))
}

/// At most 15 digits, so that no sum of it can overflow.
fn number(value: &Value) -> Result<u64, Unexpected> {
    match value {
        Value::BulkString(digits) if digits.len() <= 15 && digits.iter().all(u8::is_ascii_digit) => {
            str::from_utf8(digits).map_err(|_| Unexpected)?.parse().map_err(|_| Unexpected)
        }
        _ => Err(Unexpected),
    }
}

#[cfg(test)]
mod tests;
