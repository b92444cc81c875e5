//! The way to a gate is encrypted, and the gate proves who it is.

use std::fs;

use fencedlease_gates_tests::World;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// A certificate authority, and a certificate for the gate.
struct Certificates {
    authority: String,
    certificate: String,
    key: String,
}

impl Certificates {
    fn of(host: &str) -> anyhow::Result<Self> {
        let ca_key = KeyPair::generate()?;
        let mut ca = CertificateParams::new(Vec::new())?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = ca.self_signed(&ca_key)?.pem();
        let issuer = Issuer::new(ca, ca_key);
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new(vec![host.to_owned()])?.signed_by(&key, &issuer)?.pem();
        Ok(Self { authority, certificate, key: key.serialize_pem() })
    }
}

#[test]
fn only_a_gate_of_the_given_authority_is_told_the_fence() -> anyhow::Result<()> {
    let world = World::new()?;
    let [certificate, key, authority] =
        ["gate.crt", "gate.key", "ca.crt"].map(|name| world.place.path().join(name).display().to_string());
    let (right, wrong) = (Certificates::of("localhost")?, Certificates::of("localhost")?);
    fs::write(&certificate, &right.certificate)?;
    fs::write(&key, &right.key)?;
    fs::write(&authority, &wrong.authority)?;
    let _gate = world.place.start(&["--tls-cert", &certificate, "--tls-key", &key])?;
    let gate = format!("reports=https://localhost:{}", world.place.address.port());
    let holder = world.holder_with("one", &["--gate", &gate, "--gate-ca-file", &authority])?;
    let told = holder.waits_saying("no TLS with localhost")?;
    assert!(told.contains("has the name localhost") && !told.contains("tls.serverName"), "{told}");
    // It is read anew at each try.
    fs::write(&authority, &right.authority)?;
    holder.active()?;
    Ok(())
}

#[test]
fn plain_http_to_a_gate_with_tls_is_told_as_such() -> anyhow::Result<()> {
    let world = World::new()?;
    let certificates = Certificates::of("localhost")?;
    let [certificate, key] = ["gate.crt", "gate.key"].map(|name| world.place.path().join(name));
    fs::write(&certificate, &certificates.certificate)?;
    fs::write(&key, &certificates.key)?;
    let flags = [certificate.display().to_string(), key.display().to_string()];
    let _gate = world.place.start(&["--tls-cert", &flags[0], "--tls-key", &flags[1]])?;
    let holder = world.holder("one")?;
    let told = holder.waits_saying("broke off")?;
    assert!(told.contains("http or https"), "{told}");
    Ok(())
}
