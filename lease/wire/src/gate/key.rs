//! The key of one resource: 32 bytes, in a file of 64 hexadecimal digits a line. The first line signs; each of
//! the at most two verifies, so that a key is changed by adding the new one before taking the old one away.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use super::unhex;

/// What signs tickets of one resource. A secret: its `Debug` shows nothing of it.
#[derive(Clone)]
pub struct GateKey(Hmac<Sha256>);

/// Why a file has no key.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum GateKeyError {
    /// A line is no key.
    #[error("line {0} is not 64 lower-case hexadecimal digits; make a key with `openssl rand -hex 32`")]
    Line(usize),
    /// There are no lines, or too many.
    #[error("a key file has one key or, while it is being changed, two; found {0}")]
    Count(usize),
}

impl GateKey {
    /// The keys in a file's text, the one that signs first.
    pub fn parse_file(text: &str) -> Result<Vec<Self>, GateKeyError> {
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        if lines.is_empty() || lines.len() > 2 {
            return Err(GateKeyError::Count(lines.len()));
        }
        let key = |(index, line): (usize, &&str)| line.parse().map_err(|_| GateKeyError::Line(index + 1));
        lines.iter().enumerate().map(key).collect()
    }

    pub(super) fn sign(&self, text: &[u8]) -> [u8; 32] {
        self.0.clone().chain_update(text).finalize().into_bytes().into()
    }

    /// In a time that does not tell how much of the signature was right.
    pub(super) fn verifies(&self, text: &[u8], signature: &[u8; 32]) -> bool {
        self.0.clone().chain_update(text).verify_slice(signature).is_ok()
    }
}

// === impl GateKey ===

impl FromStr for GateKey {
    type Err = GateKeyError;

    fn from_str(text: &str) -> Result<Self, GateKeyError> {
        let bytes = unhex(text).ok_or(GateKeyError::Line(1))?;
        // HMAC takes keys of any length, so this length is never refused.
        Hmac::new_from_slice(&bytes).map(Self).map_err(|_| GateKeyError::Line(1))
    }
}

impl fmt::Debug for GateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GateKey(…)")
    }
}
