//! What an application engineer is shown, run as it is shown: the programs in `clients/`, under the real
//! sidecar with a real Redis, writing to a real PostgreSQL; and under one that is in trouble.

mod job;
mod program;
pub mod scripted;
mod world;

pub use job::{Ended, Job};
pub use program::Program;
pub use world::{Holder, World};

use std::path::{Path, PathBuf};

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
