//! What do gates believe? Tickets, signed at the moment at which they are asked for, with a key that is read anew
//! while it is used. Signing waits for nothing: reading is done by the thread that speaks with the gates.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use fencedlease_wire::gate::{GateKey, GuardedResource, Ticket};
use fencedlease_wire::{Fence, HoldingId};

/// Signs tickets of one resource.
pub struct Tickets {
    resource: GuardedResource,
    file: PathBuf,
    known: RwLock<Known>,
}

/// What the file had when it was last read. The text is a secret too.
#[derive(Default)]
struct Known {
    text: Option<String>,
    key: Option<GateKey>,
    problem: Option<String>,
}

/// Why nothing can be signed, for people.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("cannot sign for gates: {0}")]
pub struct NoKey(String);

impl Tickets {
    /// Tickets of this resource, signed with the first key in this file once [`Self::refresh`] has read it.
    pub fn new(resource: GuardedResource, file: &Path) -> Self {
        Self { resource, file: file.to_owned(), known: RwLock::default() }
    }

    /// Reads the file anew. Where it is missing or has no key, the key that was there before goes on signing.
    /// Waits for the file system.
    pub fn refresh(&self) {
        let read = fs::read_to_string(&self.file);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let problem = match read {
            Ok(text) if known.text.as_ref() == Some(&text) => None,
            Ok(text) => match GateKey::parse_file(&text).map(|keys| keys.into_iter().next()) {
                Ok(key) => {
                    let is_new = known.key.is_some();
                    (known.text, known.key) = (Some(text), key);
                    if is_new {
                        tracing::info!(file = %self.file.display(), "tickets are signed with the key that is there now");
                    }
                    None
                }
                Err(error) => Some(format!("{} has no key: {error}", self.file.display())),
            },
            Err(error) => Some(format!(
                "the key cannot be read from {}: {error}. In a pod it comes from the Secret that the operator makes for the FencedLease: see that it is there",
                self.file.display()
            )),
        };
        if problem.is_some() && problem != known.problem {
            tracing::warn!(detail = problem.as_deref(), "the key for gates cannot be used");
        }
        known.problem = problem;
    }

    /// A header's value for this holder, of now.
    pub fn sign(&self, fence: Fence, holder: &HoldingId) -> Result<String, NoKey> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let Some(key) = &known.key else {
            let never_read = || format!("{} was not read yet", self.file.display());
            return Err(NoKey(known.problem.clone().unwrap_or_else(never_read)));
        };
        let ticket =
            Ticket { resource: self.resource.clone(), fence, holder: holder.clone(), time_ms: unix_ms() };
        Ok(ticket.sign(key))
    }

    /// Whose tickets these are.
    pub fn resource(&self) -> &GuardedResource {
        &self.resource
    }
}

/// Gates compare it with a clock of their own. No lease is judged by it.
fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
