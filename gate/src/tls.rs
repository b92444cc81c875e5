//! TLS towards clients, with a certificate that is read anew while the gate runs; and towards the backend.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, InvalidDnsNameError, PrivateKeyDer, ServerName};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The certificate that is shown, and where it comes from.
pub struct Certificate {
    chain: PathBuf,
    key: PathBuf,
    current: RwLock<Option<Arc<CertifiedKey>>>,
}

/// Why TLS cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read as PEM.
    #[error("cannot read {path} as PEM")]
    Pem {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: rustls_pki_types::pem::Error,
    },
    /// TLS takes neither.
    #[error("TLS does not take what {path} has")]
    Tls {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: rustls::Error,
    },
    /// The backend's host is no name for a certificate.
    #[error("--backend has the host {host:?}, which no certificate can have")]
    Name {
        /// The host.
        host: String,
        /// Why not.
        #[source]
        source: InvalidDnsNameError,
    },
    /// No crypto provider was installed at the process's start.
    #[error("no crypto provider is installed")]
    NoProvider,
}

impl Certificate {
    /// The certificate in these two files.
    pub fn load(chain: &Path, key: &Path) -> Result<Arc<Self>, TlsError> {
        let certificate = Self { chain: chain.to_owned(), key: key.to_owned(), current: RwLock::default() };
        certificate.reload()?;
        Ok(Arc::new(certificate))
    }

    /// Reads the files anew; handshakes from now on see what they have. Where they are wrong, nothing changes.
    pub fn reload(&self) -> Result<(), TlsError> {
        let provider = CryptoProvider::get_default().ok_or(TlsError::NoProvider)?;
        let chain = certificates(&self.chain)?;
        let pem = |source| TlsError::Pem { path: self.key.clone(), source };
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(pem)?;
        let tls = |source| TlsError::Tls { path: self.chain.clone(), source };
        let certified = CertifiedKey::from_der(chain, key, provider).map_err(tls)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(certified));
        Ok(())
    }

    /// What accepts connections with it, HTTP/2 and HTTP/1.1.
    pub fn acceptor(self: &Arc<Self>) -> Result<TlsAcceptor, TlsError> {
        CryptoProvider::get_default().ok_or(TlsError::NoProvider)?;
        let resolver = Arc::clone(self) as Arc<dyn ResolvesServerCert>;
        let mut config = ServerConfig::builder().with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// TLS to a backend whose certificate these authorities signed for this host.
pub fn connector(authorities: &Path, host: &str) -> Result<(TlsConnector, ServerName<'static>), TlsError> {
    CryptoProvider::get_default().ok_or(TlsError::NoProvider)?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authorities)? {
        let tls = |source| TlsError::Tls { path: authorities.to_owned(), source };
        roots.add(certificate).map_err(tls)?;
    }
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = ServerName::try_from(host.to_owned())
        .map_err(|source| TlsError::Name { host: host.to_owned(), source })?;
    Ok((TlsConnector::from(Arc::new(config)), name))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = |source| TlsError::Pem { path: path.to_owned(), source };
    CertificateDer::pem_file_iter(path).map_err(pem)?.collect::<Result<Vec<_>, _>>().map_err(pem)
}

// === impl Certificate ===

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("chain", &self.chain).finish_non_exhaustive()
    }
}
