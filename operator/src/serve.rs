//! How is a router served? Over TLS or plainly, with bounds on what a slow or greedy client can hold, and a
//! drain at the end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// How long a client may take for its TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take for a request's headers; also how long an idle connection is kept.
const HEADER_TIMEOUT: Duration = Duration::from_mins(2);
/// How long connections that are busy at the end may go on.
const DRAIN: Duration = Duration::from_secs(10);
/// How many connections one listener has at most; later ones wait in the kernel's queue.
const MOST_CONNECTIONS: usize = 2048;

/// A bound listener and what it serves.
pub struct Server {
    /// What it is called in logs.
    pub name: &'static str,
    /// Where it listens.
    pub listener: TcpListener,
    /// TLS settings; `None` serves plain HTTP.
    pub tls: Option<Arc<ServerConfig>>,
    /// What it serves.
    pub router: Router,
}

impl Server {
    /// Serves until `stop` turns true, then lets running requests end and returns.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        let Self { name, listener, tls, router } = self;
        let tls = tls.map(TlsAcceptor::from);
        let slots = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let mut connections = JoinSet::new();
        let stopped = stop.clone();
        loop {
            let accepted = tokio::select! {
                accepted = accept(&listener, &slots) => accepted,
                Some(_) = connections.join_next() => continue,
                // A sender that is gone means the same as its word.
                _ = stop.wait_for(|stop| *stop) => break,
            };
            let Some((permit, stream, peer)) = accepted else { continue };
            let (tls, router, stop) = (tls.clone(), router.clone(), stopped.clone());
            connections.spawn(async move {
                let _permit = permit;
                connection(name, stream, peer, tls, router, stop).await;
            });
        }
        drop(listener);
        let drained = timeout(DRAIN, async { while connections.join_next().await.is_some() {} }).await;
        if drained.is_err() {
            tracing::warn!(
                listener = name,
                open = connections.len(),
                "connections were still busy at the end"
            );
        }
    }
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(tokio::sync::OwnedSemaphorePermit, TcpStream, SocketAddr)> {
    let permit = Arc::clone(slots).acquire_owned().await.ok()?;
    match listener.accept().await {
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
    name: &'static str,
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    router: Router,
    stop: watch::Receiver<bool>,
) {
    let ended = match tls {
        None => requests(stream, router, stop).await,
        Some(tls) => match timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
            Ok(Ok(stream)) => requests(stream, router, stop).await,
            Ok(Err(error)) => {
                tracing::debug!(listener = name, %peer, %error, "TLS handshake failed");
                return;
            }
            Err(_) => {
                tracing::debug!(listener = name, %peer, "TLS handshake took too long");
                return;
            }
        },
    };
    if let Err(error) = ended {
        tracing::debug!(listener = name, %peer, %error, "connection ended");
    }
}

async fn requests<S>(stream: S, router: Router, mut stop: watch::Receiver<bool>) -> Result<(), hyper::Error>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = TowerToHyperService::new(router.into_service::<hyper::body::Incoming>());
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        _ = stop.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

#[cfg(test)]
mod tests;
