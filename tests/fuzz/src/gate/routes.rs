//! Whatever way a backend reads a path, it is of the resource whose ticket was asked for.

use std::sync::LazyLock;

use fencedlease_gate::route::{Guard, Reads, Route, Rules};
use fencedlease_wire::gate::{GuardedResource, RAISE_PATH};
use hyper::http::request::Parts;
use hyper::{Method, Uri};

const PREFIXES: [(&str, &str); 3] =
    [("shop/report", "/reports/"), ("shop/old", "/reports/old/"), ("shop/other", "/other/")];

static OPEN: LazyLock<Rules> = LazyLock::new(|| rules(Reads::Open));
static FRESH: LazyLock<Rules> = LazyLock::new(|| rules(Reads::Fresh));

fn rules(reads: Reads) -> Rules {
    let guard = |(resource, prefix): (&str, &str)| Guard {
        resource: resource.parse().unwrap(),
        prefix: prefix.to_owned(),
    };
    Rules::new(PREFIXES.into_iter().map(guard).collect(), reads)
}

pub(super) fn check(parts: &Parts) {
    let Parts { method, uri, headers, .. } = parts;
    for (has_ticket, rules, is_open) in [(false, &OPEN, true), (true, &OPEN, false), (false, &FRESH, false)] {
        match rules.route(method, uri, headers, has_ticket) {
            Route::Raise => {
                assert!(uri.path() == RAISE_PATH && *method == Method::POST, "{method} {uri} raises");
            }
            Route::Open => {
                assert!(is_open, "{method} {uri} needs no ticket");
                let is_read = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
                assert!(is_read, "{method} {uri} needs no ticket");
                assert!(!headers.keys().any(|name| is_override(name.as_str())), "{headers:?}");
                assert!(readings(uri).iter().all(|path| of(path).is_some()), "{uri} is guarded by nobody");
            }
            Route::Checked(resource) => {
                stays(uri, resource);
                for destination in headers.get_all("destination") {
                    let destination: Uri = destination.to_str().unwrap().parse().unwrap();
                    stays(&destination, resource);
                }
            }
            Route::Unroutable(problem) => assert!(!problem.to_string().is_empty()),
        }
    }
    assert_eq!(
        matches!(FRESH.route(method, uri, headers, true), Route::Checked(_) | Route::Raise),
        matches!(FRESH.route(method, uri, headers, false), Route::Checked(_) | Route::Raise),
        "a ticket makes {uri} another's"
    );
}

/// Whether a backend may take what a header of this name says for the method.
fn is_override(name: &str) -> bool {
    let name = name.replace('_', "-");
    ["x-http-method-override", "x-http-method", "x-method-override"].contains(&name.as_str())
}

fn stays(uri: &Uri, resource: &GuardedResource) {
    assert!(!uri.path().starts_with("/.fencedlease/"), "{uri} goes to the backend");
    for path in readings(uri) {
        assert_eq!(of(&path), Some(resource.as_str()), "{path:?} is what a backend may read in {uri}");
    }
}

/// The resource of a path that has one way to be read.
fn of(path: &str) -> Option<&'static str> {
    let is_below = |prefix: &str| path.starts_with(prefix) || prefix.strip_suffix('/') == Some(path);
    let found = PREFIXES.iter().filter(|(_, prefix)| is_below(prefix));
    found.max_by_key(|(_, prefix)| prefix.len()).map(|(resource, _)| *resource)
}

/// The path as backends read it: decoded once, and with what each of them does besides.
fn readings(uri: &Uri) -> Vec<String> {
    let decoded = decoded(uri.path());
    let bare = without_parameters(&decoded);
    let mut all = vec![decoded, bare];
    for change in [slashes, single, resolved, |path: &str| resolved(&single(&slashes(path)))] {
        let changed: Vec<String> = all.iter().map(|path| change(path)).collect();
        all.extend(changed);
    }
    all
}

fn decoded(path: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| str::from_utf8(digits).ok());
        let value = digits.filter(|_| *byte == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(value.unwrap_or(*byte));
        rest = if value.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn without_parameters(path: &str) -> String {
    let bare = path.split('/').map(|segment| segment.split(';').next().unwrap_or_default());
    bare.collect::<Vec<_>>().join("/")
}

fn slashes(path: &str) -> String {
    path.replace('\\', "/")
}

fn single(path: &str) -> String {
    let mut single = String::new();
    for char in path.chars() {
        if char != '/' || !single.ends_with('/') {
            single.push(char);
        }
    }
    single
}

fn resolved(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}
