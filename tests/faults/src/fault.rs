//! Which fault applies to whom?

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What the proxy does to a connection.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Fault {
    /// Nothing: bytes pass, and what was held is sent on, in order.
    #[default]
    Pass,
    /// Bytes pass, each this much later, in order.
    Delay {
        /// How much later.
        delay_ms: u64,
        /// Which bytes.
        #[serde(default)]
        direction: Direction,
    },
    /// Bytes pass one at a time, each this much after the one before it.
    Drip {
        /// How much later.
        delay_ms: u64,
        /// Which bytes.
        #[serde(default)]
        direction: Direction,
    },
    /// Connections are accepted and their bytes kept, until another fault says what becomes of them.
    Hold {
        /// Which bytes.
        #[serde(default)]
        direction: Direction,
    },
    /// Bytes are swallowed, those held before included. A connection that lost bytes is never carried on: it
    /// is reset when bytes of that direction may pass again, because no network leaves a hole in a stream.
    Drop {
        /// Which bytes.
        #[serde(default)]
        direction: Direction,
    },
    /// Connections are reset, and new ones are reset as soon as they are accepted.
    Cut,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Direction {
    /// From client to target.
    Requests,
    /// From target to client.
    Replies,
    /// Both ways.
    #[default]
    Both,
}

/// Whom a fault is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Clients {
    /// Every client. Replaces what was set for single ones.
    All,
    /// The client with this address.
    One(IpAddr),
}

/// All faults of a proxy.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Faults {
    /// For every client without an entry of its own.
    pub all: Fault,
    /// For single clients.
    pub clients: BTreeMap<IpAddr, Fault>,
}

/// What becomes of bytes that go one way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Treatment {
    /// They are sent this much after they came.
    Forward(Duration),
    /// One is sent this much after the one before it.
    Drip(Duration),
    /// They are kept.
    Keep,
    /// They are thrown away.
    Swallow,
}

/// One of the two ways of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Way {
    /// From client to target.
    Requests,
    /// From target to client.
    Replies,
}

// === impl Faults ===

impl Faults {
    /// Sets the fault of some clients.
    pub fn set(&mut self, clients: Clients, fault: Fault) {
        match clients {
            Clients::All => {
                self.all = fault;
                self.clients.clear();
            }
            Clients::One(client) => {
                self.clients.insert(client.to_canonical(), fault);
            }
        }
    }

    /// The fault that applies to a client.
    pub fn of(&self, client: IpAddr) -> Fault {
        self.clients.get(&client.to_canonical()).copied().unwrap_or(self.all)
    }
}

// === impl Fault ===

impl Fault {
    /// What becomes of bytes that go this way.
    pub(crate) fn treatment(self, way: Way) -> Treatment {
        let pass = Treatment::Forward(Duration::ZERO);
        match self {
            Self::Delay { delay_ms, direction } if direction.covers(way) => {
                Treatment::Forward(Duration::from_millis(delay_ms))
            }
            Self::Drip { delay_ms, direction } if direction.covers(way) => {
                Treatment::Drip(Duration::from_millis(delay_ms))
            }
            Self::Hold { direction } if direction.covers(way) => Treatment::Keep,
            Self::Drop { direction } if direction.covers(way) => Treatment::Swallow,
            Self::Pass | Self::Delay { .. } | Self::Drip { .. } | Self::Hold { .. } | Self::Drop { .. } => {
                pass
            }
            // The connection is about to be reset: nothing more may get through.
            Self::Cut => Treatment::Keep,
        }
    }
}

// === impl Direction ===

impl Direction {
    fn covers(self, way: Way) -> bool {
        matches!(
            (self, way),
            (Self::Both, _) | (Self::Requests, Way::Requests) | (Self::Replies, Way::Replies)
        )
    }
}

#[cfg(test)]
mod tests;
