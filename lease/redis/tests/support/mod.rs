//! What the tests of this crate share.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fencedlease_faults::RedisServer;
use fencedlease_redis::{
    Acquire, AcquireReply, Client, Credentials, LeaseKeys, Place, Release, Renew, Server,
};
use fencedlease_wire::{Fence, OwnerToken, ResourceName};

/// Long enough for anything that is to work.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// A lease that does not run out during a test.
pub(crate) const TTL: Duration = Duration::from_mins(1);
/// The name of the connections.
pub(crate) const CLIENT_NAME: &str = "fencedlease/report-0";

pub(crate) fn keys() -> LeaseKeys {
    LeaseKeys::new(&ResourceName::new("c1", "shop", "report").unwrap())
}

pub(crate) fn place(address: impl Into<String>) -> Place {
    place_as(address, Credentials::default())
}

pub(crate) fn place_as(address: impl Into<String>, credentials: Credentials) -> Place {
    let server =
        Server { address: address.into(), tls: None, database: 0, client_name: CLIENT_NAME.to_owned() };
    Place { server, keys: keys(), credentials: Arc::new(credentials) }
}

pub(crate) fn user(name: &str, password: &str) -> Credentials {
    Credentials { username: Some(name.to_owned()), password: Some(password.to_owned()) }
}

pub(crate) fn client(server: &RedisServer) -> Client {
    Client::new(place(server.address().to_string()))
}

/// A token that no other call in this program got.
pub(crate) fn new_token() -> OwnerToken {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut bits = [0; 16];
    bits[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    OwnerToken::from_random(bits)
}

pub(crate) fn fence(value: u64) -> Fence {
    Fence::new(value).unwrap()
}

pub(crate) fn acquire(holder: &str) -> Acquire {
    Acquire { token: new_token(), ttl: TTL, floor: None, holder: holder.to_owned() }
}

/// A lease that was acquired.
pub(crate) struct Held {
    pub(crate) token: OwnerToken,
    pub(crate) fence: Fence,
    pub(crate) clean: bool,
    pub(crate) previous_holder: Option<String>,
}

impl Held {
    pub(crate) fn renew(&self) -> Renew {
        Renew { token: self.token.clone(), ttl: TTL, fence: self.fence }
    }

    pub(crate) fn release(&self, clean: bool) -> Release {
        Release { token: self.token.clone(), clean }
    }
}

/// Acquires, which must work.
pub(crate) async fn hold(client: &mut Client, holder: &str) -> Held {
    hold_by(client, acquire(holder)).await
}

/// As [`hold`], by this call.
pub(crate) async fn hold_by(client: &mut Client, acquire: Acquire) -> Held {
    match client.acquire(&acquire, PATIENCE).await.unwrap() {
        AcquireReply::Acquired { fence, clean, previous_holder } => {
            Held { token: acquire.token, fence, clean, previous_holder }
        }
        held @ AcquireReply::Held { .. } => panic!("{held:?}"),
    }
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let wait = async {
        while !so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("not within {PATIENCE:?}: {what}"));
}
