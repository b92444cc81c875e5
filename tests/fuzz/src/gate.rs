//! What clients show to a gate: a request's head. The first line is `METHOD URI`, each other one `NAME: VALUE`.

mod forwarded;
mod routes;
mod tickets;

use fencedlease_wire::gate::TICKET_HEADER;
use hyper::http::request::Parts;
use hyper::{Method, Request, Uri};

pub(crate) const WORDS: &[&str] = &[
    "GET /",
    "PUT /reports/a\n",
    "POST /.fencedlease/v1/raise\n",
    "MOVE /reports/a\nDestination: /reports/b\n",
    "DELETE http://gate:8080/reports/old/a\n",
    "OPTIONS *\n",
    "CONNECT gate:80\n",
    "/reports/old",
    "/..",
    "/./",
    "//",
    "%2e%2e",
    "%2f",
    "%5c",
    "%3b",
    "%25",
    ";x=1",
    "?a=b",
    "#",
    "FencedLease: v1;resource=shop/report;fence=42;",
    "holder=0123456789abcdef;",
    "time_ms=1764684611123;",
    "signature=",
    "Connection: ",
    "close",
    "keep-alive",
    "Host: a\n",
    "X-Forwarded-For: 10.0.0.1\n",
    "X-Forwarded-Proto: https\n",
    "Fencedlease-Fence: 7\n",
    "FencedLease_Result: passed\n",
    "X-HTTP-Method-Override: DELETE\n",
    "x_http_method: PUT\n",
    "Cookie: a=b\n",
    "Transfer-Encoding: chunked\n",
    "Content-Length: 1\n",
    "Upgrade: h2c\n",
    "TE: trailers\n",
    "Expect: 100-continue\n",
];

pub(crate) fn run(bytes: &[u8]) {
    let Some(parts) = parts(bytes) else { return };
    routes::check(&parts);
    for value in parts.headers.get_all(TICKET_HEADER) {
        tickets::check(value);
    }
    forwarded::check(&parts);
}

/// The request's head as an HTTP library gives it; `None` where it would not.
fn parts(bytes: &[u8]) -> Option<Parts> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let (method, uri) = str::from_utf8(lines.next()?).ok()?.split_once(' ')?;
    let mut request = Request::builder().method(method.parse::<Method>().ok()?).uri(uri.parse::<Uri>().ok()?);
    for line in lines.filter(|line| !line.is_empty()) {
        let colon = line.iter().position(|byte| *byte == b':')?;
        request = request.header(&line[..colon], line[colon + 1..].trim_ascii());
    }
    Some(request.body(()).ok()?.into_parts().0)
}
