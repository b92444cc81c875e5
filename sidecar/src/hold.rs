//! *hold*: keeps the lease and tells the guards.

// `operator` (the endpoint's client), `credentials` (for the Redis agent), `report` (the queue of reports),
// `socket` (lease.sock over `watch::Receiver<Arc<Published>>`) are complete: the service only has to start them.
pub mod credentials;
pub mod operator;
pub mod pod;
mod private;
pub mod report;
pub mod socket;

use std::process::ExitCode;

use fencedlease_wire::exit;

use crate::args::HoldArgs;

/// Runs until the pod ends.
pub fn run(args: HoldArgs) -> ExitCode {
    drop(args);
    ExitCode::from(exit::BAD_SETTINGS)
}
