//! What the trigger of PostgreSQL meets: every kind of statement, and what takes a check back.
#![allow(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::io::Write as _;

use fencedlease_fence_checks::postgresql::PostgresServer;
use postgres::Client;

const USE: &str = "SELECT fencedlease.use_fence('shop/report', 42, 'holder')";

/// A server with a protected table and a child of it that another resource protects.
fn set_up() -> (PostgresServer, Client) {
    let server = PostgresServer::with_fence_check(&["max_prepared_transactions=2"]).unwrap();
    let mut client = server.connect("application").unwrap();
    client
        .batch_execute(
            "CREATE TABLE ledger (id int PRIMARY KEY, value bigint);
             INSERT INTO ledger VALUES (1, 1);
             CREATE TABLE child (id int REFERENCES ledger ON DELETE CASCADE);
             SELECT fencedlease.protect('ledger', 'shop/report'), fencedlease.protect('child', 'shop/child')",
        )
        .unwrap();
    (server, client)
}

/// The SQLSTATE that a statement fails with.
fn state(client: &mut Client, statement: &str) -> String {
    let error = client.batch_execute(statement).unwrap_err();
    error.code().map_or_else(|| error.to_string(), |code| code.code().to_owned())
}

/// The same in a transaction that has used its fence, rolled back afterwards.
fn state_with_fence(client: &mut Client, statement: &str) -> String {
    client.batch_execute(&format!("BEGIN; {USE}")).unwrap();
    let state = state(client, statement);
    client.batch_execute("ROLLBACK").unwrap();
    state
}

#[test]
fn every_kind_of_write_needs_a_fence_and_passes_with_it() {
    let (server, mut client) = set_up();
    for write in [
        "INSERT INTO ledger VALUES (2, 2)",
        "UPDATE ledger SET value = 3",
        "DELETE FROM ledger WHERE id = 99",
        "MERGE INTO ledger USING (VALUES (1)) AS it (id) ON ledger.id = it.id WHEN MATCHED THEN UPDATE SET value = 5",
        "WITH it AS (UPDATE ledger SET value = 4 RETURNING 1) SELECT FROM it",
        "COPY ledger FROM PROGRAM 'echo \"7\t7\"'",
    ] {
        assert_eq!(state(&mut client, write), "FL002", "{write}");
        client.batch_execute(&format!("BEGIN; {USE}; {write}; ROLLBACK")).unwrap();
    }
    assert_eq!(state(&mut client, "TRUNCATE ledger CASCADE"), "FL002");
    let mut copy = client.copy_in("COPY ledger FROM STDIN").unwrap();
    let ended = copy.write_all(b"8\t8\n").err().map_or_else(|| copy.finish().map(|_| ()), |_| Ok(()));
    // A refusal that is faster than the data ends the client's copy without a code, and its connection is of no use.
    if let Some(code) = ended.err().as_ref().and_then(postgres::Error::code) {
        assert_eq!(code.code(), "FL002");
    }
    let mut client = server.connect("application").unwrap();
    let copied = client.query("SELECT FROM ledger WHERE id = 8", &[]).unwrap();
    assert!(copied.is_empty(), "it was copied without a fence");
}

#[test]
fn a_cascade_needs_the_fence_of_the_childs_resource_too() {
    let (_server, mut client) = set_up();
    assert_eq!(state_with_fence(&mut client, "DELETE FROM ledger"), "FL002");
    let both = format!("BEGIN; {USE}; SELECT fencedlease.use_fence('shop/child', 1, 'other')");
    client.batch_execute(&format!("{both}; DELETE FROM ledger; TRUNCATE ledger CASCADE; COMMIT")).unwrap();
}

#[test]
fn rolling_back_to_a_savepoint_takes_the_check_back() {
    let (_server, mut client) = set_up();
    client.batch_execute("BEGIN; SAVEPOINT before").unwrap();
    client.batch_execute(&format!("{USE}; UPDATE ledger SET value = 2; ROLLBACK TO before")).unwrap();
    assert_eq!(state(&mut client, "UPDATE ledger SET value = 3"), "FL002");
}

#[test]
fn present_and_future_partitions_are_protected_by_any_name() {
    let (_server, mut client) = set_up();
    client
        .batch_execute(
            "CREATE TABLE parts (id int) PARTITION BY RANGE (id);
             CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
             SELECT fencedlease.protect('parts', 'shop/report');
             CREATE TABLE part_2 PARTITION OF parts FOR VALUES FROM (10) TO (20)",
        )
        .unwrap();
    for write in [
        "INSERT INTO parts VALUES (1)",
        "INSERT INTO part_1 VALUES (1)",
        "INSERT INTO part_2 VALUES (11)",
        "TRUNCATE parts",
        "TRUNCATE part_1",
    ] {
        assert_eq!(state(&mut client, write), "FL002", "{write}");
    }
    // As the page says: a partition that was added later only after `protect` is called again.
    client.batch_execute("TRUNCATE part_2; SELECT fencedlease.protect('parts', 'shop/report')").unwrap();
    assert_eq!(state(&mut client, "TRUNCATE part_2"), "FL002");
    client.batch_execute(&format!("BEGIN; {USE}; INSERT INTO parts VALUES (1), (11); COMMIT")).unwrap();
}

#[test]
fn a_child_that_is_protected_alone_is_checked_when_its_parent_is_named_too() {
    let (_server, mut client) = set_up();
    client
        .batch_execute(
            "CREATE TABLE parent (id int); CREATE TABLE heir () INHERITS (parent); INSERT INTO heir VALUES (1);
             CREATE TABLE parts (id int) PARTITION BY RANGE (id);
             CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
             CREATE TABLE part_2 (id int);
             SELECT fencedlease.protect(it, 'shop/report') FROM unnest('{heir,part_1,part_2}'::regclass[]) AS it;
             ALTER TABLE parts ATTACH PARTITION part_2 FOR VALUES FROM (10) TO (20);
             SELECT fencedlease.protect('part_2', 'shop/report')",
        )
        .unwrap();
    for write in [
        "UPDATE parent SET id = 2",
        "DELETE FROM parent",
        "TRUNCATE parent",
        "INSERT INTO heir VALUES (3)",
        "INSERT INTO parts VALUES (1)",
        "INSERT INTO parts VALUES (11)",
        "TRUNCATE parts",
    ] {
        assert_eq!(state(&mut client, write), "FL002", "{write}");
        client.batch_execute(&format!("BEGIN; {USE}; {write}; ROLLBACK")).unwrap();
    }
}

#[test]
fn a_cascade_runs_nothing_of_the_search_path_with_the_owners_rights() {
    let (_server, mut client) = set_up();
    client
        .batch_execute(
            "CREATE ROLE owner; ALTER TABLE ledger OWNER TO owner; ALTER TABLE child OWNER TO owner;
             CREATE ROLE app; GRANT ALL ON ledger TO app; CREATE SCHEMA trap AUTHORIZATION app;
             SELECT fencedlease.allow_writer('app'), fencedlease.allow_writer('owner'); SET ROLE app;
             GRANT USAGE ON SCHEMA trap TO PUBLIC;
             CREATE FUNCTION trap.current_setting(text, boolean) RETURNS text LANGUAGE plpgsql
                 AS $$ BEGIN RAISE 'as %', current_user USING ERRCODE = 'TRAP0'; END $$;
             CREATE FUNCTION trap.same(text, text) RETURNS boolean LANGUAGE plpgsql
                 AS $$ BEGIN RAISE 'as %', current_user USING ERRCODE = 'TRAP1'; END $$;
             CREATE OPERATOR trap.= (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.same);
             CREATE OPERATOR trap.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.same);
             SET search_path = trap, pg_catalog, public",
        )
        .unwrap();
    assert_eq!(state_with_fence(&mut client, "DELETE FROM ledger"), "FL002");
}

#[test]
fn no_fence_at_all_is_refused_where_it_is_compared() {
    let (_server, mut client) = set_up();
    client.batch_execute(USE).unwrap();
    for (fence, holder) in [("NULL", "'holder'"), ("42", "NULL"), ("NULL", "NULL")] {
        let compare = format!("SELECT fencedlease.admit('shop/report', {fence}, {holder})");
        assert_eq!(state(&mut client, &compare), "FL001", "{compare}");
    }
}

#[test]
fn a_sessions_fence_is_no_fence_for_another_application_name_nor_after_a_reset() {
    let (server, mut client) = set_up();
    let told = "SELECT fencedlease.use_fence_for_session('shop/report', 42, 'holder')";
    assert_eq!(state(&mut client, told), "FL002");
    client.batch_execute(&format!("SET application_name = 'holder'; {told}")).unwrap();
    client.batch_execute("UPDATE ledger SET value = 2").unwrap();
    client.batch_execute("SET application_name = 'another'").unwrap();
    assert_eq!(state(&mut client, "UPDATE ledger SET value = 3"), "FL002");
    client.batch_execute("SET application_name = 'holder'").unwrap();
    client.batch_execute("DISCARD ALL").unwrap();
    assert_eq!(state(&mut client, "SET application_name = 'holder'; UPDATE ledger SET value = 3"), "FL002");

    let mut config = server.client("holder");
    config.options("-c fencedlease.session=shop/report:42:holder");
    let mut environment = config.connect(postgres::NoTls).unwrap();
    environment.batch_execute("UPDATE ledger SET value = 4").unwrap();
}

#[test]
fn a_snapshot_from_before_the_raise_lets_no_former_holder_through() {
    let (server, mut client) = set_up();
    client.batch_execute(USE).unwrap();
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        client.batch_execute(&format!("BEGIN ISOLATION LEVEL {level}; SELECT FROM ledger")).unwrap();
        let newer = "SELECT fencedlease.use_fence('shop/report', (SELECT max(fence) + 1 FROM fencedlease.fences), 'n')";
        server.connect("newer").unwrap().batch_execute(newer).unwrap();
        assert_eq!(state(&mut client, USE), "40001", "{level}");
        client.batch_execute("ROLLBACK").unwrap();
        assert_eq!(state(&mut client, USE), "FL001");
    }
}

#[test]
fn a_raise_waits_for_a_prepared_transaction_and_then_shuts_the_door() {
    let (server, mut client) = set_up();
    client
        .batch_execute(&format!("BEGIN; {USE}; UPDATE ledger SET value = 2; PREPARE TRANSACTION 'one'"))
        .unwrap();
    let mut newer = server.connect("newer").unwrap();
    let raise = "SELECT fencedlease.use_fence('shop/report', 43, 'newer')";
    assert_eq!(state(&mut newer, &format!("SET lock_timeout = '200ms'; {raise}")), "55P03");
    client.batch_execute("COMMIT PREPARED 'one'").unwrap();
    newer.batch_execute(raise).unwrap();
    assert_eq!(state(&mut client, USE), "FL001");
}

#[test]
fn an_applications_role_can_use_fences_but_neither_lower_nor_forget_one() {
    let (_server, mut client) = set_up();
    client.batch_execute("CREATE ROLE app; GRANT ALL ON ledger TO app; SET ROLE app").unwrap();
    assert_eq!(state(&mut client, "UPDATE ledger SET value = 2"), "42501");
    client.batch_execute("RESET ROLE; SELECT fencedlease.allow_writer('app'); SET ROLE app").unwrap();
    client.batch_execute(&format!("BEGIN; {USE}; UPDATE ledger SET value = 2; COMMIT")).unwrap();
    for forbidden in [
        "UPDATE fencedlease.fences SET fence = 1",
        "DELETE FROM fencedlease.fences",
        "TRUNCATE fencedlease.fences",
        "SELECT fencedlease.unprotect('ledger')",
        "ALTER TABLE ledger DISABLE TRIGGER fencedlease_write",
    ] {
        assert_eq!(state(&mut client, forbidden), "42501", "{forbidden}");
    }
}

#[test]
fn tables_are_protected_by_the_installer_who_is_a_member_of_their_owner_and_by_no_other_owner() {
    let server = PostgresServer::start(&[]).unwrap();
    let mut client = server.connect("application").unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guards/postgresql/install.sql");
    let install = std::fs::read_to_string(file).unwrap();
    client
        .batch_execute(&format!(
            "CREATE ROLE tenant; CREATE ROLE stranger; CREATE ROLE installer; GRANT tenant TO installer;
             GRANT CREATE ON DATABASE postgres TO installer; GRANT CREATE ON SCHEMA public TO tenant, stranger;
             SET ROLE tenant; CREATE TABLE ledger (value bigint); RESET ROLE;
             SET ROLE stranger; CREATE TABLE theirs (value bigint); RESET ROLE;
             SET ROLE installer; {install}"
        ))
        .unwrap();
    let refused = |client: &mut Client, role: &str, statement: &str| {
        let error = client.batch_execute(&format!("SET ROLE {role}; {statement}")).unwrap_err();
        client.batch_execute("RESET ROLE").unwrap();
        let error = error.as_db_error().unwrap().clone();
        assert_eq!(error.code().code(), "42501", "{error}");
        error.message().to_owned()
    };
    let protect = |table: &str| format!("SELECT fencedlease.protect('{table}', 'shop/report')");
    let said = refused(&mut client, "tenant", &protect("ledger"));
    assert_eq!(said, "permission denied for schema fencedlease");
    client.batch_execute("SET ROLE installer; SELECT fencedlease.allow_writer('tenant')").unwrap();
    let said = refused(&mut client, "tenant", &protect("ledger"));
    assert_eq!(said, "permission denied for function protect");
    let said = refused(&mut client, "installer", &protect("theirs"));
    assert_eq!(said, "permission denied for table theirs");
    client.batch_execute(&format!("SET ROLE installer; {}; SET ROLE tenant", protect("ledger"))).unwrap();
    assert_eq!(state(&mut client, "INSERT INTO ledger VALUES (1)"), "FL002");
    client.batch_execute(&format!("BEGIN; {USE}; INSERT INTO ledger VALUES (1); COMMIT")).unwrap();
    client.batch_execute("SET ROLE installer; SELECT fencedlease.unprotect('ledger')").unwrap();
    client.batch_execute("SET ROLE tenant; INSERT INTO ledger VALUES (2)").unwrap();
}

#[test]
fn installing_again_forgets_nothing_and_removing_twice_is_fine() {
    let (server, mut client) = set_up();
    client.batch_execute(USE).unwrap();
    server.install().unwrap();
    assert_eq!(state(&mut client, "SELECT fencedlease.use_fence('shop/report', 41, 'older')"), "FL001");
    assert_eq!(state(&mut client, "UPDATE ledger SET value = 2"), "FL002");
    server.remove().unwrap();
    server.remove().unwrap();
    client.batch_execute("UPDATE ledger SET value = 2").unwrap();
}

#[test]
fn names_that_are_wrong_are_told_apart() {
    let (_server, mut client) = set_up();
    assert_eq!(state(&mut client, "SELECT fencedlease.use_fence('shop/reprot', 42, 'holder')"), "FL004");
    assert_eq!(state(&mut client, "SELECT fencedlease.use_fence('report', 42, 'holder')"), "FL003");
    assert_eq!(state(&mut client, "SELECT fencedlease.protect('ledger', 'shop/other')"), "FL003");
    client.batch_execute("CREATE VIEW seen AS SELECT FROM ledger").unwrap();
    assert_eq!(state(&mut client, "SELECT fencedlease.protect('seen', 'shop/report')"), "42809");
}
