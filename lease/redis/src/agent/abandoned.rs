//! What becomes of an acquisition whose answer was lost? It may have happened, so it is released by its token,
//! until that works or the lease has run out by itself.

use std::time::Duration;

use fencedlease_core::backoff::Backoff;
use fencedlease_wire::OwnerToken;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, timeout};

use crate::agent::listener::random;
use crate::{Client, Place, Release, ReleaseReply};

/// Tokens that are kept at most: of more, the oldest are left to expire.
const MOST: usize = 16;
const LEAST_PAUSE: Duration = Duration::from_millis(100);
const MOST_PAUSE: Duration = Duration::from_secs(5);

/// A lease that may be ours though nobody uses it.
pub(super) struct Abandoned {
    token: OwnerToken,
    until: Instant,
    timeout: Duration,
}

// === impl Abandoned ===

impl Abandoned {
    /// One whose acquisition was given up just now. Its lease may still begin, and lasts `ttl`.
    pub(super) fn now(token: OwnerToken, ttl: Duration, timeout: Duration) -> Self {
        Self { token, until: Instant::now() + ttl, timeout }
    }
}

/// Releases what it is given, until the sender is gone.
pub(super) async fn release_all(place: Place, mut given_up: UnboundedReceiver<Abandoned>) {
    let mut waiting: Vec<Abandoned> = Vec::new();
    let mut client = Client::new(place);
    let mut backoff = Backoff::new(LEAST_PAUSE, MOST_PAUSE);
    loop {
        let next = if waiting.is_empty() {
            given_up.recv().await
        } else {
            let Ok(next) = timeout(backoff.failed(random()), given_up.recv()).await else {
                round(&mut client, &mut waiting).await;
                continue;
            };
            next
        };
        let Some(next) = next else { return };
        waiting.push(next);
        if waiting.len() > MOST {
            waiting.remove(0);
        }
        backoff.succeeded();
        round(&mut client, &mut waiting).await;
    }
}

/// Tries each once. "Not the owner" is no end: the acquisition itself may still be on its way.
async fn round(client: &mut Client, waiting: &mut Vec<Abandoned>) {
    waiting.retain(|abandoned| Instant::now() < abandoned.until);
    let mut index = 0;
    while let Some(abandoned) = waiting.get(index) {
        let release = Release { token: abandoned.token.clone(), clean: false };
        match client.release(&release, abandoned.timeout).await {
            Ok(ReleaseReply::Released { .. }) => {
                waiting.remove(index);
            }
            Ok(ReleaseReply::NotOwner) => index += 1,
            // The others would fare no better.
            Err(_) => return,
        }
    }
}
