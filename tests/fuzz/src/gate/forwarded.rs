//! What goes on to the backend says what the gate says, and nothing that only the gate may say.

use std::net::{IpAddr, Ipv4Addr};

use fencedlease_gate::headers::{Client, to_backend, to_client};
use fencedlease_wire::Fence;
use fencedlease_wire::gate::{FENCE_HEADER, RESULT_HEADER};
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, UPGRADE};
use hyper::http::request::Parts;

const ADDRESS: &str = "192.0.2.7";
const OF_ONE_CONNECTION: [HeaderName; 4] = [CONNECTION, TE, TRAILER, UPGRADE];

pub(super) fn check(parts: &Parts) {
    let client = Client { address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), is_tls: false };
    for fence in [None, Fence::new(42).ok()] {
        let mut sent = parts.clone();
        to_backend(&mut sent, client, fence, Some(0));
        check_request(parts, &sent, fence);
        let once = sent.headers.clone();
        let mut again = sent;
        to_backend(&mut again, client, fence, Some(0));
        let others = |headers: &HeaderMap| {
            let mut headers = headers.clone();
            headers.remove("x-forwarded-for");
            headers
        };
        assert_eq!(others(&again.headers), others(&once), "a second gate changes more");
    }
    for is_checked in [false, true] {
        let mut headers = parts.headers.clone();
        to_client(&mut headers, is_checked);
        let results: Vec<_> = headers.get_all(RESULT_HEADER).iter().collect();
        assert_eq!(results.len(), usize::from(is_checked), "{results:?}");
        check_ours(&headers, &[RESULT_HEADER]);
    }
}

fn check_request(asked: &Parts, sent: &Parts, fence: Option<Fence>) {
    let headers = &sent.headers;
    let fences: Vec<_> = headers.get_all(FENCE_HEADER).iter().map(HeaderValue::as_bytes).collect();
    let expected: Vec<String> = fence.iter().map(ToString::to_string).collect();
    assert_eq!(fences, expected.iter().map(String::as_bytes).collect::<Vec<_>>());
    check_ours(headers, &[FENCE_HEADER]);
    let from: Vec<_> = headers.get_all("x-forwarded-for").iter().collect();
    assert!(from.len() == 1 && from[0].as_bytes().ends_with(ADDRESS.as_bytes()), "{from:?}");
    assert_eq!(headers["x-forwarded-proto"], "http");
    assert!(
        asked.headers.get_all(HOST).iter().eq(headers.get_all(HOST)) || !asked.headers.contains_key(HOST)
    );
    assert!(headers.get_all("cookie").iter().count() <= 1);
    assert_eq!(sent.method, asked.method);
    let path = |parts: &Parts| Some(parts.uri.path().to_owned()).filter(|path| !path.is_empty());
    assert_eq!(
        path(sent),
        path(asked).or_else(|| Some("/".to_owned())),
        "{} was sent for {}",
        sent.uri,
        asked.uri
    );
    assert_eq!(sent.uri.query(), asked.uri.query(), "{} was sent for {}", sent.uri, asked.uri);
    assert_eq!((sent.uri.scheme(), sent.uri.authority()), (None, None), "{}", sent.uri);
}

fn check_ours(headers: &HeaderMap, said: &[&str]) {
    for name in OF_ONE_CONNECTION.iter().filter(|name| **name != TRAILER) {
        assert!(!headers.contains_key(name), "{name} is for one connection");
    }
    let foreign = headers.keys().find(|name| {
        let name = name.as_str();
        name.starts_with("fencedlease") && !said.contains(&name)
    });
    assert_eq!(foreign, None, "somebody speaks for the gate");
}
