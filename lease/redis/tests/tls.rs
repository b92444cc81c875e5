//! TLS to a real Redis: the server is checked, we can be, and nothing ever falls back to plain text.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of tests fails as tests do"
)]

mod support;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fencedlease_faults::RedisServer;
use fencedlease_redis::{Acquire, CallError, Client, Credentials, Identity, Place, Server, Tls};
use fencedlease_wire::OwnerToken;
use fencedlease_wire::endpoint::RedisStandingKind;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

const TIMEOUT: Duration = Duration::from_secs(5);

/// A Redis that speaks TLS on a port of its own, and who signed its certificate.
struct Secured {
    folder: TempDir,
    _redis: RedisServer,
    address: String,
}

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Certificate and key for these names, as `NAME.crt` and `NAME.key`.
fn issue(folder: &Path, name: &str, names: &[&str], by: &CertifiedIssuer<'_, KeyPair>) {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(names).unwrap().signed_by(&key, by).unwrap();
    fs::write(folder.join(format!("{name}.crt")), certificate.pem()).unwrap();
    fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
}

impl Secured {
    fn start(clients: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path();
        let (own, foreign) = (authority("own"), authority("foreign"));
        fs::write(path.join("ca.crt"), own.pem()).unwrap();
        fs::write(path.join("foreign.crt"), foreign.pem()).unwrap();
        issue(path, "server", &["127.0.0.1", "redis.shop.svc"], &own);
        issue(path, "client", &["holder"], &own);
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let file = |name: &str| path.join(name).display().to_string();
        let redis = RedisServer::with_args(&[
            "--tls-port",
            &port.to_string(),
            "--tls-cert-file",
            &file("server.crt"),
            "--tls-key-file",
            &file("server.key"),
            "--tls-ca-cert-file",
            &file("ca.crt"),
            "--tls-auth-clients",
            clients,
        ])
        .unwrap();
        Self { address: format!("127.0.0.1:{port}"), folder, _redis: redis }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn trusting(&self, authorities: &str) -> Tls {
        Tls { authorities: Some(self.file(authorities)), ..Tls::default() }
    }

    fn identity(&self) -> Identity {
        Identity { certificate: self.file("client.crt"), key: self.file("client.key") }
    }

    fn client(&self, tls: Option<Tls>) -> Client {
        let server =
            Server { address: self.address.clone(), tls, database: 0, client_name: "test".to_owned() };
        Client::new(Place { server, keys: support::keys(), credentials: Arc::new(Credentials::default()) })
    }

    async fn acquire(&self, tls: Option<Tls>) -> Result<(), CallError> {
        let acquire = Acquire {
            token: OwnerToken::from_random([7; 16]),
            ttl: Duration::from_millis(50),
            floor: None,
            holder: "pod".to_owned(),
        };
        self.client(tls).acquire(&acquire, TIMEOUT).await.map(|_| ())
    }

    async fn refused(&self, tls: Option<Tls>, word: &str) {
        let error = self.acquire(tls).await.unwrap_err();
        assert!(!error.may_have_happened(), "{error}");
        let text = error.to_string();
        assert!(text.contains(word) && text.contains(&self.address), "{text}");
        assert_eq!(error.standing(), RedisStandingKind::TlsFailed, "{text}");
    }
}

#[tokio::test]
async fn a_server_with_a_trusted_certificate_and_the_right_name_is_spoken_to() {
    let redis = Secured::start("no");
    redis.acquire(Some(redis.trusting("ca.crt"))).await.unwrap();
    let named = Tls { server_name: Some("redis.shop.svc".to_owned()), ..redis.trusting("ca.crt") };
    redis.acquire(Some(named)).await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_not_who_it_should_be_gets_no_word() {
    let redis = Secured::start("no");
    redis.refused(Some(redis.trusting("foreign.crt")), "certificate").await;
    redis.refused(Some(Tls::default()), "certificate").await;
    let other = Tls { server_name: Some("redis.other.svc".to_owned()), ..redis.trusting("ca.crt") };
    redis.refused(Some(other), "redis.other.svc").await;
    let bad = Tls { server_name: Some("not a name".to_owned()), ..redis.trusting("ca.crt") };
    redis.refused(Some(bad), "not a name").await;
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_gets_ours() {
    let redis = Secured::start("yes");
    let with = Tls { identity: Some(redis.identity()), ..redis.trusting("ca.crt") };
    redis.acquire(Some(with)).await.unwrap();
    let error = redis.acquire(Some(redis.trusting("ca.crt"))).await.unwrap_err();
    // In TLS 1.3 the server refuses after the handshake, as far as the client can see.
    assert!(matches!(error, CallError::Tls { .. } | CallError::Connect { .. }), "{error:?}");
}

#[tokio::test]
async fn files_that_are_missing_or_wrong_are_named() {
    let redis = Secured::start("no");
    redis.refused(Some(redis.trusting("missing.crt")), "missing.crt").await;
    fs::write(redis.file("empty.crt"), "nothing").unwrap();
    redis.refused(Some(redis.trusting("empty.crt")), "empty.crt has no certificate").await;
    let identity = Identity { key: redis.file("server.key"), ..redis.identity() };
    redis.refused(Some(Tls { identity: Some(identity), ..redis.trusting("ca.crt") }), "fit").await;
}

#[tokio::test]
async fn plain_text_to_a_server_of_tls_and_the_other_way_round_are_errors() {
    let redis = Secured::start("no");
    let error = redis.acquire(None).await.unwrap_err();
    assert!(!error.may_have_happened(), "{error:?}");
    let plain = RedisServer::start().unwrap();
    let server = Server {
        address: plain.address().to_string(),
        tls: Some(redis.trusting("ca.crt")),
        database: 0,
        client_name: "test".to_owned(),
    };
    let mut client =
        Client::new(Place { server, keys: support::keys(), credentials: Arc::new(Credentials::default()) });
    // It waits for the end of what it takes for a line.
    let error = client.inspect(Duration::from_millis(500)).await.unwrap_err();
    assert!(matches!(error, CallError::ConnectTimeout { .. } | CallError::Tls { .. }), "{error:?}");
}

#[tokio::test]
async fn a_renewed_authority_counts_at_the_next_connection() {
    let redis = Secured::start("no");
    let trusted = redis.file("trusted.crt");
    fs::copy(redis.file("foreign.crt"), &trusted).unwrap();
    redis.refused(Some(redis.trusting("trusted.crt")), "certificate").await;
    fs::copy(redis.file("ca.crt"), &trusted).unwrap();
    redis.acquire(Some(redis.trusting("trusted.crt"))).await.unwrap();
}
