//! Who is who in a cluster: its own authority, and a certificate for each component.

use std::fs;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use crate::error::{Error, Result};

/// A certificate and its key, both in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The private key, PKCS #8.
    pub key: String,
}

/// An authority that signs for one cluster.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    identity: Identity,
}

/// Who a certificate is for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject<'a> {
    /// The user name that Kubernetes sees.
    pub name: &'a str,
    /// The group that Kubernetes sees.
    pub group: Option<&'a str>,
    /// Host names that it serves under.
    pub hosts: &'a [&'a str],
    /// Addresses that it serves under.
    pub addresses: &'a [IpAddr],
}

impl Authority {
    /// Makes a new authority. Fails only if no key can be made.
    pub fn new() -> Result<Self> {
        let params = authority_params();
        let key = KeyPair::generate()?;
        let identity = Identity { certificate: params.self_signed(&key)?.pem(), key: key.serialize_pem() };
        Ok(Self { issuer: Issuer::new(params, key), identity })
    }

    /// The authority's own certificate and key.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Signs a certificate that is good for serving and for calling.
    pub fn issue(&self, subject: &Subject<'_>) -> Result<Identity> {
        let hosts: Vec<String> = subject.hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts)?;
        params.subject_alt_names.extend(subject.addresses.iter().map(|it| SanType::IpAddress(*it)));
        params.distinguished_name.push(DnType::CommonName, subject.name);
        if let Some(group) = subject.group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Identity { certificate, key: key.serialize_pem() })
    }

    /// Reads an authority back that [`Identity::write`] wrote.
    pub fn read(folder: &Path, name: &str) -> Result<Self> {
        let identity = Identity::read(folder, name)?;
        let key = KeyPair::from_pem(&identity.key)?;
        Ok(Self { issuer: Issuer::new(authority_params(), key), identity })
    }
}

impl Identity {
    /// Writes `NAME.crt` and `NAME.key` (mode 0600) into a folder.
    pub fn write(&self, folder: &Path, name: &str) -> Result<()> {
        let (certificate, key) = files(folder, name);
        fs::write(&certificate, &self.certificate).map_err(Error::file("write", &certificate))?;
        fs::write(&key, &self.key).map_err(Error::file("write", &key))?;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).map_err(Error::file("protect", &key))
    }

    /// Reads back what [`Identity::write`] wrote.
    pub fn read(folder: &Path, name: &str) -> Result<Self> {
        let (certificate, key) = files(folder, name);
        Ok(Self {
            certificate: fs::read_to_string(&certificate).map_err(Error::file("read", &certificate))?,
            key: fs::read_to_string(&key).map_err(Error::file("read", &key))?,
        })
    }
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "fencedlease-test-cluster");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    params
}

fn files(folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    (folder.join(format!("{name}.crt")), folder.join(format!("{name}.key")))
}

#[cfg(test)]
mod tests;
