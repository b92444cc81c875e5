//! A namespace for one test.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::report::report;
use super::wait::{Missed, PATIENCE, eventually};
use crate::error::Result;
use crate::kubectl::Kubectl;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A namespace that no other test has; deleted, with all in it, when it is dropped.
/// With `KEEP_NAMESPACES=1` it stays, for looking around after a failure.
#[derive(Debug)]
pub struct TempNamespace {
    name: String,
    kubectl: Kubectl,
}

impl TempNamespace {
    /// Makes a namespace whose name starts with `test`, and waits until pods can be made in it.
    pub fn new(kubectl: &Kubectl, test: &str) -> Result<Self> {
        let name = unique_name(test);
        kubectl.run(&["create", "namespace", &name])?;
        let made = Self { name, kubectl: kubectl.clone() };
        let account = ["wait", "--for=create", "serviceaccount/default", "--timeout=90s"];
        made.run(&account)?;
        Ok(made)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs kubectl in it and gives what it printed.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        self.kubectl.run(&self.with_namespace(arguments))
    }

    /// Runs kubectl in it with `--output=json` and gives the document.
    pub fn json(&self, arguments: &[&str]) -> Result<Value> {
        self.kubectl.json(&self.with_namespace(arguments))
    }

    /// Applies manifests in it.
    pub fn apply(&self, manifests: &str) -> Result<String> {
        crate::command::run_with_input(
            &mut self.kubectl.command(&self.with_namespace(&["apply", "--filename=-"])),
            manifests,
        )
    }

    /// Waits until `look` finds something, [`PATIENCE`] times as long if need be; a missed deadline shows pods, events, FencedLeases and logs.
    /// An error of `look` counts as "not yet", and the last one is shown.
    pub fn eventually<T>(
        &self,
        within: Duration,
        what: &str,
        look: impl FnMut() -> Result<Option<T>>,
    ) -> std::result::Result<T, Missed> {
        eventually(within * PATIENCE, what, look, || report(&self.kubectl, &self.name))
    }

    fn with_namespace<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        let mut all = vec!["--namespace", self.name.as_str()];
        all.extend(arguments);
        all
    }
}

impl Drop for TempNamespace {
    fn drop(&mut self) {
        if std::env::var_os("KEEP_NAMESPACES").is_some() {
            eprintln!("namespace {} is kept", self.name);
            return;
        }
        // A namespace gives its pods their whole grace, in which they keep the nodes busy for other tests.
        let pods = ["--namespace", &self.name, "delete", "pods", "--all", "--grace-period=1", "--wait=false"];
        let _ = self.kubectl.run(&pods);
        // What cannot be deleted goes with the cluster; the test has its verdict already.
        let _ = self.kubectl.run(&["delete", "namespace", &self.name, "--wait=false"]);
    }
}

fn unique_name(test: &str) -> String {
    let word: String = test
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' })
        .take(40)
        .collect();
    let moment =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() % 1_000_000);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}-{moment}-{}-{number}", word.trim_matches('-'), process::id())
}
