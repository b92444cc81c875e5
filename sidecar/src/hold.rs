//! *hold*: keeps the lease and tells the guards.

use std::process::ExitCode;

use fencedlease_wire::exit;

use crate::args::HoldArgs;

/// Runs until the pod ends.
pub fn run(args: HoldArgs) -> ExitCode {
    drop(args);
    ExitCode::from(exit::BAD_SETTINGS)
}
