//! HTTP/1.1 for one client, whoever it is: bounded in buffers and in patience.

use std::io;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};

/// The longest head of a request, and what is buffered at a time.
const MAX_BUFFER_BYTES: usize = 16 * 1024;

/// Serves one client until it leaves, or takes longer than `patience` for the head of a request or between two.
pub(super) async fn serve_client<S>(stream: S, routes: Router, patience: Duration)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // A client that breaks off or speaks no HTTP is its own trouble.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .max_buf_size(MAX_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes))
        .await;
}

/// Whether a failure to accept is no reason to stop: descriptors have run out, or the client is gone already.
pub(super) fn is_passing(error: &io::Error) -> bool {
    let codes = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM, libc::ECONNABORTED, libc::EINTR];
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}
