//! PostgreSQL under the conformance suite: every way to compare fences passes, and what is broken does not.
#![allow(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::sync::Arc;

use fencedlease_fence_checks::postgresql::{Isolation, PostgresCheck, PostgresServer, Shape};
use fencedlease_fence_checks::suite;

/// Commits that are not waited for stay in memory for long, so that a crash loses them surely.
const LAZY_WRITER: &str = "wal_writer_delay=10s";

fn server() -> Arc<PostgresServer> {
    Arc::new(PostgresServer::with_fence_check(&[LAZY_WRITER]).unwrap())
}

fn conforms(shape: Shape) {
    let server = server();
    for isolation in Isolation::ALL {
        let check = PostgresCheck::new(&server, shape, isolation).unwrap();
        let report = suite::run(&check, &format!("{isolation:?}").to_lowercase());
        assert!(report.failed.is_empty() && report.passed > 10, "{shape:?}, {isolation:?}: {report}");
    }
}

#[test]
fn the_conditional_write_of_a_row_conforms() {
    conforms(Shape::OwnRow);
}

#[test]
fn a_table_of_fences_in_the_same_transaction_conforms() {
    conforms(Shape::OwnTable);
}

#[test]
fn the_trigger_conforms_when_a_transaction_is_told_its_fence() {
    conforms(Shape::Transaction);
}

#[test]
fn the_trigger_conforms_when_a_session_is_told_its_fence() {
    conforms(Shape::Session);
}

#[test]
fn broken_checks_fail_the_case_for_them() {
    let server = server();
    for (shape, case) in [
        (Shape::BareLess, "equal_of_the_same_holder_passes"),
        (Shape::NoOwner, "equal_of_another_is_refused"),
        (Shape::TwoTransactions, "eight_writers_race"),
        (Shape::AsynchronousCommit, "the_memory_survives_a_crash"),
    ] {
        let check = PostgresCheck::new(&server, shape, Isolation::ReadCommitted).unwrap();
        let report = suite::run_until_failed(&check, case, &format!("{shape:?}").to_lowercase());
        assert!(report.failed_names().contains(&case), "{shape:?} passed {case} 20 times: {report}");
    }
}
