//! What a test on a cluster needs: a namespace of its own, and waiting with a deadline that, when it is
//! missed, shows the state of things.

mod namespace;
mod report;
mod wait;

pub use namespace::TempNamespace;
pub use report::report;
pub use wait::{Missed, PATIENCE, eventually};
