//! The fence: an integer that only grows, and says which holder is newer.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A fencing token: 1 to 999,999,999,999,999.
///
/// At most 15 digits, because Redis's Lua counts in doubles: above that `tostring` stores an exponent
/// and above 2^53 one number is handed out twice.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Fence(u64);

/// Why a number or a text is no fence.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum FenceError {
    /// Not one to fifteen decimal digits without a leading zero.
    #[error("a fence is 1 to 15 decimal digits without a leading zero, not {0:?}")]
    NotDigits(String),
    /// Zero, or above [`Fence::MAX`].
    #[error("a fence lies between 1 and 999999999999999, not {0}")]
    OutOfRange(u64),
}

impl Fence {
    /// The greatest fence that can be handed out.
    pub const MAX: Self = Self(999_999_999_999_999);

    /// A fence of this value; zero and more than 15 digits are refused.
    pub fn new(value: u64) -> Result<Self, FenceError> {
        if value == 0 || value > Self::MAX.0 { Err(FenceError::OutOfRange(value)) } else { Ok(Self(value)) }
    }

    /// The plain number.
    pub fn get(self) -> u64 {
        self.0
    }
}

// === impl Fence ===

impl FromStr for Fence {
    type Err = FenceError;

    fn from_str(text: &str) -> Result<Self, FenceError> {
        let digits = (1..=15).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits || text.starts_with('0') {
            return Err(FenceError::NotDigits(text.chars().take(40).collect()));
        }
        let value = text.parse().map_err(|_| FenceError::NotDigits(text.to_owned()))?;
        Self::new(value)
    }
}

impl TryFrom<u64> for Fence {
    type Error = FenceError;

    fn try_from(value: u64) -> Result<Self, FenceError> {
        Self::new(value)
    }
}

impl From<Fence> for u64 {
    fn from(fence: Fence) -> Self {
        fence.0
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests;
