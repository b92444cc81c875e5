//! A real Redis as the resource: the script that users install, and the ways in which an application uses it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use fencedlease_faults::{RedisError, RedisServer};
use redis::{Client, Connection, RedisResult};

use crate::check::{Claim, FenceCheck, Outcome};
use crate::link::LossyLink;

/// The file that users install.
pub const SCRIPT: &str = include_str!("../../../guards/redis/fenced.lua");

/// Where the server keeps every command that it answered: on disk, before the answer.
const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

const LIMIT: Duration = Duration::from_secs(20);

/// How an application uses the script.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shape {
    /// The script compares and runs the command.
    Script,
    /// Broken: the script compares, and the command is sent by itself afterwards.
    TwoCommands,
    /// Broken: [`Shape::Script`] on a server that persists nothing.
    NotPersisted,
}

/// An application that writes to a real Redis. Every write has a connection of its own.
#[derive(Debug)]
pub struct RedisCheck {
    server: Mutex<RedisServer>,
    shape: Shape,
    address: SocketAddr,
}

/// Where a resource's fence and its value lie, with one hash tag.
struct Keys {
    fence: String,
    value: String,
}

// === impl RedisCheck ===

impl RedisCheck {
    /// An application of this shape, and a server of its own.
    pub fn start(shape: Shape) -> Result<Arc<Self>, RedisError> {
        let settings: &[&str] = if shape == Shape::NotPersisted { &[] } else { &DURABLE };
        let server = RedisServer::with_args(settings)?;
        let address = server.address();
        Ok(Arc::new(Self { server: Mutex::new(server), shape, address }))
    }

    /// Sends one command by a connection of its own.
    pub fn send(&self, words: &[&str]) -> RedisResult<redis::Value> {
        command(words).query(&mut connect(self.address)?)
    }

    fn write_at(
        &self,
        address: SocketAddr,
        (resource, claim, value): (&str, &Claim, i64),
        before_commit: &dyn Fn(),
    ) -> Outcome {
        let mut connection = match connect(address) {
            Ok(connection) => connection,
            Err(error) => return Outcome::Failed(error.to_string()),
        };
        let keys = Keys::of(resource);
        let number = value.to_string();
        // A negative value is pushed onto what is no list.
        let write = [if value < 0 { "LPUSH" } else { "SET" }, &keys.value, &number];
        let compare = ["EVAL", SCRIPT, "2", &keys.fence, &keys.value, &claim.fence, &claim.holder];
        let sent = if self.shape == Shape::TwoCommands {
            if let Err(error) = command(&compare).exec(&mut connection) {
                return outcome_of(&error);
            }
            // Some writes are slower than others, so that one is overtaken.
            thread::sleep(Duration::from_millis(value.unsigned_abs() * 37 % 60));
            command(&write)
        } else {
            command(&[&compare[..], &write[..]].concat())
        };
        before_commit();
        sent.exec(&mut connection).map_or_else(|error| outcome_of(&error), |()| Outcome::Done)
    }
}

impl FenceCheck for RedisCheck {
    fn prepare(&self, _resource: &str) -> anyhow::Result<()> {
        // A key that is not there is a resource without a fence.
        Ok(())
    }

    fn write(&self, resource: &str, claim: &Claim, value: i64) -> Outcome {
        self.write_at(self.address, (resource, claim, value), &|| ())
    }

    fn write_and_lose_the_answer(&self, resource: &str, claim: &Claim, value: i64) -> Outcome {
        match LossyLink::to(self.address) {
            Ok(link) => link
                .lose_answer_of(|address, commits| self.write_at(address, (resource, claim, value), commits)),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        }
    }

    fn value(&self, resource: &str) -> anyhow::Result<Option<i64>> {
        let keys = Keys::of(resource);
        Ok(command(&["GET", &keys.value]).query(&mut connect(self.address)?)?)
    }

    fn crash(&self) -> anyhow::Result<()> {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(server.restart()?)
    }
}

// === impl Keys ===

impl Keys {
    fn of(resource: &str) -> Self {
        Self { fence: format!("{{{resource}}}:fence"), value: format!("{{{resource}}}:value") }
    }
}

fn connect(address: SocketAddr) -> RedisResult<Connection> {
    let connection = Client::open(format!("redis://{address}"))?.get_connection()?;
    connection.set_read_timeout(Some(LIMIT))?;
    Ok(connection)
}

fn command(words: &[&str]) -> redis::Cmd {
    let mut command = redis::Cmd::new();
    command.arg(words);
    command
}

/// Only an error that the server itself worded makes it certain that nothing was written.
fn outcome_of(error: &redis::RedisError) -> Outcome {
    let text = error.to_string();
    match error.code() {
        Some("FENCEDLEASE_REFUSED") => Outcome::Refused(text),
        Some("FENCEDLEASE_INVALID") => Outcome::Invalid(text),
        Some(_) => Outcome::Failed(text),
        None => Outcome::Unknown(text),
    }
}
