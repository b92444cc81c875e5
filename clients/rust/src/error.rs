//! What can go wrong between an application and its sidecar.

use std::io;
use std::path::PathBuf;

use fencedlease_wire::socket::{CommitRefusal, LeaseView};

/// Why the sidecar could not be asked, or did not say yes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The environment names no socket.
    #[error("FENCEDLEASE_SOCKET is not set: run this in a guarded container, or under `fencedlease exec`")]
    NoSocket,
    /// Nobody listens on the socket. To a holder that means: stop.
    #[error("cannot connect to {}: the sidecar is gone, or this is not a guarded container", path.display())]
    Connection {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The exchange broke off.
    #[error("the sidecar's answer broke off")]
    Exchange(#[from] hyper::Error),
    /// No answer in time.
    #[error("the sidecar did not answer within {0:?}")]
    Silent(std::time::Duration),
    /// The commit may not start. What was prepared must not be written.
    #[error("the commit may not start ({reason:?}): {message}")]
    NotAllowed {
        /// Why, for programs.
        reason: CommitRefusal,
        /// Why, for people.
        message: String,
    },
    /// This process does not hold the lease.
    #[error("the lease is not held here: {0:?}")]
    NotHeld(Box<LeaseView>),
    /// The sidecar refused the request.
    #[error("the sidecar answered {status} {code}: {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// A stable word, such as `NotActive`.
        code: String,
        /// What was wrong and what to do.
        message: String,
    },
    /// The answer has another shape, as that of another version may.
    #[error("the sidecar's answer has another shape: {text:?}")]
    Shape {
        /// The answer, or its beginning.
        text: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// An answer that no sidecar of this version gives.
    #[error("the sidecar's answer makes no sense: {0}")]
    Unexpected(&'static str),
    /// A line of the events is longer than any that the sidecar writes.
    #[error("a line of the events has more than {0} bytes")]
    LineTooLong(usize),
}
