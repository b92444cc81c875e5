//! Starts pods: a sidecar, guards in namespaces of their own, and a Redis behind a proxy that can fail.

pub(crate) mod container;
pub(crate) mod http;
pub(crate) mod operator;
pub(crate) mod pod;
pub(crate) mod world;

use std::time::Duration;

use fencedlease_sidecar::clock;

/// How long anything may take before a test gives up. Nothing is asserted to be this fast.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Tries until `found` answers something, and says what was missing if it never does.
pub(crate) fn eventually<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let until = clock::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(clock::now() < until, "in {PATIENCE:?} there was never {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
