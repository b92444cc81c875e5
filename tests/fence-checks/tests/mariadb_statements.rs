//! What the triggers of MariaDB meet: every kind of statement, and what takes a check back.
#![allow(clippy::unwrap_used, clippy::panic, reason = "the helpers of tests fail as tests do")]

use std::io::Write as _;

use fencedlease_fence_checks::mariadb::MariadbServer;
use mysql::prelude::Queryable as _;
use mysql::{Conn, LocalInfileHandler};

const USE: &str = "CALL fencedlease.use_fence('shop/report', 42, 'holder')";
const FORGET: &str = "CALL fencedlease.forget_fence()";

/// A server with a protected table in the database `shop`.
fn set_up() -> (MariadbServer, Conn) {
    let server = MariadbServer::with_fence_check(&["--local-infile=1"]).unwrap();
    let mut client = server.connect().unwrap();
    for statement in [
        "CREATE DATABASE shop",
        "USE shop",
        "CREATE TABLE ledger (id INT PRIMARY KEY, value BIGINT) ENGINE = InnoDB",
        "INSERT INTO ledger VALUES (1, 1)",
        "CALL fencedlease.protect('shop', 'ledger', 'shop/report')",
    ] {
        client.query_drop(statement).unwrap();
    }
    (server, client)
}

/// The error number of a statement that fails.
fn error(client: &mut Conn, statement: &str) -> u16 {
    match client.query_drop(statement).unwrap_err() {
        mysql::Error::MySqlError(error) => error.code,
        other => panic!("{statement}: {other}"),
    }
}

#[test]
fn every_row_that_is_written_needs_a_fence_and_passes_with_it() {
    let (_server, mut client) = set_up();
    for write in [
        "INSERT INTO ledger VALUES (2, 2)",
        "INSERT INTO ledger VALUES (1, 2) ON DUPLICATE KEY UPDATE value = 3",
        "REPLACE INTO ledger VALUES (1, 4)",
        "UPDATE ledger SET value = value + 1",
        "DELETE FROM ledger WHERE id = 2",
        "LOAD DATA LOCAL INFILE 'rows' INTO TABLE ledger",
    ] {
        let rows = |_: &[u8], out: &mut mysql::LocalInfile<'_>| out.write_all(b"7\t7\n8\t8\n");
        client.set_local_infile_handler(Some(LocalInfileHandler::new(rows)));
        client.query_drop(FORGET).unwrap();
        assert_eq!(error(&mut client, write), 45002, "{write}");
        client.set_local_infile_handler(Some(LocalInfileHandler::new(rows)));
        client.query_drop(USE).unwrap();
        client.query_drop(write).unwrap();
    }
    let count: Option<u64> = client.query_first("SELECT count(*) FROM ledger WHERE id IN (7, 8)").unwrap();
    assert_eq!(count, Some(2));
}

#[test]
fn a_session_with_a_part_of_a_fence_has_none() {
    let (_server, mut client) = set_up();
    for part in ["@fencedlease_fence = NULL", "@fencedlease_holder = NULL"] {
        client.query_drop(USE).unwrap();
        client.query_drop(format!("SET {part}")).unwrap();
        assert_eq!(error(&mut client, "UPDATE ledger SET value = 2"), 45002, "{part}");
    }
}

#[test]
fn a_statement_that_ignores_errors_is_refused_all_the_same() {
    let (_server, mut client) = set_up();
    client.query_drop("CREATE TABLE other AS SELECT * FROM ledger").unwrap();
    for write in [
        "INSERT IGNORE INTO ledger VALUES (2, 2)",
        "UPDATE IGNORE ledger SET value = 2",
        "DELETE IGNORE FROM ledger",
        "UPDATE ledger JOIN other USING (id) SET ledger.value = 3, other.value = 3",
        "DELETE ledger FROM ledger JOIN other USING (id)",
    ] {
        assert_eq!(error(&mut client, write), 45002, "{write}");
    }
}

#[test]
fn partitions_are_checked_and_truncating_meets_no_trigger_but_needs_a_right() {
    let (server, mut client) = set_up();
    client
        .query_drop(
            "CREATE TABLE parts (id INT) ENGINE = InnoDB PARTITION BY RANGE (id)
             (PARTITION low VALUES LESS THAN (10), PARTITION high VALUES LESS THAN (20))",
        )
        .unwrap();
    client.query_drop("CALL fencedlease.protect('shop', 'parts', 'shop/report')").unwrap();
    for write in ["INSERT INTO parts VALUES (1)", "INSERT INTO parts PARTITION (high) VALUES (11)"] {
        assert_eq!(error(&mut client, write), 45002, "{write}");
    }
    client.query_drop(USE).unwrap();
    client.query_drop("INSERT INTO parts VALUES (1), (11)").unwrap();
    // As the page says: without these rights the application cannot get round the triggers.
    for statement in [
        "CREATE USER app",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON shop.* TO app",
        "GRANT EXECUTE ON PROCEDURE fencedlease.use_fence TO app",
    ] {
        client.query_drop(statement).unwrap();
    }
    let mut app = server.connect_as("app").unwrap();
    app.query_drop("USE shop").unwrap();
    for forbidden in [
        "TRUNCATE ledger",
        "ALTER TABLE parts TRUNCATE PARTITION low",
        "DROP TABLE ledger",
        "UPDATE fencedlease.fences SET fence = 1",
        "CALL fencedlease.unprotect('shop', 'ledger')",
    ] {
        let number = error(&mut app, forbidden);
        assert!([1142, 1370].contains(&number), "{forbidden}: {number}");
    }
    app.query_drop(USE).unwrap();
    app.query_drop("UPDATE ledger SET value = 9").unwrap();
}

#[test]
fn a_refused_statement_leaves_the_transaction_open_and_nothing_of_it_behind() {
    let (server, mut client) = set_up();
    client.query_drop(USE).unwrap();
    let mut newer = server.connect().unwrap();
    newer.query_drop("CALL fencedlease.use_fence('shop/report', 43, 'newer')").unwrap();
    client.query_drop("BEGIN").unwrap();
    assert_eq!(error(&mut client, "UPDATE shop.ledger SET value = 2"), 45001);
    client.query_drop("COMMIT").unwrap();
    let value: Option<i64> = client.query_first("SELECT value FROM shop.ledger").unwrap();
    assert_eq!(value, Some(1));
}

#[test]
fn a_child_that_foreign_keys_change_is_protected_only_with_its_parent() {
    let (_server, mut client) = set_up();
    client
        .query_drop("CREATE TABLE child (id INT, FOREIGN KEY (id) REFERENCES ledger (id) ON DELETE CASCADE)")
        .unwrap();
    assert_eq!(error(&mut client, "CALL fencedlease.protect('shop', 'child', 'shop/child')"), 45003);
    client.query_drop("CALL fencedlease.protect('shop', 'child', 'shop/report')").unwrap();
}

#[test]
fn a_session_that_a_pool_resets_has_no_fence() {
    let (_server, mut client) = set_up();
    client.query_drop(USE).unwrap();
    client.query_drop("UPDATE shop.ledger SET value = 2").unwrap();
    client.reset().unwrap();
    assert_eq!(error(&mut client, "UPDATE shop.ledger SET value = 3"), 45002);
}

#[test]
fn installing_again_forgets_nothing_and_removing_twice_is_fine() {
    let (server, mut client) = set_up();
    client.query_drop(USE).unwrap();
    server.install().unwrap();
    assert_eq!(error(&mut client, "CALL fencedlease.use_fence('shop/report', 41, 'older')"), 45001);
    assert_eq!(error(&mut client, "UPDATE shop.ledger SET value = 2"), 45002);
    server.remove().unwrap();
    server.remove().unwrap();
    client.query_drop("UPDATE shop.ledger SET value = 2").unwrap();
}
