//! How is a proxy in another process told what to do? Over HTTP: `GET /state` answers a [`Snapshot`],
//! `PUT /fault` takes an [`Order`] and answers the new state, `GET /healthz` answers once it listens.

use std::io;
use std::net::IpAddr;

use axum::body::Bytes as Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, put};
use axum::{Json, Router};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpStream};

use crate::counters::Snapshot;
use crate::fault::{Clients, Fault};
use crate::proxy::ProxyHandle;

/// The body of `PUT /fault`.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Order {
    /// Whom the fault is for; absent for every client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<IpAddr>,
    /// The fault.
    pub fault: Fault,
}

/// Why a proxy could not be told or asked.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Nothing listens there, or the connection broke.
    #[error("no connection to the fault proxy's control port {address}")]
    Connection {
        /// `host:port` of the control port.
        address: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The answer is not HTTP.
    #[error("the fault proxy's control port {address} does not answer")]
    Http {
        /// `host:port` of the control port.
        address: String,
        /// Where the exchange broke.
        #[source]
        source: hyper::Error,
    },
    /// It refused.
    #[error("the fault proxy answered {status}: {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// Its words.
        message: String,
    },
    /// The request or the answer could not be written or read as JSON.
    #[error("what the fault proxy takes and answers is JSON of another shape")]
    Shape(#[from] serde_json::Error),
    /// The request could not be made from these words.
    #[error("{address} cannot be the address of a fault proxy's control port")]
    Address {
        /// What was given.
        address: String,
        /// What is wrong with it.
        #[source]
        source: hyper::http::Error,
    },
}

/// Serves the control port until the task is dropped; fails only if the socket does.
pub async fn serve_control(listener: TcpListener, proxy: ProxyHandle) -> io::Result<()> {
    let routes = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/state", get(async |State(proxy): State<ProxyHandle>| Json(proxy.snapshot())))
        .route("/fault", put(set_fault))
        .with_state(proxy);
    axum::serve(listener, routes).await
}

async fn set_fault(
    State(proxy): State<ProxyHandle>,
    body: Body,
) -> Result<Json<Snapshot>, (StatusCode, String)> {
    let order: Order = serde_json::from_slice(&body).map_err(|error| {
        let example = r#"{"client": "10.1.2.3", "fault": {"kind": "drop", "direction": "replies"}}"#;
        let kinds = "pass, delay (with delayMs), hold, drop, cut";
        (
            StatusCode::BAD_REQUEST,
            format!(
                "the body is not a fault: {error}. It looks like {example}; the kinds are {kinds}; \
                     without client it is for every client\n"
            ),
        )
    })?;
    proxy.set(order.client.map_or(Clients::All, Clients::One), order.fault);
    Ok(Json(proxy.snapshot()))
}

/// Asks the proxy whose control port is at `address` (`host:port`) for its state.
pub async fn fetch_snapshot(address: &str) -> Result<Snapshot, ControlError> {
    exchange(address, Method::GET, "/state", Vec::new()).await
}

/// Sets a fault at the proxy whose control port is at `address` (`host:port`) and gives the new state.
pub async fn send_order(address: &str, order: Order) -> Result<Snapshot, ControlError> {
    exchange(address, Method::PUT, "/fault", serde_json::to_vec(&order)?).await
}

async fn exchange(
    address: &str,
    method: Method,
    path: &str,
    body: Vec<u8>,
) -> Result<Snapshot, ControlError> {
    let http = |source| ControlError::Http { address: address.to_owned(), source };
    let stream = TcpStream::connect(address)
        .await
        .map_err(|source| ControlError::Connection { address: address.to_owned(), source })?;
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", address)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))
        .map_err(|source| ControlError::Address { address: address.to_owned(), source })?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(http)?;
    let answer = async {
        let response = sender.send_request(request).await.map_err(http)?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(http)?.to_bytes();
        Ok::<_, ControlError>((status, body))
    };
    tokio::pin!(connection, answer);
    let (status, body) = tokio::select! {
        answered = &mut answer => answered?,
        broken = &mut connection => {
            broken.map_err(http)?;
            answer.await?
        }
    };
    if status.is_success() {
        return Ok(serde_json::from_slice(&body)?);
    }
    let message = String::from_utf8_lossy(&body).trim().to_owned();
    Err(ControlError::Refused { status: status.as_u16(), message })
}
