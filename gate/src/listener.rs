//! How are clients served? HTTP/1.1 and HTTP/2, plainly or over TLS, with bounds on what each can hold, and a
//! drain at the end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::headers::Client;
use crate::service::Gate;
use crate::stall::Stalling;
use crate::workers::Workers;

/// How long a client may take for its TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How many requests one HTTP/2 connection has at a time.
const MOST_STREAMS: u32 = 100;

/// What clients may hold.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// How many connections there are at most; later ones wait in the kernel's queue.
    pub max_connections: usize,
    /// How many bytes a request's headers have at most.
    pub max_header_bytes: u32,
    /// How long a client may take for a request's headers, and an idle connection is kept.
    pub header_timeout: Duration,
    /// How long a client may leave an answer unread.
    pub write_timeout: Duration,
    /// How long requests may go on after the end was asked for.
    pub end_timeout: Duration,
}

/// A bound listener and what it serves.
pub struct Listener {
    /// The socket.
    pub socket: TcpListener,
    /// TLS; `None` serves plainly.
    pub tls: Option<TlsAcceptor>,
    /// What clients may hold.
    pub bounds: Bounds,
    /// What answers, and where.
    pub workers: Workers,
}

impl Listener {
    /// Serves until `stop` turns true, then lets running requests end and returns what may still carry some out.
    pub async fn run(self, mut stop: watch::Receiver<bool>) -> Workers {
        let slots = Arc::new(Semaphore::new(self.bounds.max_connections));
        let mut connections = JoinSet::new();
        let stopped = stop.clone();
        loop {
            let accepted = tokio::select! {
                accepted = accept(&self.socket, &slots) => accepted,
                Some(_) = connections.join_next() => continue,
                // A sender that is gone means the same as its word.
                _ = stop.wait_for(|stop| *stop) => break,
            };
            let Some((permit, stream, peer)) = accepted else { continue };
            let Some(worker) = self.workers.idlest() else { continue };
            let (tls, bounds, gate, stop) = (self.tls.clone(), self.bounds, worker.gate(), stopped.clone());
            let served = worker.serve();
            let serve = async move {
                let _held = (permit, served);
                let _counted = gate.metrics.connection();
                match TcpStream::from_std(stream) {
                    Ok(stream) => connection(stream, peer, tls, bounds, Arc::clone(&gate), stop).await,
                    Err(error) => tracing::warn!(%peer, %error, "cannot serve a connection"),
                }
            };
            connections.spawn_on(serve, worker.runtime());
        }
        drop(self.socket);
        let end =
            timeout(self.bounds.end_timeout, async { while connections.join_next().await.is_some() {} });
        if end.await.is_err() {
            tracing::warn!(open = connections.len(), "connections were still busy at the end");
            // They end with their threads: a body whose connection alone were dropped would seem to be at its end.
            connections.detach_all();
        }
        self.workers
    }
}

/// A connection, free of this runtime: another one will serve it.
async fn accept(
    socket: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(OwnedSemaphorePermit, std::net::TcpStream, SocketAddr)> {
    let permit = Arc::clone(slots).acquire_owned().await.ok()?;
    let accepted = socket.accept().await.and_then(|(stream, peer)| Ok((stream.into_std()?, peer)));
    match accepted {
        Ok((stream, peer)) => Some((permit, stream, peer)),
        Err(error) => {
            tracing::warn!(%error, "cannot accept a connection");
            // Out of file descriptors, usually: others must end before it helps to try again.
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    bounds: Bounds,
    gate: Arc<Gate>,
    stop: watch::Receiver<bool>,
) {
    let client = Client { address: peer.ip(), is_tls: tls.is_some() };
    // Only latency is lost where the system refuses.
    let _ = stream.set_nodelay(true);
    let ended = match tls {
        None => requests(stream, client, bounds, gate, stop).await,
        Some(tls) => match timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
            Ok(Ok(stream)) => requests(stream, client, bounds, gate, stop).await,
            Ok(Err(error)) => {
                tracing::debug!(%peer, %error, "TLS handshake failed");
                return;
            }
            Err(_) => {
                tracing::debug!(%peer, "TLS handshake took too long");
                return;
            }
        },
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "connection ended");
    }
}

async fn requests<S>(
    stream: S,
    client: Client,
    bounds: Bounds,
    gate: Arc<Gate>,
    mut stop: watch::Receiver<bool>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        // A client that has sent all and gone, such as a holder that was killed, is judged and counted all the same.
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.header_timeout)
        .max_buf_size(usize::try_from(bounds.max_header_bytes).unwrap_or(usize::MAX).max(8192));
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(bounds.max_header_bytes)
        .max_concurrent_streams(MOST_STREAMS)
        .keep_alive_interval(bounds.header_timeout)
        .keep_alive_timeout(bounds.header_timeout);
    let service = service_fn(move |request| {
        let gate = Arc::clone(&gate);
        async move { Ok::<_, std::convert::Infallible>(gate.answer(request, client).await) }
    });
    let stream = TokioIo::new(Stalling::new(stream, bounds.write_timeout));
    let connection = builder.serve_connection(stream, service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        _ = stop.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}
