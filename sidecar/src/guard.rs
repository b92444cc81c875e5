//! *guard*.
use std::process::ExitCode;

use crate::args::GuardArgs;

/// Runs.
pub fn run(_args: GuardArgs) -> ExitCode {
    ExitCode::FAILURE
}
