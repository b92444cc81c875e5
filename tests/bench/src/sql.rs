//! What do the triggers of `guards/` cost, beside the same table without them?

use std::time::{Duration, Instant};

use fencedlease_fence_checks::mariadb::MariadbServer;
use fencedlease_fence_checks::postgresql::PostgresServer;
use mysql::prelude::Queryable as _;
use postgres::NoTls;

use crate::figures::{median, ms};
use crate::table::{Bound, Line, Table};

const RESOURCE: &str = "shop/report";
const HOLDER: &str = "bench";
/// How many turns each table has.
const TURNS: usize = 15;
/// How many writes of a transaction of their own make a turn, and how many a transaction of many has.
const WRITES: u32 = 100;
/// How many rows one statement inserts.
const ROWS: u32 = 1000;

/// Which of two tables that are alike but for the trigger.
type Name = &'static str;
const TABLES: [Name; 2] = ["plain", "guarded"];

/// A database whose session has been told its fence.
trait Database {
    /// One statement, in a transaction of its own if none was begun.
    fn run(&mut self, statement: &str) -> anyhow::Result<()>;

    /// What begins a transaction that has the fence.
    fn begin(&self, table: Name) -> String;

    /// Where so many numbers come from in a SELECT, and what one of them is called.
    fn numbers(&self) -> (String, &'static str);
}

struct Postgres(postgres::Client);

struct Mariadb(mysql::Conn);

/// Measures both databases.
pub fn measure() -> anyhow::Result<Table> {
    let mut lines = Vec::new();
    let server = PostgresServer::with_fence_check(&[])?;
    lines.extend(cases("PostgreSQL", &mut Postgres::prepare(&server)?)?);
    drop(server);
    let server = MariadbServer::with_fence_check(&[])?;
    lines.extend(cases("MariaDB", &mut Mariadb::prepare(&server)?)?);
    let title =
        format!("A write to a protected table, beside one without the trigger; medians of {TURNS} pairs");
    Ok(Table { title, lines })
}

fn cases(called: &str, database: &mut dyn Database) -> anyhow::Result<[Line; 3]> {
    let update = |table| format!("UPDATE {table} SET value = value + 1 WHERE id = 1");
    let alone = pairs(|table| {
        for _ in 0..WRITES {
            database.run(&update(table))?;
        }
        Ok(WRITES)
    })?;
    let together = pairs(|table| {
        database.run(&database.begin(table))?;
        for _ in 0..WRITES {
            database.run(&update(table))?;
        }
        database.run("COMMIT")?;
        Ok(WRITES)
    })?;
    let bulk = pairs(|table| {
        let (numbers, number) = database.numbers();
        database.run(&format!("INSERT INTO {table} SELECT {number} + 1000000, 0 FROM {numbers}"))?;
        database.run(&format!("DELETE FROM {table} WHERE id > 1000000"))?;
        Ok(ROWS)
    })?;
    Ok([
        line(format!("{called}, each write a transaction"), &alone),
        line(format!("{called}, {WRITES} writes in a transaction"), &together),
        line(format!("{called}, {ROWS} rows in and out again, a row"), &bulk),
    ])
}

/// How long one write to either table took on average, turn by turn.
fn pairs(mut turn: impl FnMut(Name) -> anyhow::Result<u32>) -> anyhow::Result<Vec<[Duration; 2]>> {
    let mut one = |table| -> anyhow::Result<Duration> {
        let start = Instant::now();
        let writes = turn(table)?;
        Ok(start.elapsed() / writes)
    };
    // What is read, compiled and cached at the first time is not measured.
    for table in TABLES {
        one(table)?;
    }
    (0..TURNS).map(|_| Ok([one(TABLES[0])?, one(TABLES[1])?])).collect()
}

fn line(what: String, pairs: &[[Duration; 2]]) -> Line {
    let side = |side: usize| median(&pairs.iter().map(|pair| ms(pair[side])).collect::<Vec<_>>());
    let ratios: Vec<f64> = pairs.iter().map(|[plain, guarded]| ms(*guarded) / ms(*plain)).collect();
    Line {
        what,
        of: format!("guarded {:.4} ms, plain {:.4} ms", side(1), side(0)),
        figure: median(&ratios),
        unit: "×",
        bound: Bound::None,
    }
}

// === impl Postgres ===

impl Postgres {
    fn prepare(server: &PostgresServer) -> anyhow::Result<Self> {
        let mut client = server.client(HOLDER).connect(NoTls)?;
        for table in TABLES {
            client.batch_execute(&format!(
                "CREATE TABLE {table} (id int PRIMARY KEY, value bigint); INSERT INTO {table} VALUES (1, 0)"
            ))?;
        }
        client.execute("SELECT fencedlease.protect('guarded', $1)", &[&RESOURCE])?;
        client
            .execute("SELECT fencedlease.use_fence_for_session($1, 1::bigint, $2)", &[&RESOURCE, &HOLDER])?;
        Ok(Self(client))
    }
}

impl Database for Postgres {
    fn run(&mut self, statement: &str) -> anyhow::Result<()> {
        Ok(self.0.batch_execute(statement)?)
    }

    fn begin(&self, table: Name) -> String {
        match table {
            "plain" => "BEGIN".to_owned(),
            _ => format!("BEGIN; SELECT fencedlease.use_fence('{RESOURCE}', 1::bigint, '{HOLDER}')"),
        }
    }

    fn numbers(&self) -> (String, &'static str) {
        (format!("generate_series(1, {ROWS}) AS all_numbers (number)"), "number")
    }
}

// === impl Mariadb ===

impl Mariadb {
    fn prepare(server: &MariadbServer) -> anyhow::Result<Self> {
        let mut client = server.connect()?;
        client.query_drop("CREATE DATABASE shop")?;
        client.query_drop("USE shop")?;
        for table in TABLES {
            client.query_drop(format!("CREATE TABLE {table} (id int PRIMARY KEY, value bigint)"))?;
            client.query_drop(format!("INSERT INTO {table} VALUES (1, 0)"))?;
        }
        client.exec_drop("CALL fencedlease.protect('shop', 'guarded', ?)", (RESOURCE,))?;
        client.exec_drop("CALL fencedlease.use_fence(?, 1, ?)", (RESOURCE, HOLDER))?;
        Ok(Self(client))
    }
}

impl Database for Mariadb {
    fn run(&mut self, statement: &str) -> anyhow::Result<()> {
        Ok(self.0.query_drop(statement)?)
    }

    fn begin(&self, _table: Name) -> String {
        "BEGIN".to_owned()
    }

    fn numbers(&self) -> (String, &'static str) {
        (format!("seq_1_to_{ROWS}"), "seq")
    }
}
