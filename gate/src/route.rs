//! Which resource does a request touch, and must its fence be checked? Pure: method, path and headers in.

use fencedlease_wire::gate::{GuardedResource, RAISE_PATH};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Uri};

/// Which paths belong to which resource.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Guard {
    /// The resource.
    pub resource: GuardedResource,
    /// The paths that begin with this, percent-decoded. Begins and ends with `/`.
    pub prefix: String,
}

/// What reads without a ticket may do.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Reads {
    /// Pass unchecked. A read that shows a ticket is checked all the same.
    Open,
    /// Be refused: every read shows a ticket.
    Fresh,
}

/// The rules of a gate.
#[derive(Clone, Debug)]
pub struct Rules {
    guards: Vec<Guard>,
    reads: Reads,
}

/// What to do with a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Route<'a> {
    /// It raises a fence.
    Raise,
    /// It needs a ticket of this resource.
    Checked(&'a GuardedResource),
    /// It is a read that the rules let through.
    Open,
    /// It cannot be judged.
    Unroutable(Unroutable),
}

/// Why a request belongs to no resource, or to two.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Unroutable {
    /// Below our own prefix there is nothing else.
    #[error("below /.fencedlease/ there is POST {RAISE_PATH} and nothing else")]
    NotFound,
    /// CONNECT and TRACE do not go to a backend.
    #[error("CONNECT and TRACE are not passed on")]
    Method,
    /// Two programs may read this path in two ways.
    #[error(
        "the path has '.' or '..' as a segment, '//', a backslash, an encoded '/', or a ';' that hides a guarded path: \
         write it plainly"
    )]
    UnclearPath,
    /// No guard has this path.
    #[error("no --guard of this gate has this path, so it is not passed on")]
    NotGuarded,
    /// The Destination header leads out of the resource.
    #[error("the Destination header names a path of another resource, or none that is guarded")]
    Destination,
    /// A header that some backends take the path from leads out of the resource.
    #[error(
        "the header X-Original-URL or X-Rewrite-URL names a path of another resource, or none that is guarded: leave it \
         out"
    )]
    OtherPath,
}

/// The path of a request's other end.
const DESTINATION: HeaderName = HeaderName::from_static("destination");
/// By these a backend may take a request for one of another path.
const PATHS: [HeaderName; 2] =
    [HeaderName::from_static("x-original-url"), HeaderName::from_static("x-rewrite-url")];
/// By these a GET may mean something else to a backend.
const OVERRIDES: [HeaderName; 3] = [
    HeaderName::from_static("x-http-method-override"),
    HeaderName::from_static("x-http-method"),
    HeaderName::from_static("x-method-override"),
];

/// Whether a header has one of these names. Backends of the CGI kind read `_` and `-` as one.
fn is_one_of(names: &[HeaderName], name: &HeaderName) -> bool {
    let name = name.as_str();
    let plain = name.bytes().map(|byte| if byte == b'_' { b'-' } else { byte });
    names.iter().any(|it| it.as_str().len() == name.len() && plain.clone().eq(it.as_str().bytes()))
}

impl Rules {
    /// Rules with the longest prefix first.
    pub fn new(mut guards: Vec<Guard>, reads: Reads) -> Self {
        guards.sort_by_key(|guard| std::cmp::Reverse(guard.prefix.len()));
        Self { guards, reads }
    }

    /// Every resource, once.
    pub fn resources(&self) -> Vec<GuardedResource> {
        let mut all: Vec<GuardedResource> = self.guards.iter().map(|guard| guard.resource.clone()).collect();
        all.sort();
        all.dedup();
        all
    }

    /// What to do with a request, which shows a ticket or does not.
    pub fn route(&self, method: &Method, uri: &Uri, headers: &HeaderMap, has_ticket: bool) -> Route<'_> {
        let path = uri.path();
        if path.starts_with("/.fencedlease/") {
            let is_raise = path == RAISE_PATH && method == Method::POST;
            return if is_raise { Route::Raise } else { Route::Unroutable(Unroutable::NotFound) };
        }
        if matches!(*method, Method::CONNECT | Method::TRACE) {
            return Route::Unroutable(Unroutable::Method);
        }
        let resource = match self.resource(path) {
            Ok(resource) => resource,
            Err(problem) => return Route::Unroutable(problem),
        };
        let leads_out = |names: &[HeaderName]| {
            headers.iter().any(|(name, value)| is_one_of(names, name) && !self.leads_to(value, resource))
        };
        if leads_out(&[DESTINATION]) {
            return Route::Unroutable(Unroutable::Destination);
        }
        if leads_out(&PATHS) {
            return Route::Unroutable(Unroutable::OtherPath);
        }
        let is_read = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
            && !headers.keys().any(|name| is_one_of(&OVERRIDES, name));
        if is_read && !has_ticket && self.reads == Reads::Open {
            Route::Open
        } else {
            Route::Checked(resource)
        }
    }

    fn resource(&self, path: &str) -> Result<&GuardedResource, Unroutable> {
        // Where everything is one resource, no reading of a path leads out of it.
        if let [only] = self.guards.as_slice()
            && only.prefix == "/"
        {
            return Ok(&only.resource);
        }
        let path = plain(path).ok_or(Unroutable::UnclearPath)?;
        let resource = self.below(&path);
        // Some backends do not see a segment's parameters, so they may not lead from one resource to another.
        if path.contains(';') && self.below(&without_parameters(&path)) != resource {
            return Err(Unroutable::UnclearPath);
        }
        resource.ok_or(Unroutable::NotGuarded)
    }

    fn below(&self, path: &str) -> Option<&GuardedResource> {
        let is_below =
            |guard: &&Guard| path.starts_with(&guard.prefix) || guard.prefix.strip_suffix('/') == Some(path);
        self.guards.iter().find(is_below).map(|guard| &guard.resource)
    }

    fn leads_to(&self, place: &HeaderValue, resource: &GuardedResource) -> bool {
        let uri = place.to_str().ok().and_then(|text| text.parse::<Uri>().ok());
        uri.is_some_and(|uri| self.resource(uri.path()) == Ok(resource))
    }
}

/// The path percent-decoded, if there is one way to read it.
fn plain(path: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        let plain = if byte == b'%' {
            let mut digit =
                || char::from(bytes.next()?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            let byte = digit()? << 4 | digit()?;
            (byte != b'/' && byte != 0 && byte != b'%').then_some(byte)?
        } else {
            byte
        };
        decoded.push(plain);
    }
    let decoded = String::from_utf8(decoded).ok()?;
    let is_dots = |segment: &str| matches!(segment.split(';').next(), Some("." | ".."));
    let is_clear = decoded.starts_with('/')
        && !decoded.contains("//")
        && !decoded.contains('\\')
        && !decoded.split('/').any(is_dots);
    is_clear.then_some(decoded)
}

/// The path as a backend reads it that drops what follows a `;` in a segment, and a segment that is then empty.
fn without_parameters(path: &str) -> String {
    let bare = path.split('/').map(|segment| (segment, segment.split(';').next().unwrap_or_default()));
    let kept = bare.filter(|(segment, bare)| segment.is_empty() || !bare.is_empty());
    kept.map(|(_, bare)| bare).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests;
