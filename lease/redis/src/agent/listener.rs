//! How does a standby hear of a release? Over a connection of its own, which only ever gives hints: when it
//! breaks it is made again, and nothing else follows.

use std::time::Duration;

use fencedlease_core::backoff::Backoff;
use redis::{Cmd, PushKind};
use tokio::sync::mpsc::{self, Sender};
use tokio::time::{Instant, sleep, timeout};

use crate::agent::Hint;
use crate::{CallError, Place};

const LEAST_PAUSE: Duration = Duration::from_millis(100);
const MOST_PAUSE: Duration = Duration::from_secs(5);
/// How long connecting and subscribing, or the answer to a sign of life, may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// A network that swallows everything is noticed after this and [`PATIENCE`].
const SILENCE: Duration = Duration::from_secs(10);

/// Listens until it is aborted.
pub(super) async fn listen(place: Place, hints: Sender<Hint>) {
    let mut backoff = Backoff::new(LEAST_PAUSE, MOST_PAUSE);
    loop {
        let start = Instant::now();
        let error = listen_once(&place, &hints).await;
        // One that breaks as soon as it is made must not be made again and again without a pause.
        if start.elapsed() > MOST_PAUSE {
            backoff.succeeded();
        }
        tracing::debug!(%error, "releases are not heard for now");
        sleep(backoff.failed(random())).await;
    }
}

/// Listens over one connection, and tells why it ended.
async fn listen_once(place: &Place, hints: &Sender<Hint>) -> CallError {
    let server = &place.server;
    let closed =
        || CallError::Closed { address: server.address.clone(), text: "end of the stream".to_owned() };
    let silent = |_| CallError::Timeout { address: server.address.clone(), waited: PATIENCE };
    let (pushes, mut received) = mpsc::unbounded_channel();
    let subscribed = timeout(PATIENCE, async {
        let mut connection = place.connect(Some(pushes)).await?;
        connection.subscribe(server, &place.keys.released).await?;
        Ok(connection)
    });
    let mut connection = match subscribed.await.map_err(silent).flatten() {
        Ok(connection) => connection,
        Err(error) => return error,
    };
    // A full channel has hints in it that say as much.
    let _ = hints.try_send(Hint::Listening);
    let mut ping = Cmd::new();
    ping.arg("PING");
    loop {
        match timeout(SILENCE, received.recv()).await {
            Ok(Some(push)) => match push.kind {
                PushKind::Message => {
                    let _ = hints.try_send(Hint::Released);
                }
                PushKind::Disconnection => return closed(),
                _ => {}
            },
            Ok(None) => return closed(),
            Err(_) => {
                let answer = timeout(PATIENCE, connection.ask(server, &ping)).await.map_err(silent).flatten();
                match answer {
                    // A user who may not ping hears that from a server that lives.
                    Ok(_) | Err(CallError::Refused { .. }) => {}
                    Err(error) => return error,
                }
            }
        }
    }
}

/// Uniform random bits. Without any, all of them set: the longest pause.
pub(super) fn random() -> u64 {
    getrandom::u64().unwrap_or(u64::MAX)
}
