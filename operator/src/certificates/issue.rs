//! How are certificates made? From a [`Step`](super::plan::Step) to new [`Material`].

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use time::OffsetDateTime;

use super::plan::{AUTHORITY_LIFE, LEAF_LIFE, Step};
use super::{Authority, Leaf, Material};

/// How far certificates are dated back, for clients whose clocks are behind.
const DATED_BACK: SignedDuration = SignedDuration::from_hours(1);

/// Why a certificate could not be made.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// Making a key or signing failed.
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// The clock shows a time that no certificate can bear.
    #[error("the wall clock shows {0}, which no certificate can bear")]
    Clock(Timestamp),
    /// The step names an authority that the material lacks.
    #[error("there is no certificate authority named {0}")]
    NoAuthority(String),
}

/// The material after `step`; `None` where nothing is to be changed.
pub fn carry_out(
    step: &Step,
    material: Option<&Material>,
    names: &[String],
    now: Timestamp,
) -> Result<Option<Material>, IssueError> {
    match (step, material) {
        (Step::Keep, _) => Ok(None),
        (Step::StartOver, _) | (_, None) => {
            let authority = new_authority(now)?;
            let leaf = new_leaf(&authority, names, now)?;
            Ok(Some(Material { authorities: vec![authority], leaf }))
        }
        (Step::AddAuthority, Some(material)) => {
            let mut material = material.clone();
            material.authorities.push(new_authority(now)?);
            Ok(Some(material))
        }
        (Step::ReplaceLeaf { signed_by }, Some(material)) => {
            let authority = material.authorities.iter().find(|authority| &authority.name == signed_by);
            let authority = authority.ok_or_else(|| IssueError::NoAuthority(signed_by.clone()))?;
            let leaf = new_leaf(authority, names, now)?;
            Ok(Some(Material { leaf, ..material.clone() }))
        }
        (Step::DropAuthorities { names }, Some(material)) => {
            let mut material = material.clone();
            material.authorities.retain(|authority| !names.contains(&authority.name));
            Ok(Some(material))
        }
    }
}

fn new_authority(now: Timestamp) -> Result<Authority, IssueError> {
    let name = format!("FencedLease operator {}", now.as_second());
    let key = KeyPair::generate()?;
    let expires_at = now + AUTHORITY_LIFE;
    let mut params = authority_params(&name);
    params.not_before = dated(now - DATED_BACK)?;
    params.not_after = dated(expires_at)?;
    let certificate = params.self_signed(&key)?;
    Ok(Authority {
        name,
        certificate_pem: certificate.pem(),
        key_pem: key.serialize_pem(),
        made_at: now,
        expires_at,
    })
}

fn new_leaf(authority: &Authority, names: &[String], now: Timestamp) -> Result<Leaf, IssueError> {
    let issuer = Issuer::new(authority_params(&authority.name), KeyPair::from_pem(&authority.key_pem)?);
    let key = KeyPair::generate()?;
    // Never valid for longer than what signed it.
    let expires_at = (now + LEAF_LIFE).min(authority.expires_at);
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "FencedLease operator");
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.not_before = dated(now - DATED_BACK)?;
    params.not_after = dated(expires_at)?;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Leaf {
        signed_by: authority.name.clone(),
        names: names.to_vec(),
        certificate_pem: certificate.pem(),
        key_pem: key.serialize_pem(),
        made_at: now,
        expires_at,
    })
}

/// What an authority's own certificate and those that it signs must agree on.
fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn dated(instant: Timestamp) -> Result<OffsetDateTime, IssueError> {
    OffsetDateTime::from_unix_timestamp(instant.as_second()).map_err(|_| IssueError::Clock(instant))
}

#[cfg(test)]
mod tests;
