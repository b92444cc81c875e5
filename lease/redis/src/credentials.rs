//! Who are we to Redis? Asked anew at each connection, so that a changed password needs no restart.

use std::fmt;
use std::pin::Pin;

/// User and password. Its `Debug` shows neither.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Credentials {
    /// The user, if not Redis's default one.
    pub username: Option<String>,
    /// The password, if one is needed.
    pub password: Option<String>,
}

/// Why there are no credentials, for people: where they were looked for, and what to do.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct CredentialError(pub String);

/// What a provider promises.
pub type CredentialFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Credentials, CredentialError>> + Send + 'a>>;

/// Knows user and password.
pub trait CredentialProvider: Send + Sync {
    /// The present ones. Asked within the deadline of a call, so what is known already should be answered at
    /// once: a holder that must reconnect cannot wait for a file or for the operator.
    fn credentials(&self) -> CredentialFuture<'_>;

    /// Redis refused the present ones: they should be fetched anew before they are asked for again.
    fn rejected(&self) {}
}

// === impl Credentials ===

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}

/// Credentials that never change provide themselves.
impl CredentialProvider for Credentials {
    fn credentials(&self) -> CredentialFuture<'_> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }
}
