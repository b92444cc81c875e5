use std::path::PathBuf;

use fencedlease_wire::Fence;
use hyper::StatusCode;

use super::*;

fn gate(url: &str, own_authorities: bool) -> Result<Gate, UrlError> {
    Gate::new(&GateSettings { name: "one".into(), url: url.into(), own_authorities }, Path::new("/tls"))
}

#[test]
fn a_url_says_where_a_gate_is_and_whether_the_way_is_encrypted() {
    let plain = gate("http://gate.shop.svc", false).unwrap();
    assert_eq!((plain.address.as_str(), plain.authority.as_str()), ("gate.shop.svc:80", "gate.shop.svc"));
    assert_eq!(plain.tls, None);
    let own = gate("https://gate.shop.svc:8443/", true).unwrap();
    assert_eq!((own.address.as_str(), own.authority.as_str()), ("gate.shop.svc:8443", "gate.shop.svc:8443"));
    assert_eq!(own.tls.unwrap().authorities, Some(PathBuf::from("/tls/one/ca.crt")));
    let public = gate("https://[::1]", false).unwrap();
    assert_eq!((public.address.as_str(), public.tls.unwrap().authorities), ("[::1]:443", None));
}

#[test]
fn a_url_that_leads_elsewhere_is_refused() {
    for url in
        ["gate.shop:8443", "ftp://gate", "https://gate/path", "https://user@gate", "https://", "", "http:/x"]
    {
        assert_eq!(gate(url, false).unwrap_err(), UrlError, "{url:?}");
    }
}

fn verdict(status: u16, body: &str) -> GateAnswer {
    let resource = "shop/report".parse().unwrap();
    verdict::of(StatusCode::from_u16(status).unwrap(), body.as_bytes(), &resource, Fence::new(42).unwrap())
}

fn failed(status: u16, body: &str) -> String {
    match verdict(status, body) {
        GateAnswer::Failed { message } => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_a_gate_that_says_it_has_this_fence_has_stored_it() {
    let stored =
        |resource: &str, fence: u64| format!(r#"{{"resource":"{resource}","fence":{fence},"unsettled":3}}"#);
    assert_eq!(verdict(200, &stored("shop/report", 42)), GateAnswer::Stored { unsettled: 3 });
    for (status, body) in [
        (200, stored("shop/report", 41)),
        (200, stored("shop/ledger", 42)),
        (201, stored("shop/report", 42)),
        (200, String::new()),
        (200, "<html>welcome</html>".to_owned()),
        (404, "not found".to_owned()),
    ] {
        assert!(failed(status, &body).contains("see that the URL is that of a gate"), "{status} {body}");
    }
}

#[test]
fn a_refusal_that_names_a_fence_as_great_or_greater_says_that_the_gate_is_ahead() {
    let refused = |highest: &str| format!(r#"{{"code":"FenceLower","message":"no"{highest}}}"#);
    let highest = Fence::new(57).unwrap();
    assert_eq!(verdict(412, &refused(",\"highest\":57")), GateAnswer::Ahead { highest });
    let same = GateAnswer::Ahead { highest: Fence::new(42).unwrap() };
    assert_eq!(verdict(412, &refused(",\"highest\":42")), same);
    for (status, highest) in [(412, ""), (412, ",\"highest\":41"), (503, ",\"highest\":57")] {
        assert!(failed(status, &refused(highest)).contains("FenceLower"), "{status} {highest}");
    }
}

#[test]
fn what_a_gate_says_is_passed_on_with_the_remedy_and_bounded() {
    let told = failed(503, r#"{"code":"StoreFailed","message":"the store\ncannot keep it"}"#);
    assert_eq!(told, "it answered 503 StoreFailed: the storecannot keep it");
    let told = failed(401, r#"{"code":"TicketForged","message":"the header is not believed"}"#);
    assert!(told.contains("different keys"), "{told}");
    let long = format!(r#"{{"code":"StoreFailed","message":"{}"}}"#, "x".repeat(5000));
    assert!(failed(503, &long).len() < 400);
}
