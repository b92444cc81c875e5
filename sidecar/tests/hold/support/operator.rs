//! Plays the operator's endpoint: TLS with an authority of its own, reports remembered, credentials given.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, Stream};

use super::eventually;

/// An endpoint on a port of 127.0.0.1, on a thread that ends with the test's process.
pub(crate) struct Operator {
    pub(crate) url: String,
    pub(crate) ca_pem: String,
    seen: Arc<Mutex<Vec<Request>>>,
    password: Arc<Mutex<String>>,
}

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) token: String,
    pub(crate) body: Value,
}

impl Operator {
    /// One that gives this Redis password.
    pub(crate) fn start(password: &str) -> Self {
        let password = Arc::new(Mutex::new(password.to_owned()));
        let ca_key = KeyPair::generate().unwrap();
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_certificate = ca.self_signed(&ca_key).unwrap();
        let issuer = Issuer::new(ca, ca_key);
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let leaf = leaf.signed_by(&key, &issuer).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from(leaf.der().to_vec())],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (ca_pem, remembered) = (ca_certificate.pem(), Arc::clone(&seen));
        let (answer_ca, given) = (ca_pem.clone(), Arc::clone(&password));
        std::thread::spawn(move || {
            let config = Arc::new(config);
            for stream in listener.incoming().flatten() {
                let (config, seen, ca_pem) =
                    (Arc::clone(&config), Arc::clone(&remembered), answer_ca.clone());
                let password = given.lock().unwrap().clone();
                std::thread::spawn(move || {
                    if let Some(request) = serve(stream, config, &password, &ca_pem) {
                        seen.lock().unwrap().push(request);
                    }
                });
            }
        });
        Self { url, ca_pem, seen, password }
    }

    /// From now on it gives another password.
    pub(crate) fn set_password(&self, password: &str) {
        password.clone_into(&mut self.password.lock().unwrap());
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.seen.lock().unwrap().clone()
    }

    /// The first report of this type, once it is there.
    pub(crate) fn report(&self, kind: &str) -> Request {
        eventually(&format!("a report {kind}"), || {
            self.requests().into_iter().find(|request| request.body["fact"]["type"] == kind)
        })
    }
}

fn serve(mut stream: TcpStream, config: Arc<ServerConfig>, password: &str, ca_pem: &str) -> Option<Request> {
    let mut tls = ServerConnection::new(config).ok()?;
    let mut tls = Stream::new(&mut tls, &mut stream);
    let mut text = String::new();
    let mut chunk = [0; 4096];
    let (head, length) = loop {
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length: usize =
                header(head, "content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
            if body.len() >= length {
                break (head.to_owned(), length);
            }
        }
        let count = tls.read(&mut chunk).ok().filter(|count| *count > 0)?;
        text.push_str(std::str::from_utf8(&chunk[..count]).ok()?);
    };
    let body = &text[head.len() + 4..head.len() + 4 + length];
    let answer = if head.starts_with("GET") {
        json!({"password": password, "caPem": ca_pem})
    } else {
        json!({"caPem": ca_pem})
    }
    .to_string();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{answer}",
        answer.len()
    );
    tls.write_all(answer.as_bytes()).ok()?;
    Some(Request {
        line: head.lines().next()?.to_owned(),
        token: header(&head, "authorization")?.to_owned(),
        body: serde_json::from_str(body).unwrap_or(Value::Null),
    })
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}
