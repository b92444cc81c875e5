//! How is the way to Redis, or to a gate, encrypted? Files are read anew at each connection, so that a renewed certificate needs no
//! restart.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// TLS with a check of the server's certificate. There is no way to leave the check out.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Tls {
    /// The name that the certificate must have; `None` is the host of the address.
    pub server_name: Option<String>,
    /// The certificate authorities that count, in PEM; `None` are those that browsers trust.
    pub authorities: Option<PathBuf>,
    /// How we prove who we are, if the server asks for it.
    pub identity: Option<Identity>,
}

/// A certificate of our own.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Identity {
    /// The certificate and what leads to its authority, in PEM.
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
}

/// Why there is no encrypted connection. Each text says what to look at.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be used.
    #[error("cannot read {}: {text}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        text: String,
    },
    /// A file has none.
    #[error("{} has no certificate in PEM", path.display())]
    NoCertificate {
        /// Which.
        path: PathBuf,
    },
    /// What proves who we are cannot be used.
    #[error("certificate and key do not fit each other: {0}")]
    Identity(rustls::Error),
    /// The server is called what no certificate can say.
    #[error("{0:?} is no name that a certificate can have")]
    Name(String),
    /// The server does not prove who it is, or speaks no TLS.
    #[error("{0}. See that the certificate is of the authority that is trusted here and has the name {1}")]
    Handshake(std::io::Error, String),
}

impl Tls {
    /// Encrypts a connection to this `host:port`. Has no deadline of its own.
    pub async fn wrap(&self, stream: TcpStream, address: &str) -> Result<TlsStream<TcpStream>, TlsError> {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let name = self.server_name.as_deref().unwrap_or(host).trim_matches(['[', ']']);
        let server = ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Name(name.to_owned()))?;
        let connector = TlsConnector::from(Arc::new(self.config()?));
        let handshake = connector.connect(server, stream).await;
        handshake.map_err(|error| TlsError::Handshake(error, name.to_owned()))
    }

    fn config(&self) -> Result<ClientConfig, TlsError> {
        let mut roots = RootCertStore::empty();
        match &self.authorities {
            Some(path) => {
                for certificate in certificates(path)? {
                    let unusable =
                        |error: rustls::Error| TlsError::File { path: path.clone(), text: error.to_string() };
                    roots.add(certificate).map_err(unusable)?;
                }
            }
            None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Identity)?
            .with_root_certificates(roots);
        match &self.identity {
            None => Ok(config.with_no_client_auth()),
            Some(Identity { certificate, key }) => {
                let unreadable = |error: rustls::pki_types::pem::Error| TlsError::File {
                    path: key.clone(),
                    text: error.to_string(),
                };
                let private = PrivateKeyDer::from_pem_file(key).map_err(unreadable)?;
                config.with_client_auth_cert(certificates(certificate)?, private).map_err(TlsError::Identity)
            }
        }
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unreadable = |error: rustls::pki_types::pem::Error| TlsError::File {
        path: path.to_owned(),
        text: error.to_string(),
    };
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).map_err(unreadable)?.collect();
    let found = found.map_err(unreadable)?;
    if found.is_empty() { Err(TlsError::NoCertificate { path: path.to_owned() }) } else { Ok(found) }
}
