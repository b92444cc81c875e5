//! One request to a gate. It has no deadline of its own.

use fencedlease_wire::gate::{RAISE_PATH, TICKET_HEADER};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::Gate;

/// The longest answer that is read: a gate's own have a few hundred bytes.
const MAX_ANSWER_BYTES: usize = 16 * 1024;

/// Why there is no answer. The texts are for people.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    #[error("no connection to {address}: {source}; see that the gate runs and that this pod may reach it")]
    Connect { address: String, source: std::io::Error },
    #[error("no TLS with {address}: {text}")]
    Tls { address: String, text: String },
    #[error("{address} broke off: {text}; see that it is a gate, and whether its URL is http or https")]
    Http { address: String, text: String },
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Asks the gate to raise the fence that this ticket has: status and body of the answer.
pub(super) async fn raise(gate: &Gate, ticket: String) -> Result<(StatusCode, Bytes), AskError> {
    let broken = |text: String| AskError::Http { address: gate.address.clone(), text };
    let stream = TokioIo::new(connect(gate).await?);
    let handshake = hyper::client::conn::http1::handshake(stream).await;
    let (mut sender, connection) = handshake.map_err(|error| broken(error.to_string()))?;
    let request = Request::post(RAISE_PATH)
        .header("host", &gate.authority)
        .header(TICKET_HEADER, ticket)
        .header("connection", "close")
        .body(Empty::<Bytes>::new())
        .map_err(|error| broken(error.to_string()))?;
    let answer = async {
        let response = sender.send_request(request).await.map_err(|error| broken(error.to_string()))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
        Ok((status, body.map_err(|error| broken(error.to_string()))?.to_bytes()))
    };
    tokio::pin!(connection, answer);
    tokio::select! {
        answered = &mut answer => answered,
        // It may have been read to its end before it ended.
        _ = &mut connection => answer.await,
    }
}

async fn connect(gate: &Gate) -> Result<Box<dyn Stream>, AskError> {
    let address = || gate.address.clone();
    let stream = TcpStream::connect(&gate.address)
        .await
        .map_err(|source| AskError::Connect { address: address(), source })?;
    let Some(tls) = &gate.tls else { return Ok(Box::new(stream)) };
    let encrypted = tls.wrap(stream, &gate.address).await;
    Ok(Box::new(encrypted.map_err(|error| AskError::Tls { address: address(), text: error.to_string() })?))
}
