use super::*;

fn parse(more: &[&str]) -> Result<Args, String> {
    let plain = ["gate", "--backend", "http://files:9000", "--guard", "shop/report=/reports/"];
    Args::try_parse_from(plain.iter().chain(more)).map_err(|error| error.to_string())
}

#[test]
fn the_defaults_are_in_order() {
    let args = parse(&[]).unwrap();
    assert_eq!(args.problem(), None);
    assert_eq!(args.backend, BackendAddress { host: "files".to_owned(), port: 9000, is_tls: false });
    assert_eq!(args.waits(true).closed, Duration::ZERO);
    assert_eq!(args.waits(false).closed, args.drain_ms);
}

#[test]
fn what_is_wrong_is_refused_with_what_is_right() {
    for (flags, says) in [
        (["--guard", "report=/x/"], "name"),
        (["--guard", "shop/report=x/"], "begin and end"),
        (["--guard", "shop/report"], "NAMESPACE/NAME=/PATH/"),
        (["--floor", "shop/report=0"], "fence"),
        (["--floor", "shop/report"], "NAMESPACE/NAME=FENCE"),
        (["--drain-ms", "0"], "whole number"),
        (["--tls-cert", "/x"], "--tls-key"),
    ] {
        let error = parse(&flags).unwrap_err();
        assert!(error.contains(says), "{flags:?}: {error}");
    }
}

#[test]
fn a_backend_is_a_url_without_a_path() {
    let address = |host: &str, port, is_tls| Ok(BackendAddress { host: host.to_owned(), port, is_tls });
    assert_eq!(backend("http://files"), address("files", 80, false));
    assert_eq!(backend("https://files.shop.svc/"), address("files.shop.svc", 443, true));
    assert_eq!(backend("http://[::1]:9000"), address("::1", 9000, false));
    for text in ["files:9000", "http://files/path", "ftp://files", "http://", ""] {
        assert!(backend(text).unwrap_err().contains("http://HOST:PORT"), "{text}");
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    for (flags, says) in [
        (vec!["--drain-ms", "10000"], "--admission-timeout-ms"),
        (vec!["--backend-ca", "/x"], "--backend-ca"),
        (vec!["--guard", "shop/other=/reports/"], "one path twice"),
        (vec!["--floor", "shop/other=4"], "no --guard"),
    ] {
        let problem = parse(&flags).unwrap().problem().unwrap_or_default();
        assert!(problem.contains(says), "{flags:?}: {problem}");
    }
}
