//! Real parts: a gate process, an nginx with WebDAV behind it, and clients.

mod backend;
mod client;
mod http2;
mod nginx;
mod process;

pub(crate) use backend::{Backend, Mood};
pub(crate) use client::{Answer, Client};
pub(crate) use http2::Http2Request;
pub(crate) use nginx::Nginx;
pub(crate) use process::{Gate, Setup, Store};

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fencedlease_wire::gate::{GateKey, Ticket};
use fencedlease_wire::{Fence, HoldingId};

/// The key that gates of tests have, as its file.
pub(crate) const KEY: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
/// The resource that gates of tests guard at every path.
pub(crate) const RESOURCE: &str = "shop/report";

/// A holder of a fence.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Holder {
    pub(crate) fence: u64,
    pub(crate) holder: u8,
}

/// The holder that usually has this fence.
pub(crate) fn holder(fence: u64) -> Holder {
    Holder { fence, holder: u8::try_from(fence % 256).unwrap() }
}

impl Holder {
    /// A ticket of now.
    pub(crate) fn ticket(self) -> String {
        self.ticket_of(RESOURCE, KEY, unix_ms())
    }

    pub(crate) fn ticket_of(self, resource: &str, key: &str, time_ms: u64) -> String {
        let ticket = Ticket {
            resource: resource.parse().unwrap(),
            fence: Fence::new(self.fence).unwrap(),
            holder: HoldingId::from_random([self.holder; 8]),
            time_ms,
        };
        ticket.sign(&key.parse::<GateKey>().unwrap())
    }
}

pub(crate) fn unix_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// Waits until it is so, for at most half a minute.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("not within half a minute: {what}");
}
