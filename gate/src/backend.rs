//! Connections to the backend, HTTP/1.1. One request at a time on each; what was used well is used again.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use crate::body::Upload;

/// A connection that was idle for longer is not used again: the backend may be about to close it.
const IDLE: Duration = Duration::from_secs(15);
/// How many idle connections are kept.
const MOST_IDLE: usize = 256;

/// Where the backend is, and how it is spoken to.
#[derive(Clone)]
pub struct Target {
    /// `host:port`.
    pub address: String,
    /// TLS, and the name that its certificate must have; `None` speaks plainly.
    pub tls: Option<(TlsConnector, ServerName<'static>)>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
}

/// The backend, as one thread has it.
pub struct Backend {
    target: Target,
    idle: Mutex<Vec<(Connection, Instant)>>,
}

/// One connection.
pub struct Connection {
    sender: SendRequest<Upload>,
    task: JoinHandle<()>,
    is_used: bool,
}

/// A connection that is on an answer's way, with the pool that it came from.
pub struct Lent {
    connection: Connection,
    backend: Arc<Backend>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The system or the peer refused.
    #[error("cannot connect to the backend")]
    Io(#[from] io::Error),
    /// It took too long.
    #[error("the backend did not accept a connection in time")]
    TooLong,
    /// HTTP could not be begun.
    #[error("cannot begin HTTP with the backend")]
    Http(#[from] hyper::Error),
}

impl Backend {
    /// A backend with no connections yet.
    pub fn new(target: Target) -> Self {
        Self { target, idle: Mutex::new(Vec::new()) }
    }

    /// An idle connection that is still open.
    pub async fn idle(&self) -> Option<Connection> {
        loop {
            let (mut connection, since) = self.lock().pop()?;
            if since.elapsed() < IDLE && connection.sender.ready().await.is_ok() {
                connection.is_used = true;
                return Some(connection);
            }
        }
    }

    /// A new connection.
    pub async fn connect(&self) -> Result<Connection, ConnectError> {
        timeout(self.target.connect_timeout, self.open()).await.unwrap_or(Err(ConnectError::TooLong))
    }

    async fn open(&self) -> Result<Connection, ConnectError> {
        let stream = TcpStream::connect(&self.target.address).await?;
        stream.set_nodelay(true)?;
        match &self.target.tls {
            None => begin(TokioIo::new(stream)).await,
            Some((connector, name)) => {
                begin(TokioIo::new(connector.connect(name.clone(), stream).await?)).await
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Connection, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Where a request is handed in.
    pub fn sender(&mut self) -> &mut SendRequest<Upload> {
        &mut self.sender
    }

    /// Whether it has carried a request before.
    pub fn is_used(&self) -> bool {
        self.is_used
    }

    /// Closes it, and returns when nothing more can be sent on it.
    pub async fn close(self) {
        self.task.abort();
        // Aborted, as it should be, or at its end already.
        let _ = self.task.await;
    }

    /// The connection with the pool that it goes back to.
    pub fn lent(self, backend: &Arc<Backend>) -> Lent {
        Lent { connection: self, backend: Arc::clone(backend) }
    }
}

impl Lent {
    /// The answer is at its end.
    pub fn give_back(self) {
        let Self { connection, backend } = self;
        let mut idle = backend.lock();
        if idle.len() < MOST_IDLE && !connection.sender.is_closed() {
            idle.push((connection, Instant::now()));
        }
    }
}

async fn begin<S>(stream: TokioIo<S>) -> Result<Connection, ConnectError>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let (sender, connection) = http1::Builder::new().handshake(stream).await?;
    let task = tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = &error as &dyn std::error::Error, "connection to the backend ended");
        }
    });
    Ok(Connection { sender, task, is_used: false })
}
