//! The lease in Redis: the scripts, what they answer, and the loop that sends them.
//!
//! Nothing here decides whether a lease is held: that is `fencedlease-core`. Every call has one deadline over
//! connecting, asking and answering, and no call is ever repeated.

pub mod agent;
mod client;
mod connection;
mod credentials;
mod error;
mod keys;
mod outcome;
pub mod reply;
mod rights;
mod script;
mod tls;

pub use client::{Client, Place};
pub use connection::Server;
pub use credentials::{CredentialError, CredentialFuture, CredentialProvider, Credentials};
pub use error::{CallError, Refusal};
pub use keys::LeaseKeys;
pub use outcome::renewal_outcome;
pub use reply::{AcquireReply, Inspection, ReleaseReply, RenewReply, Sequence};
pub use rights::{COMMANDS, Rights};
pub use script::{Acquire, Release, Renew};
pub use tls::{Identity, Tls, TlsError};
