//! How does an application write, and how does it read what became of the write?

use std::net::SocketAddr;
use std::sync::Arc;

use fencedlease_wire::Fence;
use postgres::{Client, NoTls};

use crate::check::{Claim, FenceCheck, Outcome};
use crate::link::LossyLink;

use super::server::{PostgresServer, client_at};

/// The tables of an application that compares fences in its own statements.
const OWN_TABLES: &str = "
    CREATE TABLE IF NOT EXISTS ledger (
        resource text PRIMARY KEY,
        value bigint CHECK (value >= 0),
        last_fence bigint NOT NULL DEFAULT 0 CHECK (last_fence BETWEEN 0 AND 999999999999999),
        last_holder text NOT NULL DEFAULT ''
    );
    CREATE TABLE IF NOT EXISTS fence_of (
        resource text PRIMARY KEY,
        fence bigint NOT NULL CHECK (fence BETWEEN 1 AND 999999999999999),
        holder text NOT NULL
    );
    CREATE SCHEMA IF NOT EXISTS guarded;";

const TAKE_ROW: &str = "
    UPDATE ledger SET value = $4, last_fence = $2, last_holder = $3
    WHERE resource = $1 AND (last_fence < $2 OR (last_fence = $2 AND last_holder = $3))";

const TAKE_TABLE: &str = "
    INSERT INTO fence_of (resource, fence, holder) VALUES ($1, $2, $3)
    ON CONFLICT (resource) DO UPDATE SET fence = excluded.fence, holder = excluded.holder
    WHERE fence_of.fence < excluded.fence
        OR (fence_of.fence = excluded.fence AND fence_of.holder = excluded.holder)";

const BARE_LESS: &str = "
    INSERT INTO fence_of (resource, fence, holder) VALUES ($1, $2, $3)
    ON CONFLICT (resource) DO UPDATE SET fence = excluded.fence, holder = excluded.holder
    WHERE fence_of.fence < excluded.fence";

const NO_OWNER: &str = "
    INSERT INTO fence_of (resource, fence, holder) VALUES ($1, $2, $3)
    ON CONFLICT (resource) DO UPDATE SET fence = excluded.fence, holder = excluded.holder
    WHERE fence_of.fence <= excluded.fence";

/// Where and how the fence is compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shape {
    /// By the application's statement, in the row that it writes.
    OwnRow,
    /// By the application's statement, in a table of fences, in the transaction that writes.
    OwnTable,
    /// By the trigger; the transaction is told its fence.
    Transaction,
    /// By the trigger; the session is told its fence, and each write is a transaction of its own.
    Session,
    /// Broken: a bare `<`.
    BareLess,
    /// Broken: `<=` with no owner compared.
    NoOwner,
    /// Broken: compared in a transaction before the one that writes.
    TwoTransactions,
    /// Broken: [`Shape::OwnTable`] with commits that are answered before they are on disk.
    AsynchronousCommit,
}

/// The isolation level of every transaction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Isolation {
    /// PostgreSQL's default.
    ReadCommitted,
    /// One snapshot for the transaction.
    RepeatableRead,
    /// As if one after the other.
    Serializable,
}

/// An application that writes to a real PostgreSQL. Every write has a connection of its own.
#[derive(Clone, Debug)]
pub struct PostgresCheck {
    server: Arc<PostgresServer>,
    shape: Shape,
    isolation: Isolation,
}

/// One write, from its connection to its commit.
struct Attempt<'a> {
    check: &'a PostgresCheck,
    client: Client,
    resource: &'a str,
    claim: &'a Claim,
    value: i64,
    before_commit: &'a dyn Fn(),
}

// === impl PostgresCheck ===

impl PostgresCheck {
    /// An application of this shape.
    pub fn new(server: &Arc<PostgresServer>, shape: Shape, isolation: Isolation) -> anyhow::Result<Self> {
        server.connect("installer")?.batch_execute(OWN_TABLES)?;
        Ok(Self { server: Arc::clone(server), shape, isolation })
    }

    fn write_at(
        &self,
        address: SocketAddr,
        (resource, claim, value): (&str, &Claim, i64),
        before_commit: &dyn Fn(),
    ) -> Outcome {
        // What is no name for an application is for the check to refuse, not for the connection.
        let mut config = client_at(address, if claim.holder.is_empty() { "none" } else { &claim.holder });
        config.options(&format!("-c default_transaction_isolation={}", self.isolation.setting()));
        let client = match config.connect(NoTls) {
            Ok(client) => client,
            Err(error) => return Outcome::Failed(text(&error)),
        };
        let attempt = Attempt { check: self, client, resource, claim, value, before_commit };
        attempt.run().map_or_else(|outcome| outcome, |()| Outcome::Done)
    }

    fn is_guarded(&self) -> bool {
        matches!(self.shape, Shape::Transaction | Shape::Session)
    }
}

impl FenceCheck for PostgresCheck {
    fn prepare(&self, resource: &str) -> anyhow::Result<()> {
        let mut client = self.server.connect("installer")?;
        if self.is_guarded() {
            let table = format!("guarded.\"{resource}\"");
            client.batch_execute(&format!(
                "CREATE TABLE {table} (value bigint CHECK (value >= 0)); INSERT INTO {table} VALUES (NULL);
                SELECT fencedlease.protect('{table}', '{resource}')"
            ))?;
        } else {
            client.execute("INSERT INTO ledger (resource) VALUES ($1)", &[&resource])?;
        }
        Ok(())
    }

    fn write(&self, resource: &str, claim: &Claim, value: i64) -> Outcome {
        self.write_at(self.server.address(), (resource, claim, value), &|| ())
    }

    fn write_and_lose_the_answer(&self, resource: &str, claim: &Claim, value: i64) -> Outcome {
        match LossyLink::to(self.server.address()) {
            Ok(link) => link
                .lose_answer_of(|address, commits| self.write_at(address, (resource, claim, value), commits)),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        }
    }

    fn value(&self, resource: &str) -> anyhow::Result<Option<i64>> {
        let mut client = self.server.connect("reader")?;
        let row = if self.is_guarded() {
            client.query_one(&format!("SELECT value FROM guarded.\"{resource}\""), &[])?
        } else {
            client.query_one("SELECT value FROM ledger WHERE resource = $1", &[&resource])?
        };
        Ok(row.try_get(0)?)
    }

    fn crash(&self) -> anyhow::Result<()> {
        Ok(self.server.restart()?)
    }
}

// === impl Attempt ===

impl Attempt<'_> {
    fn run(mut self) -> Result<(), Outcome> {
        match self.check.shape {
            Shape::Session => self.session(),
            Shape::Transaction => self.transaction(),
            Shape::OwnRow => {
                let fence = self.fence()?;
                self.begin()?;
                self.take(TAKE_ROW, fence)?;
                self.commit()
            }
            Shape::OwnTable => self.own_table(TAKE_TABLE, false),
            Shape::BareLess => self.own_table(BARE_LESS, false),
            Shape::NoOwner => self.own_table(NO_OWNER, false),
            Shape::TwoTransactions => self.own_table(TAKE_TABLE, true),
            Shape::AsynchronousCommit => {
                self.client.batch_execute("SET synchronous_commit = off").map_err(|error| ended(&error))?;
                self.own_table(TAKE_TABLE, false)
            }
        }
    }

    fn session(&mut self) -> Result<(), Outcome> {
        let (resource, fence, holder) = (self.resource, &self.claim.fence, &self.claim.holder);
        let told = "SELECT fencedlease.use_fence_for_session($1, $2, $3)";
        self.client.execute(told, &[&resource, fence, holder]).map_err(|error| ended(&error))?;
        let statement = format!("UPDATE guarded.\"{resource}\" SET value = $1");
        let statement = self.client.prepare(&statement).map_err(|error| ended(&error))?;
        (self.before_commit)();
        let rows = self.client.execute(&statement, &[&self.value]).map_err(|error| committed(&error))?;
        one_row(rows, "the guarded table has no row")
    }

    fn transaction(&mut self) -> Result<(), Outcome> {
        self.begin()?;
        // An asynchronous commit that the application asked for must not make the check forget.
        self.client.batch_execute("SET LOCAL synchronous_commit = off").map_err(|error| ended(&error))?;
        let told = "SELECT fencedlease.use_fence($1, $2, $3)";
        let (resource, fence, holder) = (self.resource, &self.claim.fence, &self.claim.holder);
        self.client.execute(told, &[&resource, fence, holder]).map_err(|error| ended(&error))?;
        let statement = format!("UPDATE guarded.\"{resource}\" SET value = $1");
        let rows = self.client.execute(&statement, &[&self.value]).map_err(|error| ended(&error))?;
        one_row(rows, "the guarded table has no row")?;
        self.commit()
    }

    fn own_table(&mut self, take: &str, in_two: bool) -> Result<(), Outcome> {
        let fence = self.fence()?;
        self.begin()?;
        self.take(take, fence)?;
        if in_two {
            self.client
                .batch_execute("COMMIT; BEGIN; SELECT pg_sleep(random() * 0.06)")
                .map_err(|e| ended(&e))?;
        }
        let write = "UPDATE ledger SET value = $2 WHERE resource = $1";
        let rows =
            self.client.execute(write, &[&self.resource, &self.value]).map_err(|error| ended(&error))?;
        one_row(rows, "the ledger has no such row")?;
        self.commit()
    }

    /// The application's own parsing: in its own statements the database sees a number only.
    fn fence(&self) -> Result<i64, Outcome> {
        let invalid = |why: String| Outcome::Invalid(why);
        if self.claim.holder.is_empty() {
            return Err(invalid("a holder is not empty".to_owned()));
        }
        let fence: Fence = self.claim.fence.parse().map_err(|error| invalid(format!("{error}")))?;
        i64::try_from(fence.get()).map_err(|error| invalid(error.to_string()))
    }

    fn begin(&mut self) -> Result<(), Outcome> {
        self.client.batch_execute("BEGIN").map_err(|error| ended(&error))
    }

    /// The conditional write: no row means that the lease is somebody else's.
    fn take(&mut self, statement: &str, fence: i64) -> Result<(), Outcome> {
        let (resource, holder) = (self.resource, &self.claim.holder);
        let rows = if self.check.shape == Shape::OwnRow {
            self.client.execute(statement, &[&resource, &fence, holder, &self.value])
        } else {
            self.client.execute(statement, &[&resource, &fence, holder])
        };
        if rows.map_err(|error| ended(&error))? == 1 {
            return Ok(());
        }
        let met = if self.check.shape == Shape::OwnRow {
            self.client.query_opt("SELECT last_fence FROM ledger WHERE resource = $1", &[&resource])
        } else {
            self.client.query_opt("SELECT fence FROM fence_of WHERE resource = $1", &[&resource])
        };
        let met = met.map_err(|error| ended(&error))?.map(|row| row.get::<_, i64>(0));
        let met = met.ok_or_else(|| Outcome::Failed(format!("there is no {resource}")))?;
        Err(Outcome::Refused(format!("fence {fence} is refused for {resource}: fence {met} was here")))
    }

    fn commit(&mut self) -> Result<(), Outcome> {
        // The answers to the client's own requests, such as closing statements, are here after this one.
        self.client.batch_execute("").map_err(|error| ended(&error))?;
        (self.before_commit)();
        self.client.batch_execute("COMMIT").map_err(|error| committed(&error))
    }
}

// === impl Isolation ===

impl Isolation {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ReadCommitted, Self::RepeatableRead, Self::Serializable];

    fn setting(self) -> &'static str {
        match self {
            // A space would end the option.
            Self::ReadCommitted => "read\\ committed",
            Self::RepeatableRead => "repeatable\\ read",
            Self::Serializable => "serializable",
        }
    }
}

fn one_row(rows: u64, otherwise: &str) -> Result<(), Outcome> {
    if rows == 1 { Ok(()) } else { Err(Outcome::Failed(otherwise.to_owned())) }
}

/// An error before the commit was sent: whatever it is, the transaction is not there.
fn ended(error: &postgres::Error) -> Outcome {
    let text = text(error);
    match error.code().map(postgres::error::SqlState::code) {
        Some("FL001") => Outcome::Refused(text),
        Some("FL003") => Outcome::Invalid(text),
        _ => Outcome::Failed(text),
    }
}

/// An error after the commit was sent: only the server's word that it aborted makes it certain.
fn committed(error: &postgres::Error) -> Outcome {
    match error.code().map(|it| &it.code()[..2]) {
        // The connection or the server ended (08, 57), or there was no answer at all.
        None | Some("08" | "57") => Outcome::Unknown(text(error)),
        Some(_) => ended(error),
    }
}

fn text(error: &postgres::Error) -> String {
    error
        .as_db_error()
        .map_or_else(|| error.to_string(), |it| format!("{}: {}", it.code().code(), it.message()))
}
