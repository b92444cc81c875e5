//! *hold*: keeps the lease and tells the guards.
//!
//! The main thread only waits for the end of the others: `watch` judges every instant and speaks with the
//! guards, `renewals` speaks with Redis, `files` writes, and `service` speaks with everybody else.

pub mod admin;
pub mod credentials;
pub mod facts;
pub mod files;
pub mod gates;
mod http;
pub mod log;
pub mod mailbox;
pub mod metrics;
pub mod news;
pub mod note;
pub mod operator;
pub mod pod;
mod private;
pub mod renewals;
pub mod report;
pub mod service;
pub mod settings;
pub mod socket;
mod start;
pub mod supervise;
pub mod tickets;
pub mod watch;

use std::fs::File;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use self::start::Refusal;
use crate::args::HoldArgs;

/// Where the kubelet reads why the container ended.
const TERMINATION_LOG: &str = "/dev/termination-log";
/// How long the other threads may take to finish when the watch has ended in order.
const FAREWELL: Duration = report::LAST_REPORTS.saturating_add(Duration::from_millis(500));
/// How long the last log lines may take.
const LAST_LINES: Duration = Duration::from_millis(200);

/// Runs until the pod ends.
pub fn run(args: &HoldArgs) -> ExitCode {
    let (mut threads, log) = match start::start(args) {
        Ok(started) => started,
        Err(refusal) => return refuse(&refusal),
    };
    let end = threads.decisive_end(start::WATCH);
    let (code, message) = match (end.thread, end.outcome) {
        (start::WATCH, Ok(message)) => {
            threads.all_ended(FAREWELL);
            tracing::info!(detail = message, "ends in order");
            (ExitCode::SUCCESS, message)
        }
        (thread, outcome) => {
            let reason = outcome.unwrap_or_else(|error| error);
            let message = format!("thread {thread} ended: {reason}");
            tracing::error!(detail = message, "ends, and leaves the guards to their own instants");
            (ExitCode::FAILURE, message)
        }
    };
    log.wait(LAST_LINES);
    note_termination(&message);
    code
}

fn refuse(refusal: &Refusal) -> ExitCode {
    let message = refusal.to_string();
    // Standard error that nobody reads is no reason not to end.
    let _ = writeln!(std::io::stderr(), "{message}");
    note_termination(&message);
    ExitCode::from(refusal.exit_code())
}

/// For people who ask why the container ended. Where there is no such file nobody asks.
fn note_termination(message: &str) {
    if let Ok(mut file) = File::options().append(true).open(TERMINATION_LOG) {
        let _ = writeln!(file, "{message}");
    }
}
