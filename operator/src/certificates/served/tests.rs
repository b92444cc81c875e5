use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{ServerName, UnixTime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;
use crate::certificates::issue::carry_out;
use crate::certificates::plan::{Step, plan};
use crate::certificates::{Authority, Material};
use crate::serve::Server;

const NAME: &str = "fencedlease-operator.system.svc";

#[derive(Debug)]
struct At(Timestamp);

impl TimeProvider for At {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = u64::try_from(self.0.as_second()).ok()?;
        Some(UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds)))
    }
}

/// A client that trusts `bundle` and whose clock shows `now`.
fn client(bundle: &str, now: Timestamp) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_details(provider, Arc::new(At(now)))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

async fn connect(address: SocketAddr, client: &TlsConnector) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await.unwrap();
    client.connect(ServerName::try_from(NAME).unwrap(), stream).await
}

async fn ask(stream: &mut TlsStream<TcpStream>) -> String {
    stream.write_all(b"GET /hello HTTP/1.1\r\nhost: operator\r\n\r\n").await.unwrap();
    let mut answer = [0; 1024];
    let length = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

fn steps(material: Option<Material>, now: Timestamp) -> Material {
    let names = [NAME.to_owned()];
    let mut material = material;
    for _ in 0..4 {
        let step = plan(material.as_ref(), &names, now);
        match carry_out(&step, material.as_ref(), &names, now).unwrap() {
            Some(next) => material = Some(next),
            None => break,
        }
    }
    assert_eq!(plan(material.as_ref(), &names, now), Step::Keep);
    material.unwrap()
}

#[tokio::test]
async fn three_years_of_rotation_are_met_by_clients_with_yesterdays_bundle() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let shown = Arc::new(ServedCertificate::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    let router = Router::new().route("/hello", get(async || "well"));
    let tls = Some(shown.server_config().unwrap());
    let server = tokio::spawn(Server { name: "test", listener, tls, router }.run(stopped));

    let start = Timestamp::from_second(1_800_000_000).unwrap();
    let mut material = steps(None, start);
    shown.replace(&material.leaf).unwrap();
    let mut kept = connect(address, &client(&material.bundle_pem(), start)).await.unwrap();
    let (first_authority, mut yesterday) = (material.authorities[0].name.clone(), material.bundle_pem());
    let mut authorities: Vec<Authority> = Vec::new();
    let mut leaves = 1;
    for day in 1..=1100 {
        let now = start + SignedDuration::from_hours(24 * day);
        let next = steps(Some(material.clone()), now);
        if next.leaf != material.leaf {
            leaves += 1;
            shown.replace(&next.leaf).unwrap();
        }
        let mut stream = connect(address, &client(&yesterday, now)).await.unwrap();
        assert!(ask(&mut stream).await.ends_with("well"), "day {day}");
        yesterday = next.bundle_pem();
        material = next;
        for authority in &material.authorities {
            if !authorities.contains(authority) {
                authorities.push(authority.clone());
            }
        }
    }
    assert_eq!(authorities.len(), 3, "at the start, after 550 and after 1100 days");
    assert!(material.authorities.iter().all(|authority| authority.name != first_authority));
    assert!(leaves > 30, "only {leaves} leaves in 1100 days");
    assert!(
        ask(&mut kept).await.ends_with("well"),
        "a connection outlives the certificate that it began with"
    );
    drop(kept);
    stop.send_replace(true);
    server.await.unwrap();
}

#[tokio::test]
async fn a_client_that_trusts_another_authority_gets_nothing() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let shown = Arc::new(ServedCertificate::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    let tls = Some(shown.server_config().unwrap());
    let server = Server { name: "test", listener, tls, router: Router::new() };
    let server = tokio::spawn(server.run(stopped));
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    shown.replace(&steps(None, now).leaf).unwrap();
    let other = steps(None, now).bundle_pem();
    assert!(connect(address, &client(&other, now)).await.is_err());
    stop.send_replace(true);
    server.await.unwrap();
}

#[test]
fn a_leaf_that_is_no_certificate_is_refused_and_the_old_one_stays() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let served = ServedCertificate::default();
    let mut leaf = steps(None, Timestamp::from_second(1_800_000_000).unwrap()).leaf;
    served.replace(&leaf).unwrap();
    leaf.key_pem = "nothing".to_owned();
    assert!(served.replace(&leaf).is_err());
    assert!(served.current.read().unwrap().is_some());
}
