//! How does an application write, and how does it read what became of the write?

use std::net::SocketAddr;
use std::sync::Arc;

use fencedlease_wire::Fence;
use mysql::prelude::Queryable as _;
use mysql::{Conn, Params};

use crate::check::{Claim, FenceCheck, Outcome};
use crate::link::LossyLink;

use super::server::{MariadbServer, connect_to};

/// The tables of an application that compares fences in its own statements.
const OWN_TABLES: [&str; 3] = [
    "CREATE DATABASE IF NOT EXISTS shop",
    "CREATE TABLE IF NOT EXISTS shop.ledger (
        resource VARCHAR(317) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
        value BIGINT CHECK (value >= 0),
        last_fence BIGINT NOT NULL DEFAULT 0 CHECK (last_fence BETWEEN 0 AND 999999999999999),
        last_holder VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT ''
    ) ENGINE = InnoDB",
    "CREATE TABLE IF NOT EXISTS shop.fence_of (
        resource VARCHAR(317) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
        fence BIGINT NOT NULL CHECK (fence BETWEEN 0 AND 999999999999999),
        holder VARCHAR(63) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
    ) ENGINE = InnoDB",
];

const TAKE_ROW: &str = "
    UPDATE shop.ledger SET value = ?, last_fence = ?, last_holder = ?
    WHERE resource = ? AND (last_fence < ? OR (last_fence = ? AND last_holder = ?))";

/// The row is there from the start, with fence 0. An UPDATE that changes nothing counts no row, so it is locked
/// and compared instead.
const LOCK_TABLE: &str = "
    SELECT COUNT(*) FROM shop.fence_of
    WHERE resource = ? AND (fence < ? OR (fence = ? AND holder = ?)) FOR UPDATE";

const LOCK_BARE_LESS: &str = "SELECT COUNT(*) FROM shop.fence_of WHERE resource = ? AND fence < ? FOR UPDATE";

const LOCK_NO_OWNER: &str = "SELECT COUNT(*) FROM shop.fence_of WHERE resource = ? AND fence <= ? FOR UPDATE";

/// Where and how the fence is compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shape {
    /// By the application's statement, in the row that it writes.
    OwnRow,
    /// By the application's statement, in a table of fences, in the transaction that writes.
    OwnTable,
    /// By the triggers; the session is told its fence, and writes in a transaction.
    Session,
    /// By the triggers; the session is told its fence, and each write is a transaction of its own.
    Autocommit,
    /// Broken: a bare `<`.
    BareLess,
    /// Broken: `<=` with no owner compared.
    NoOwner,
    /// Broken: compared in a transaction before the one that writes.
    TwoTransactions,
}

/// The isolation level of every transaction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Isolation {
    /// Each statement sees what is committed then.
    ReadCommitted,
    /// MariaDB's default: one snapshot for the transaction.
    RepeatableRead,
    /// As if one after the other.
    Serializable,
}

/// An application that writes to a real MariaDB. Every write has a connection of its own.
#[derive(Clone, Debug)]
pub struct MariadbCheck {
    server: Arc<MariadbServer>,
    shape: Shape,
    isolation: Isolation,
}

/// One write, from its connection to its commit.
struct Attempt<'a> {
    shape: Shape,
    client: Conn,
    resource: &'a str,
    claim: &'a Claim,
    value: i64,
    before_commit: &'a dyn Fn(),
}

// === impl MariadbCheck ===

impl MariadbCheck {
    /// An application of this shape.
    pub fn new(server: &Arc<MariadbServer>, shape: Shape, isolation: Isolation) -> anyhow::Result<Self> {
        let mut client = server.connect()?;
        OWN_TABLES.iter().try_for_each(|statement| client.query_drop(statement))?;
        Ok(Self { server: Arc::clone(server), shape, isolation })
    }

    fn write_at(
        &self,
        address: SocketAddr,
        (resource, claim, value): (&str, &Claim, i64),
        before_commit: &dyn Fn(),
    ) -> Outcome {
        let level = format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", self.isolation.words());
        let connected = connect_to(address, "root").and_then(|mut client| {
            client.query_drop(level)?;
            Ok(client)
        });
        let client = match connected {
            Ok(client) => client,
            Err(error) => return Outcome::Failed(error.to_string()),
        };
        let attempt = Attempt { shape: self.shape, client, resource, claim, value, before_commit };
        attempt.run().map_or_else(|outcome| outcome, |()| Outcome::Done)
    }

    fn is_guarded(&self) -> bool {
        matches!(self.shape, Shape::Session | Shape::Autocommit)
    }
}

impl FenceCheck for MariadbCheck {
    fn prepare(&self, resource: &str) -> anyhow::Result<()> {
        let mut client = self.server.connect()?;
        if self.is_guarded() {
            client.query_drop(format!(
                "CREATE TABLE shop.`{resource}` (value BIGINT CHECK (value >= 0)) ENGINE = InnoDB"
            ))?;
            client.query_drop(format!("INSERT INTO shop.`{resource}` VALUES (NULL)"))?;
            client.exec_drop("CALL fencedlease.protect('shop', ?, ?)", (resource, resource))?;
        } else {
            client.exec_drop("INSERT INTO shop.ledger (resource) VALUES (?)", (resource,))?;
            client.exec_drop("INSERT INTO shop.fence_of VALUES (?, 0, '')", (resource,))?;
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
        let mut client = self.server.connect()?;
        let row: Option<Option<i64>> = if self.is_guarded() {
            client.query_first(format!("SELECT value FROM shop.`{resource}`"))?
        } else {
            client.exec_first("SELECT value FROM shop.ledger WHERE resource = ?", (resource,))?
        };
        Ok(row.flatten())
    }

    fn crash(&self) -> anyhow::Result<()> {
        Ok(self.server.restart()?)
    }
}

// === impl Attempt ===

impl Attempt<'_> {
    fn run(mut self) -> Result<(), Outcome> {
        match self.shape {
            Shape::Session => self.guarded(true),
            Shape::Autocommit => self.guarded(false),
            Shape::OwnRow => self.own_row(),
            Shape::OwnTable => self.own_table(LOCK_TABLE, false),
            Shape::BareLess => self.own_table(LOCK_BARE_LESS, false),
            Shape::NoOwner => self.own_table(LOCK_NO_OWNER, false),
            Shape::TwoTransactions => self.own_table(LOCK_TABLE, true),
        }
    }

    fn guarded(&mut self, in_transaction: bool) -> Result<(), Outcome> {
        let told = (self.resource, &self.claim.fence, &self.claim.holder);
        self.exec("CALL fencedlease.use_fence(?, ?, ?)", told)?;
        let statement = format!("UPDATE shop.`{}` SET value = {}", self.resource, self.value);
        if in_transaction {
            self.exec("START TRANSACTION", ())?;
            self.exec(&statement, ())?;
            return self.commit();
        }
        (self.before_commit)();
        self.client.query_drop(statement).map_err(|error| committed(&error))
    }

    fn own_row(&mut self) -> Result<(), Outcome> {
        let fence = self.fence()?;
        self.exec("START TRANSACTION", ())?;
        let (resource, holder) = (self.resource, &self.claim.holder);
        // Rows found, as the connection asked for.
        self.exec(TAKE_ROW, (self.value, fence, holder, resource, fence, fence, holder))?;
        if self.client.affected_rows() != 1 {
            return Err(
                self.refusal("SELECT last_fence FROM shop.ledger WHERE resource = ? FOR UPDATE", fence)
            );
        }
        self.commit()
    }

    fn own_table(&mut self, lock: &str, in_two: bool) -> Result<(), Outcome> {
        let fence = self.fence()?;
        self.exec("START TRANSACTION", ())?;
        let (resource, holder) = (self.resource, &self.claim.holder);
        let parameters: Params = match self.shape {
            Shape::BareLess | Shape::NoOwner => (resource, fence).into(),
            _ => (resource, fence, fence, holder).into(),
        };
        let rows: Option<u64> = self.client.exec_first(lock, parameters).map_err(|error| ended(&error))?;
        if rows != Some(1) {
            return Err(self.refusal("SELECT fence FROM shop.fence_of WHERE resource = ? FOR UPDATE", fence));
        }
        let raise = "UPDATE shop.fence_of SET fence = ?, holder = ? WHERE resource = ?";
        self.exec(raise, (fence, holder, resource))?;
        if in_two {
            self.exec("COMMIT", ())?;
            self.exec("DO SLEEP(RAND() * 0.06)", ())?;
            self.exec("START TRANSACTION", ())?;
        }
        self.exec("UPDATE shop.ledger SET value = ? WHERE resource = ?", (self.value, resource))?;
        self.commit()
    }

    fn exec(&mut self, statement: &str, parameters: impl Into<Params>) -> Result<(), Outcome> {
        self.client.exec_drop(statement, parameters).map_err(|error| ended(&error))
    }

    /// The application's own parsing: in its own statements the database sees a number only.
    fn fence(&self) -> Result<u64, Outcome> {
        if self.claim.holder.is_empty() {
            return Err(Outcome::Invalid("a holder is not empty".to_owned()));
        }
        let fence: Result<Fence, _> = self.claim.fence.parse();
        fence.map(Fence::get).map_err(|error| Outcome::Invalid(error.to_string()))
    }

    /// No row: the lease is somebody else's. A locking read says whose fence was met.
    fn refusal(&mut self, read: &str, fence: u64) -> Outcome {
        let met: Result<Option<u64>, _> = self.client.exec_first(read, (self.resource,));
        match met {
            Ok(Some(met)) => Outcome::Refused(format!("fence {fence} is refused: fence {met} was here")),
            Ok(None) => Outcome::Failed(format!("there is no {}", self.resource)),
            Err(error) => ended(&error),
        }
    }

    fn commit(&mut self) -> Result<(), Outcome> {
        (self.before_commit)();
        self.client.query_drop("COMMIT").map_err(|error| committed(&error))
    }
}

// === impl Isolation ===

impl Isolation {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ReadCommitted, Self::RepeatableRead, Self::Serializable];

    fn words(self) -> &'static str {
        match self {
            Self::ReadCommitted => "READ COMMITTED",
            Self::RepeatableRead => "REPEATABLE READ",
            Self::Serializable => "SERIALIZABLE",
        }
    }
}

/// An error before the commit was sent: whatever it is, the transaction is not there.
fn ended(error: &mysql::Error) -> Outcome {
    let text = error.to_string();
    match error {
        mysql::Error::MySqlError(it) if it.state == "45F01" => Outcome::Refused(text),
        mysql::Error::MySqlError(it) if it.state == "45F03" => Outcome::Invalid(text),
        _ => Outcome::Failed(text),
    }
}

/// An error after the commit was sent: only the server's word that it failed makes it certain.
fn committed(error: &mysql::Error) -> Outcome {
    match error {
        mysql::Error::MySqlError(it) if !it.state.starts_with("08") => ended(error),
        _ => Outcome::Unknown(error.to_string()),
    }
}
