//! How is the operator's endpoint spoken to? HTTP/1.1 over TLS, one connection a request, with the pod's
//! projected token. Nothing that keeps a lease waits for it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fencedlease_wire::endpoint::{CREDENTIALS_PATH, Credentials, REPORT_PATH, Report, ReportAnswer};
use fencedlease_wire::settings::EndpointSettings;
use fencedlease_wire::socket::ErrorBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::private::replace;

/// How long a request may take in all.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest answer that is read.
const MAX_ANSWER_BYTES: usize = 256 * 1024;
/// In the private volume: the certificate authorities of the last answer.
const CA_FILE: &str = "endpoint-ca.pem";

/// The endpoint, as one pod sees it.
#[derive(Debug)]
pub struct Operator {
    uri: Uri,
    host: String,
    port: u16,
    token_file: PathBuf,
    ca_file: PathBuf,
    ca_pem: Mutex<String>,
}

/// Why the endpoint did not do what it was asked. The texts are for people.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The URL cannot be used.
    #[error("the endpoint's URL {0:?} is not https://HOST:PORT; set operator's --endpoint-url")]
    Url(String),
    /// The token is not there.
    #[error("cannot read the endpoint's token {path}")]
    Token {
        /// Where it should be.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The certificate authorities cannot be used.
    #[error("cannot use the certificate authorities for the endpoint: {0}")]
    Authorities(String),
    /// No connection.
    #[error("no connection to the operator's endpoint {address}")]
    Connection {
        /// `host:port`.
        address: String,
        /// What the system or TLS said.
        #[source]
        source: std::io::Error,
    },
    /// Not HTTP, or broken off.
    #[error("the operator's endpoint broke off")]
    Http(#[from] hyper::Error),
    /// The request could not be made.
    #[error("cannot make a request to the operator's endpoint")]
    Request(#[from] hyper::http::Error),
    /// No answer in time.
    #[error("the operator's endpoint did not answer within {} s", TIMEOUT.as_secs())]
    Timeout,
    /// It refused.
    #[error("the operator's endpoint answered {status}: {message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// Its words.
        message: String,
    },
    /// The answer is not what it should be.
    #[error("the operator's endpoint answered something else than expected: {0}")]
    Answer(String),
}

impl Operator {
    /// The endpoint of these settings. The token is read anew for each request; certificate authorities that
    /// an earlier answer brought are taken from `state_dir`.
    pub fn new(
        settings: &EndpointSettings,
        token_file: &Path,
        state_dir: &Path,
    ) -> Result<Self, OperatorError> {
        let wrong = || OperatorError::Url(settings.url.clone());
        let uri: Uri = settings.url.parse().map_err(|_| wrong())?;
        if uri.scheme_str() != Some("https") {
            return Err(wrong());
        }
        let host = uri.host().ok_or_else(wrong)?.trim_matches(['[', ']']).to_owned();
        let port = uri.port_u16().unwrap_or(443);
        let ca_file = state_dir.join(CA_FILE);
        let kept = std::fs::read_to_string(&ca_file).ok().filter(|pem| connector(pem).is_ok());
        Ok(Self {
            host,
            port,
            uri,
            token_file: token_file.to_owned(),
            ca_file,
            ca_pem: Mutex::new(kept.unwrap_or_else(|| settings.ca_pem.clone())),
        })
    }

    /// Tells the operator a fact.
    pub async fn report(&self, report: &Report) -> Result<(), OperatorError> {
        let body = serde_json::to_vec(report).map_err(|error| OperatorError::Answer(error.to_string()))?;
        let answer: ReportAnswer = self.ask(Method::POST, REPORT_PATH.to_owned(), body).await?;
        self.trust(answer.ca_pem);
        Ok(())
    }

    /// User and password of the installation's Redis.
    pub async fn credentials(&self, namespace: &str, lease: &str) -> Result<Credentials, OperatorError> {
        let path = format!("{CREDENTIALS_PATH}?namespace={namespace}&lease={lease}");
        let answer: Credentials = self.ask(Method::GET, path, Vec::new()).await?;
        self.trust(answer.ca_pem.clone());
        Ok(answer)
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: String,
        body: Vec<u8>,
    ) -> Result<T, OperatorError> {
        let exchange = self.exchange(method, path, body);
        let answer = tokio::time::timeout(TIMEOUT, exchange).await.map_err(|_| OperatorError::Timeout)??;
        serde_json::from_slice(&answer).map_err(|error| OperatorError::Answer(error.to_string()))
    }

    async fn exchange(&self, method: Method, path: String, body: Vec<u8>) -> Result<Bytes, OperatorError> {
        let stream = self.connect().await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", self.uri.authority().map_or(self.host.as_str(), |authority| authority.as_str()))
            .header("authorization", format!("Bearer {}", self.token()?))
            .header("content-type", "application/json")
            .header("connection", "close")
            .body(Full::new(Bytes::from(body)))?;
        let answer = async {
            let response = sender.send_request(request).await?;
            let status = response.status();
            let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
            let body = body.map_err(|error| OperatorError::Answer(error.to_string()))?.to_bytes();
            checked(status, body)
        };
        tokio::pin!(connection, answer);
        tokio::select! {
            answered = &mut answer => answered,
            broken = &mut connection => {
                broken?;
                answer.await
            }
        }
    }

    async fn connect(&self) -> Result<tokio_rustls::client::TlsStream<TcpStream>, OperatorError> {
        let connection =
            |source| OperatorError::Connection { address: format!("{}:{}", self.host, self.port), source };
        let connector = connector(&self.ca_pem.lock().unwrap_or_else(PoisonError::into_inner))?;
        let name =
            ServerName::try_from(self.host.clone()).map_err(|_| OperatorError::Url(self.uri.to_string()))?;
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(connection)?;
        connector.connect(name, stream).await.map_err(connection)
    }

    fn token(&self) -> Result<String, OperatorError> {
        let token = std::fs::read_to_string(&self.token_file)
            .map_err(|source| OperatorError::Token { path: self.token_file.clone(), source })?;
        Ok(token.trim().to_owned())
    }

    /// From now on, also after a restart of the sidecar. Authorities that cannot be read are not taken.
    fn trust(&self, ca_pem: String) {
        let mut present = self.ca_pem.lock().unwrap_or_else(PoisonError::into_inner);
        if *present == ca_pem {
            return;
        }
        match connector(&ca_pem) {
            Ok(_) => {
                if let Err(error) = replace(&self.ca_file, ca_pem.as_bytes()) {
                    tracing::warn!(%error, "cannot keep the endpoint's certificate authorities");
                }
                *present = ca_pem;
            }
            Err(error) => tracing::warn!(%error, "the endpoint's new certificate authorities are not taken"),
        }
    }
}

fn connector(ca_pem: &str) -> Result<TlsConnector, OperatorError> {
    let wrong = |error: &dyn std::fmt::Display| OperatorError::Authorities(error.to_string());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca_pem.as_bytes()) {
        roots.add(certificate.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
    }
    if roots.is_empty() {
        return Err(wrong(&"there is none"));
    }
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

fn checked(status: StatusCode, body: Bytes) -> Result<Bytes, OperatorError> {
    if status.is_success() {
        return Ok(body);
    }
    let message = serde_json::from_slice::<ErrorBody>(&body).map_or_else(
        |_| String::from_utf8_lossy(&body).chars().take(200).collect(),
        |body| body.error.message,
    );
    Err(OperatorError::Refused { status: status.as_u16(), message })
}
