//! What did the proxy do? Numbers by which a test asserts that its fault happened.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::fault::{Faults, Way};

/// Numbers of one client, or of all together. All but `open` and the two of held bytes only grow.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Counters {
    /// Connections accepted, those that were then refused included.
    pub connections: u64,
    /// Connections open now.
    pub open: u64,
    /// New connections reset by a cut.
    pub refused: u64,
    /// Connections reset by a cut, or because bytes of theirs had been dropped.
    pub reset: u64,
    /// Connections that ended because the target could not be reached.
    pub unreachable: u64,
    /// Bytes sent on to the target.
    pub request_bytes: u64,
    /// Bytes sent on to the client.
    pub reply_bytes: u64,
    /// Bytes sent on later than they came.
    pub delayed_bytes: u64,
    /// Bytes from the client that are kept now.
    pub held_request_bytes: u64,
    /// Bytes from the target that are kept now.
    pub held_reply_bytes: u64,
    /// Bytes from the client that were dropped.
    pub dropped_request_bytes: u64,
    /// Bytes from the target that were dropped.
    pub dropped_reply_bytes: u64,
}

/// The state of a proxy at one instant.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// `host:port` that the proxy forwards to.
    pub target: String,
    /// The faults in force.
    pub faults: Faults,
    /// All clients together.
    pub total: Counters,
    /// Each client that ever connected.
    pub clients: BTreeMap<IpAddr, Counters>,
}

/// Where the tasks of a proxy write their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Board {
    clients: watch::Sender<BTreeMap<IpAddr, Counters>>,
}

/// One client's line on the board.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    board: Board,
    client: IpAddr,
}

// === impl Snapshot ===

impl Snapshot {
    /// The numbers of one client; zeros if it never connected.
    pub fn client(&self, client: IpAddr) -> Counters {
        self.clients.get(&client.to_canonical()).copied().unwrap_or_default()
    }
}

// === impl Counters ===

impl Counters {
    fn add(&mut self, other: Self) {
        let Self {
            connections,
            open,
            refused,
            reset,
            unreachable,
            request_bytes,
            reply_bytes,
            delayed_bytes,
            held_request_bytes,
            held_reply_bytes,
            dropped_request_bytes,
            dropped_reply_bytes,
        } = other;
        self.connections += connections;
        self.open += open;
        self.refused += refused;
        self.reset += reset;
        self.unreachable += unreachable;
        self.request_bytes += request_bytes;
        self.reply_bytes += reply_bytes;
        self.delayed_bytes += delayed_bytes;
        self.held_request_bytes += held_request_bytes;
        self.held_reply_bytes += held_reply_bytes;
        self.dropped_request_bytes += dropped_request_bytes;
        self.dropped_reply_bytes += dropped_reply_bytes;
    }

    /// Bytes kept now, of this way.
    pub(crate) fn held(&mut self, way: Way) -> &mut u64 {
        match way {
            Way::Requests => &mut self.held_request_bytes,
            Way::Replies => &mut self.held_reply_bytes,
        }
    }

    /// Bytes sent on, of this way.
    pub(crate) fn sent(&mut self, way: Way) -> &mut u64 {
        match way {
            Way::Requests => &mut self.request_bytes,
            Way::Replies => &mut self.reply_bytes,
        }
    }

    /// Bytes dropped, of this way.
    pub(crate) fn dropped(&mut self, way: Way) -> &mut u64 {
        match way {
            Way::Requests => &mut self.dropped_request_bytes,
            Way::Replies => &mut self.dropped_reply_bytes,
        }
    }
}

// === impl Board ===

impl Board {
    pub(crate) fn new() -> Self {
        Self { clients: watch::Sender::new(BTreeMap::new()) }
    }

    pub(crate) fn line(&self, client: IpAddr) -> Line {
        Line { board: self.clone(), client: client.to_canonical() }
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<BTreeMap<IpAddr, Counters>> {
        self.clients.subscribe()
    }

    pub(crate) fn snapshot(&self, target: &str, faults: Faults) -> Snapshot {
        let clients = self.clients.borrow().clone();
        let mut total = Counters::default();
        for counters in clients.values() {
            total.add(*counters);
        }
        Snapshot { target: target.to_owned(), faults, total, clients }
    }
}

// === impl Line ===

impl Line {
    pub(crate) fn note(&self, change: impl FnOnce(&mut Counters)) {
        self.board.clients.send_modify(|clients| change(clients.entry(self.client).or_default()));
    }
}
