//! One request over the Unix socket, on a connection of its own.

use std::path::Path;

use fencedlease_wire::socket::ErrorBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use crate::ClientError;

/// How much of an answer that cannot be read is shown.
const SHOWN: usize = 200;

/// An answer whose body is still to come. The connection ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) response: Response<Incoming>,
    _connection: JoinSet<()>,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

pub(crate) async fn send(
    socket: &Path,
    method: Method,
    path: &'static str,
    body: Vec<u8>,
) -> Result<Answer, ClientError> {
    let stream = UnixStream::connect(socket)
        .await
        .map_err(|source| ClientError::Connection { path: socket.to_owned(), source })?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let mut connections = JoinSet::new();
    connections.spawn(async move {
        // What breaks the connection breaks the body too, and is told there.
        let _ = connection.await;
    });
    let mut request = Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = method;
    *request.uri_mut() = hyper::Uri::from_static(path);
    request.headers_mut().insert("host", hyper::header::HeaderValue::from_static("lease"));
    let response = sender.send_request(request).await?;
    Ok(Answer { response, _connection: connections })
}

// === impl Answer ===

impl Answer {
    pub(crate) async fn whole(self) -> Result<Whole, ClientError> {
        let status = self.response.status();
        let body = self.response.into_body().collect().await?.to_bytes();
        Ok(Whole { status, body })
    }
}

// === impl Whole ===

impl Whole {
    /// The body, if the status says that all is well; else what the sidecar refused.
    pub(crate) fn accepted(self) -> Result<Bytes, ClientError> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        let ErrorBody { error } = parse(&self.body)?;
        Err(ClientError::Refused { status: self.status.as_u16(), code: error.code, message: error.message })
    }
}

pub(crate) fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(text).map_err(|source| ClientError::Shape {
        text: String::from_utf8_lossy(text).chars().take(SHOWN).collect(),
        source,
    })
}
