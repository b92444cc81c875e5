//! Who a lease belongs to: the owner token, and the public name of a holding.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// 128 random bits, new for every attempt to acquire, as 32 lower-case hexadecimal digits.
/// It proves whose the lease is, so it is a secret: its `Debug` shows nothing of it.
#[derive(Clone, Deserialize, Eq, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct OwnerToken(String);

/// The public name of one holding: 64 random bits as 16 lower-case hexadecimal digits. Not a secret.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct HoldingId(String);

/// A text that is no token or holding id.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("expected {expected} lower-case hexadecimal digits, found {found} characters")]
pub struct TokenError {
    expected: usize,
    found: usize,
}

impl OwnerToken {
    /// A token of these random bits.
    pub fn from_random(bits: [u8; 16]) -> Self {
        Self(hex(&bits))
    }

    /// The text that Redis stores as the lease's value.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl HoldingId {
    /// A holding id of these random bits.
    pub fn from_random(bits: [u8; 8]) -> Self {
        Self(hex(&bits))
    }

    /// The text as it appears in files, JSON and logs.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

// === impl OwnerToken ===

impl fmt::Debug for OwnerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerToken(…)")
    }
}

impl TryFrom<String> for OwnerToken {
    type Error = TokenError;

    fn try_from(text: String) -> Result<Self, TokenError> {
        check(&text, 32)?;
        Ok(Self(text))
    }
}

impl FromStr for OwnerToken {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        Self::try_from(text.to_owned())
    }
}

impl From<OwnerToken> for String {
    fn from(token: OwnerToken) -> Self {
        token.0
    }
}

// === impl HoldingId ===

impl fmt::Display for HoldingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for HoldingId {
    type Error = TokenError;

    fn try_from(text: String) -> Result<Self, TokenError> {
        check(&text, 16)?;
        Ok(Self(text))
    }
}

impl FromStr for HoldingId {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        Self::try_from(text.to_owned())
    }
}

impl From<HoldingId> for String {
    fn from(id: HoldingId) -> Self {
        id.0
    }
}

fn hex(bits: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bits.iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

fn check(text: &str, expected: usize) -> Result<(), TokenError> {
    let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if digits && text.len() == expected { Ok(()) } else { Err(TokenError { expected, found: text.len() }) }
}

#[cfg(test)]
mod tests;
