//! HTTP/2, plainly and over TLS, by a client that others wrote: curl.

use std::process::Command;

use crate::support::{Gate, Nginx, Setup, Store, holder};

/// What curl prints: the version, the status and the gate's word.
fn curl(gate: &Gate, scheme: &str, flags: &[&str], fence: u64, body: &str) -> String {
    let output = Command::new("curl")
        .args(["-sS", "-o", "/dev/null", "-w", "%{http_version} %{http_code} %header{fencedlease-result}"])
        .args(flags)
        .args(["-H", &format!("FencedLease: {}", holder(fence).ticket()), "-X", "PUT", "--data-binary", body])
        .arg(format!("{scheme}://localhost:{}/a", gate.address.port()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn http_2_without_tls_is_checked_and_streamed_alike() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let gate = Setup::new(nginx.address).start(&store);
    let flags = ["--http2-prior-knowledge"];
    assert_eq!(curl(&gate, "http", &flags, 5, "five"), "2 201 passed");
    assert_eq!(curl(&gate, "http", &flags, 4, "four"), "2 412 refused");
    assert_eq!(curl(&gate, "http", &["--http1.1"], 5, "more"), "1.1 204 passed");
    let file = store.as_ref().join("large");
    std::fs::write(&file, vec![b'x'; 9_000_000]).unwrap();
    assert_eq!(curl(&gate, "http", &flags, 6, &format!("@{}", file.display())), "2 204 passed");
    assert_eq!(nginx.file("a").unwrap().len(), 9_000_000);
}

#[test]
fn over_tls_clients_choose_either_version_and_a_new_certificate_is_taken_up() {
    let (nginx, store) = (Nginx::start(), Store::new());
    let path = |name: &str| store.as_ref().join(name).display().to_string();
    let (certificate, key) = (path("tls.crt"), path("tls.key"));
    let renew = || {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    };
    renew();
    let gate = Setup::new(nginx.address).with(&["--tls-cert", &certificate, "--tls-key", &key]).start(&store);
    let trust = |version| [version, "--cacert", &certificate];
    assert_eq!(curl(&gate, "https", &trust("--http2"), 5, "five"), "2 201 passed");
    assert_eq!(curl(&gate, "https", &trust("--http1.1"), 5, "more"), "1.1 204 passed");
    renew();
    crate::support::eventually("the new certificate is shown", || {
        let tried = Command::new("curl")
            .args(["-sS", "--cacert", &certificate, &format!("https://localhost:{}/a", gate.address.port())])
            .output();
        tried.unwrap().status.success()
    });
}

#[test]
fn a_backend_over_tls_is_believed_by_its_own_authority_alone() {
    let (nginx, inner_store) = (Nginx::start(), Store::new());
    let path = |name: &str| inner_store.as_ref().join(name).display().to_string();
    let (certificate, key, other) = (path("tls.crt"), path("tls.key"), path("other.crt"));
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let stranger = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(&other, stranger.cert.pem()).unwrap();
    // A gate with TLS is the backend of another one.
    let inner =
        Setup::new(nginx.address).with(&["--tls-cert", &certificate, "--tls-key", &key]).start(&inner_store);
    let backend = format!("https://localhost:{}", inner.address.port());
    std::fs::write(nginx.folder.path().join("files/a"), "over TLS").unwrap();
    let believing = |authorities: &str| {
        let store = Store::new();
        let flags = ["--backend", &backend, "--backend-ca", authorities];
        let gate = Setup::new(inner.address).with(&flags).start(&store);
        let read = gate.client().send("GET", "/a", &[], b"");
        let written = gate.client().put("/a", holder(5), "x");
        (read.status, read.text(), written.status, written.result().to_owned())
    };
    // The ticket ends at the first gate, so the second one answers 428: the request was there.
    assert_eq!(believing(&certificate), (200, "over TLS".to_owned(), 428, "passed".to_owned()));
    let (read, _, written, result) = believing(&other);
    assert_eq!((read, written, result.as_str()), (502, 502, "unavailable"));
}
