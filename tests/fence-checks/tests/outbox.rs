//! The outbox and its relay, with a real PostgreSQL and a real Redis stream.
#![allow(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::mpsc;
use std::thread;

use fencedlease_faults::RedisServer;
use fencedlease_fence_checks::postgresql::PostgresServer;
use postgres::Client;

const RESOURCE: &str = "shop/report";

/// A database with a protected table and an outbox, and a broker.
struct World {
    database: PostgresServer,
    broker: RedisServer,
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../guards/outbox").join(name)
}

/// The SQLSTATE of a statement that fails.
fn state(client: &mut Client, statements: &str) -> String {
    let error = client.batch_execute(statements).unwrap_err();
    client.batch_execute("ROLLBACK").unwrap();
    error.code().unwrap().code().to_owned()
}

/// A holder's whole transaction, but for its end.
fn writes(fence: u64, payload: &str) -> String {
    format!(
        "BEGIN; SELECT fencedlease.use_fence('{RESOURCE}', {fence}, 'holder-{fence}');
         UPDATE ledger SET value = {fence}; SELECT fencedlease_outbox.send('{RESOURCE}', '{payload}');"
    )
}

impl World {
    fn new() -> Self {
        let database = PostgresServer::with_fence_check(&[]).unwrap();
        let mut client = database.connect("installer").unwrap();
        let install = fs::read_to_string(file("install.sql")).unwrap();
        for _ in 0..2 {
            client.batch_execute(&install).unwrap();
        }
        client
            .batch_execute(&format!(
                "CREATE TABLE ledger (value bigint); INSERT INTO ledger VALUES (0);
                 SELECT fencedlease.protect('ledger', '{RESOURCE}');
                 CREATE ROLE app LOGIN; GRANT SELECT, UPDATE ON ledger TO app; SELECT fencedlease.allow_writer('app');
                 GRANT USAGE ON SCHEMA fencedlease_outbox TO app;
                 GRANT EXECUTE ON FUNCTION fencedlease_outbox.send TO app"
            ))
            .unwrap();
        Self { database, broker: RedisServer::start().unwrap() }
    }

    /// A connection as the application's role.
    fn app(&self) -> Client {
        self.database.client("app").user("app").connect(postgres::NoTls).unwrap()
    }

    fn commit(&self, fence: u64, payload: &str) {
        self.app().batch_execute(&format!("{} COMMIT", writes(fence, payload))).unwrap();
    }

    fn relay(&self) -> Command {
        let mut relay = Command::new("/bin/sh");
        relay
            .arg(file("relay.sh"))
            .env("OUTBOX_DATABASE", format!("postgresql://postgres@{}/postgres", self.database.address()))
            .env("OUTBOX_RESOURCE", RESOURCE)
            .env("OUTBOX_REDIS", format!("redis://{}", self.broker.address()));
        relay
    }

    /// What a relay says that does not end well.
    fn complaint(&self) -> String {
        let Output { status, stderr, .. } = self.relay().output().unwrap();
        assert_eq!(status.code(), Some(1), "it ended as if all were well");
        String::from_utf8(stderr).unwrap()
    }

    fn publish(&self) {
        let Output { status, stdout, stderr } = self.relay().output().unwrap();
        assert!(status.success(), "{}", String::from_utf8_lossy(&[stdout, stderr].concat()));
    }

    /// The stream: position, fence and payload of each message.
    fn stream(&self) -> Vec<(u64, u64, String)> {
        let text = self.broker.cli(&["XRANGE", &format!("outbox:{RESOURCE}"), "-", "+"]).unwrap();
        // An id, then four pairs of a name and a value.
        let lines: Vec<&str> = text.lines().collect();
        let message = |lines: &[&str]| {
            assert_eq!((lines[1], lines[3], lines[7]), ("resource", "fence", "payload"), "{lines:?}");
            let position = lines[0].strip_suffix("-0").unwrap().parse().unwrap();
            (position, lines[4].parse().unwrap(), lines[8].to_owned())
        };
        lines.chunks_exact(9).map(message).collect()
    }
}

#[test]
fn a_former_holders_message_is_refused_with_its_write_and_none_goes_without_a_fence() {
    let world = World::new();
    world.commit(1, "of one");
    world.commit(2, "of two");
    let mut late = world.app();
    assert_eq!(state(&mut late, &writes(1, "too late")), "FL001");
    let send = format!("SELECT fencedlease_outbox.send('{RESOURCE}', 'bare')");
    assert_eq!(state(&mut late, &send), "FL002");
    assert_eq!(
        state(&mut late, "INSERT INTO fencedlease_outbox.messages VALUES ('x', 9, 9, 'x', 'x')"),
        "42501"
    );
    late.batch_execute(&format!("{} ROLLBACK", writes(2, "rolled back"))).unwrap();
    world.commit(2, "of two again");
    world.publish();
    let expected = [(1, 1, "of one"), (2, 2, "of two"), (3, 2, "of two again")];
    assert_eq!(world.stream(), expected.map(|(position, fence, text)| (position, fence, text.to_owned())));
}

#[test]
fn a_position_is_not_passed_before_it_is_committed() {
    let world = World::new();
    let mut first = world.app();
    first.batch_execute(&writes(1, "first")).unwrap();
    let (told, second_is_done) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            // The same holder's second transaction takes its position when the first one has ended.
            world.commit(1, "second");
            told.send(()).unwrap();
        });
        world.publish();
        assert_eq!(world.stream(), [], "nothing is committed yet");
        assert!(
            second_is_done.try_recv().is_err(),
            "the second position is taken before the first one's end"
        );
        first.batch_execute("COMMIT").unwrap();
        second_is_done.recv().unwrap();
    });
    world.publish();
    assert_eq!(world.stream().iter().map(|it| it.2.as_str()).collect::<Vec<_>>(), ["first", "second"]);
}

#[test]
fn relays_side_by_side_publish_each_message_once_and_in_order() {
    let world = World::new();
    let mut app = world.app();
    let payload = "a line\nwith a 'quote', a | and an ü";
    for number in 1..=150 {
        let text = format!("{number}: {}", payload.replace('\'', "''"));
        app.batch_execute(&format!("{} COMMIT", writes(1, &text.replace('\n', " ")))).unwrap();
    }
    let relays: Vec<_> = (0..4).map(|_| world.relay().spawn().unwrap()).collect();
    for mut relay in relays {
        assert!(relay.wait().unwrap().success());
    }
    let stream = world.stream();
    assert_eq!(stream.iter().map(|it| it.0).collect::<Vec<_>>(), (1..=150).collect::<Vec<_>>());
    assert_eq!(stream[149].2, format!("150: {}", payload.replace('\n', " ")));
}

#[test]
fn what_redis_has_lost_is_published_again_and_a_redis_that_refuses_is_said() {
    let mut world = World::new();
    world.commit(1, "one");
    world.publish();
    world.broker.kill().unwrap();
    let refused = world.relay().output().unwrap();
    assert!(!refused.status.success());
    world.broker.restart().unwrap();
    world.commit(2, "two");
    world.publish();
    assert_eq!(world.stream().iter().map(|it| it.0).collect::<Vec<_>>(), [1, 2]);
    world.broker.cli(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    world.commit(2, "three");
    let refused = world.relay().output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("after position 2") && said.contains("OOM"), "{said}");
    let remove = fs::read_to_string(file("remove.sql")).unwrap();
    for _ in 0..2 {
        world.database.connect("installer").unwrap().batch_execute(&remove).unwrap();
    }
}

#[test]
fn a_database_that_was_put_back_is_said_and_numbers_on_as_the_page_says() {
    let world = World::new();
    for number in 1..=9 {
        world.commit(1, &number.to_string());
    }
    world.publish();
    let mut client = world.database.connect("restorer").unwrap();
    client
        .batch_execute(
            "DELETE FROM fencedlease_outbox.messages WHERE position > 5;
             UPDATE fencedlease_outbox.positions SET position = 5",
        )
        .unwrap();
    let restored = client.query_one("SELECT clock_timestamp()::text", &[]).unwrap().get::<_, String>(0);
    for behind in [5, 6] {
        let said = world.complaint();
        let numbers = said.contains("is at position 9,") && said.contains(&format!("at {behind}:"));
        assert!(numbers && said.contains("After a restore"), "{said}");
        world.commit(2, "since the restore");
    }
    let page = fs::read_to_string(file("../../docs/messages.md")).unwrap();
    let (_, section) = page.split_once("### After a restore").unwrap();
    let statements = section.split("```").nth(1).unwrap().strip_prefix("sql").unwrap();
    assert!(statements.contains("'2026-01-31 12:00Z'") && statements.contains(&format!("'{RESOURCE}', 9)")));
    client.batch_execute(&statements.replace("2026-01-31 12:00Z", &restored)).unwrap();
    world.commit(2, "and then");
    world.publish();
    let since: Vec<_> = world.stream().split_off(9);
    let texts: Vec<_> = since.iter().map(|(position, _, text)| (*position > 9, text.as_str())).collect();
    assert_eq!(texts, [(true, "since the restore"), (true, "since the restore"), (true, "and then")]);
}
