//! What can go wrong while a cluster is brought up or down, with what to do about it.

use std::io;
use std::path::{Path, PathBuf};

/// A failure of the harness.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder could not be read, written or removed.
    #[error("cannot {action} {}", path.display())]
    File {
        /// What was tried, as a verb: "read", "write".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A program could not be started at all.
    #[error("cannot start {program}")]
    Spawn {
        /// The program as it was named.
        program: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A program ended with a failure.
    #[error("`{command}` ended with {status}\n{output}")]
    Command {
        /// The command line.
        command: String,
        /// Exit code or signal.
        status: String,
        /// The last lines that it printed.
        output: String,
    },
    /// This machine lacks something that a cluster needs.
    #[error("{missing}. {remedy}")]
    Missing {
        /// What is missing or wrong, with the value found.
        missing: String,
        /// The next step.
        remedy: String,
    },
    /// A component ended while the cluster was being started.
    #[error("{component} on {machine} ended ({how}); the last lines of {}:\n{tail}", log.display())]
    ComponentEnded {
        /// The component's name.
        component: String,
        /// The simulated machine it ran on.
        machine: String,
        /// Exit code or signal.
        how: String,
        /// Its log.
        log: PathBuf,
        /// The end of that log.
        tail: String,
    },
    /// Something did not happen in time.
    #[error("{what} did not happen within {seconds} s; {hint}")]
    Timeout {
        /// What was waited for.
        what: String,
        /// For how long, in seconds.
        seconds: u64,
        /// The state that was seen last, or where to look.
        hint: String,
    },
    /// The first process of a simulated machine refused a request.
    #[error("{machine} refused: {message}")]
    Refused {
        /// The simulated machine.
        machine: String,
        /// Its answer.
        message: String,
    },
    /// A certificate could not be made.
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// A document that the harness wrote or received is not what it should be.
    #[error("cannot read {what}")]
    Document {
        /// Which document.
        what: String,
        /// Where it breaks.
        #[source]
        source: serde_json::Error,
    },
}

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Wraps an error of the file system, with the path that it is about.
    pub fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::File { action, path, source }
    }

    /// Something is missing on this machine.
    pub fn missing(missing: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Missing { missing: missing.into(), remedy: remedy.into() }
    }
}
