//! Which certificate does TLS show? The newest; handshakes that are under way keep theirs.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, server::WantsServerCert};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::Leaf;

/// The certificate that is shown, replaceable while connections are served.
#[derive(Default)]
pub struct ServedCertificate {
    current: RwLock<Option<Arc<CertifiedKey>>>,
}

/// Why a leaf cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServedError {
    /// Certificate or key is no PEM.
    #[error("the certificate or its key is not valid PEM")]
    Pem(#[from] rustls_pki_types::pem::Error),
    /// TLS takes neither.
    #[error("TLS does not take the certificate or its key")]
    Tls(#[from] rustls::Error),
    /// No crypto provider was installed at the process's start.
    #[error("no crypto provider is installed")]
    NoProvider,
}

impl ServedCertificate {
    /// Shows this leaf from the next handshake on.
    pub fn replace(&self, leaf: &Leaf) -> Result<(), ServedError> {
        let provider = CryptoProvider::get_default().ok_or(ServedError::NoProvider)?;
        let chain =
            CertificateDer::pem_slice_iter(leaf.certificate_pem.as_bytes()).collect::<Result<Vec<_>, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(leaf.key_pem.as_bytes())?;
        let certified = CertifiedKey::from_der(chain, key, provider)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(certified));
        Ok(())
    }

    /// TLS settings that show whatever is current at each handshake. HTTP/1.1 alone is offered.
    pub fn server_config(self: &Arc<Self>) -> Result<Arc<ServerConfig>, ServedError> {
        CryptoProvider::get_default().ok_or(ServedError::NoProvider)?;
        let builder: rustls::ConfigBuilder<ServerConfig, WantsServerCert> =
            ServerConfig::builder().with_no_client_auth();
        let mut config = builder.with_cert_resolver(Arc::clone(self) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

// === impl ServedCertificate ===

impl ResolvesServerCert for ServedCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for ServedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServedCertificate(…)")
    }
}

#[cfg(test)]
mod tests;
