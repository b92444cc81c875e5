//! Clients that share one server connection, through a real PgBouncer in transaction mode: nobody writes with
//! another one's fence.
#![allow(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use fencedlease_fence_checks::postgresql::{PgBouncer, PostgresServer};
use postgres::{Client, NoTls};

fn set_up() -> (PostgresServer, PgBouncer) {
    let server = PostgresServer::with_fence_check(&[]).unwrap();
    let mut client = server.connect("installer").unwrap();
    client
        .batch_execute(
            "CREATE TABLE ledger (value bigint); INSERT INTO ledger VALUES (1);
             SELECT fencedlease.protect('ledger', 'shop/report')",
        )
        .unwrap();
    let pool = PgBouncer::start(&server).unwrap();
    (server, pool)
}

fn state(client: &mut Client, statement: &str) -> String {
    let error = client.batch_execute(statement).unwrap_err();
    error.code().map_or_else(|| error.to_string(), |code| code.code().to_owned())
}

/// The server process that works for this client now.
fn server_process(client: &mut Client) -> i32 {
    client.simple_query("SELECT pg_backend_pid()").unwrap();
    let messages = client.simple_query("SELECT pg_backend_pid()").unwrap();
    let row = messages.iter().find_map(|message| match message {
        postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    });
    row.unwrap().parse().unwrap()
}

#[test]
fn a_transactions_fence_ends_with_it_on_a_shared_connection() {
    let (_server, pool) = set_up();
    let mut one = pool.client("one").connect(NoTls).unwrap();
    let mut two = pool.client("two").connect(NoTls).unwrap();
    assert_eq!(server_process(&mut one), server_process(&mut two), "they share it");
    let used =
        "BEGIN; SELECT fencedlease.use_fence('shop/report', 42, 'one'); UPDATE ledger SET value = 2; COMMIT";
    one.batch_execute(used).unwrap();
    assert_eq!(state(&mut two, "UPDATE ledger SET value = 3"), "FL002");
    assert_eq!(state(&mut one, "UPDATE ledger SET value = 3"), "FL002");
    one.batch_execute(used).unwrap();
}

#[test]
fn a_sessions_fence_is_refused_to_the_next_client_of_the_connection() {
    let (_server, pool) = set_up();
    let mut holder = pool.client("holder").connect(NoTls).unwrap();
    let mut other = pool.client("other").connect(NoTls).unwrap();
    assert_eq!(server_process(&mut holder), server_process(&mut other), "they share it");
    holder.batch_execute("SELECT fencedlease.use_fence_for_session('shop/report', 42, 'holder')").unwrap();
    holder.batch_execute("UPDATE ledger SET value = 2").unwrap();
    assert_eq!(state(&mut other, "UPDATE ledger SET value = 3"), "FL002");
    holder.batch_execute("UPDATE ledger SET value = 4").unwrap();
}
