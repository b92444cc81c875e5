//! How do the bytes of `guard.sock` become messages? Pure: bytes in as they arrive, messages out, the same ones
//! however the bytes were cut into pieces.

use fencedlease_wire::guard::MAX_LINE_BYTES;
use serde::de::DeserializeOwned;

/// What has arrived and is not read yet.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    input: Vec<u8>,
    read: usize,
}

/// Why nothing after it is read.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// A line above the limit, whole or not.
    #[error("a line is longer than {MAX_LINE_BYTES} bytes")]
    Long,
    /// A line that is none of ours.
    #[error("a line is no message")]
    Broken(#[from] serde_json::Error),
}

impl Lines {
    /// Takes in what has arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.input.drain(..self.read);
        self.read = 0;
        self.input.extend_from_slice(bytes);
    }

    /// The next message; `None` while its line is incomplete. After an error the connection is of no more use.
    pub fn message<M: DeserializeOwned>(&mut self) -> Result<Option<M>, LineError> {
        let unread = &self.input[self.read..];
        match unread.iter().position(|byte| *byte == b'\n') {
            Some(length) if length < MAX_LINE_BYTES => {
                let message = serde_json::from_slice(&unread[..length])?;
                self.read += length + 1;
                Ok(Some(message))
            }
            None if unread.len() < MAX_LINE_BYTES => Ok(None),
            _ => Err(LineError::Long),
        }
    }
}

#[cfg(test)]
mod tests;
