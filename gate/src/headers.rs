//! Which headers go through? What is for one connection stays on it, and what the gate says nobody else can say.

use std::net::IpAddr;

use fencedlease_wire::Fence;
use fencedlease_wire::gate::{FENCE_HEADER, GateResult, RESULT_HEADER};
use hyper::header::{
    CONNECTION, COOKIE, EXPECT, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};
use hyper::http::request::Parts;

const OURS: &str = "fencedlease";
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const OF_ONE_CONNECTION: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-authenticate"),
    HeaderName::from_static("proxy-authorization"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Who sent a request, and how.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// Its address.
    pub address: IpAddr,
    /// Whether it came over TLS.
    pub is_tls: bool,
}

/// Makes a client's request one for the backend, with the fence that was checked and a body of this many bytes, if
/// that is known.
pub fn to_backend(parts: &mut Parts, client: Client, fence: Option<Fence>, length: Option<u64>) {
    let headers = &mut parts.headers;
    strip(headers);
    headers.remove(EXPECT);
    headers.remove(TRAILER);
    if length.is_none() {
        // Unless it is told so, hyper sends no such body with GET and HEAD.
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    join(headers, &COOKIE, "; ");
    if !headers.contains_key(HOST)
        && let Some(authority) = parts.uri.authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        headers.insert(HOST, host);
    }
    if let Ok(address) = HeaderValue::from_str(&client.address.to_canonical().to_string()) {
        headers.append(FORWARDED_FOR, address);
        join(headers, &FORWARDED_FOR, ", ");
    }
    headers.insert(FORWARDED_PROTO, HeaderValue::from_static(if client.is_tls { "https" } else { "http" }));
    if let Some(fence) = fence {
        headers.insert(FENCE_HEADER, HeaderValue::from(fence.get()));
    }
    // As it is displayed, a path that was left out before a query is `/`.
    let path = parts.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
    parts.uri = path.parse().unwrap_or_default();
    parts.version = hyper::Version::HTTP_11;
}

/// Makes the backend's answer one for the client.
pub fn to_client(headers: &mut HeaderMap, is_checked: bool) {
    strip(headers);
    if is_checked {
        headers.insert(RESULT_HEADER, HeaderValue::from_static(GateResult::Passed.as_str()));
    }
}

fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    // A client must not have the gate take away what the backend relies on.
    let kept = [HOST, FORWARDED_FOR, FORWARDED_PROTO];
    for name in named.iter().filter(|name| !kept.contains(name)).chain(&OF_ONE_CONNECTION) {
        headers.remove(name);
    }
    let is_ours = |name: &HeaderName| name.as_str().starts_with(OURS);
    let ours: Vec<HeaderName> = headers.keys().filter(|name| is_ours(name)).cloned().collect();
    for name in ours {
        headers.remove(name);
    }
}

/// Several lines of one header as one.
fn join(headers: &mut HeaderMap, name: &HeaderName, between: &str) {
    let values: Vec<&[u8]> = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
    if values.len() > 1
        && let Ok(value) = HeaderValue::from_bytes(&values.join(between.as_bytes()))
    {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests;
