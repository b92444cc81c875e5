//! Where a test plays: a namespace of its own, with the operator of this checkout in the cluster.

use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use fencedlease_cluster::command::run_with_input;
use fencedlease_cluster::error::Error;
use fencedlease_cluster::progress::Progress;
use fencedlease_cluster::testing::TempNamespace;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::images;
use crate::operator::{OperatorAway, install_once};
use crate::workload::Workload;

/// A namespace for one test. It is deleted with all in it at the end; with `KEEP_NAMESPACES=1` it stays.
#[derive(Debug)]
pub struct Stage {
    cluster: Cluster,
    namespace: TempNamespace,
    // Given back when the namespace is gone.
    _share: Share,
}

/// Tests of one program run side by side, but for those that change what all of them use.
static CLUSTER: RwLock<()> = RwLock::new(());

/// A test's part in the cluster, held for as long as the test lasts.
#[derive(Debug)]
#[expect(dead_code, reason = "it is held, not read")]
enum Share {
    SideBySide(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

impl Stage {
    /// A namespace whose name begins with `test`. Fails if no cluster answers or the operator cannot be installed.
    pub fn open(test: &str) -> Result<Self> {
        Self::without_operator(test)?.with_operator()
    }

    /// The same for a test that changes what all tests use, such as the operator: no other one of its program runs
    /// meanwhile.
    pub fn open_alone(test: &str) -> Result<Self> {
        let alone = CLUSTER.write().unwrap_or_else(PoisonError::into_inner);
        Self::begin(test, Share::Alone(alone))?.with_operator()
    }

    /// As [`Stage::open`], whether the operator is in the cluster or not.
    pub fn without_operator(test: &str) -> Result<Self> {
        let beside = CLUSTER.read().unwrap_or_else(PoisonError::into_inner);
        Self::begin(test, Share::SideBySide(beside))
    }

    fn with_operator(self) -> Result<Self> {
        install_once(&self.cluster)?;
        Ok(self)
    }

    fn begin(test: &str, share: Share) -> Result<Self> {
        let cluster = Cluster::in_use()?;
        images_once(&cluster)?;
        let namespace = TempNamespace::new(cluster.kubectl(), test)?;
        // Shells on nodes are privileged; some clusters refuse that where nothing is said.
        let label = "pod-security.kubernetes.io/enforce=privileged";
        cluster.kubectl().run(&["label", "namespace", namespace.name(), label])?;
        Ok(Self { cluster, namespace, _share: share })
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The namespace's name.
    pub fn namespace(&self) -> &str {
        self.namespace.name()
    }

    /// Runs kubectl in the namespace and gives what it printed. Fails with its message.
    pub fn kubectl(&self, words: &[&str]) -> Result<String> {
        Ok(self.namespace.run(words)?)
    }

    /// Runs kubectl, which is to be refused, and gives the message. Fails if it is not.
    pub fn refused(&self, words: &[&str]) -> Result<String> {
        let mut command = self.command(words);
        refusal(fencedlease_cluster::command::run(&mut command))
    }

    /// Applies a manifest in the namespace.
    pub fn apply(&self, manifest: &Value) -> Result<String> {
        self.apply_yaml(&manifest.to_string())
    }

    /// Applies manifests that are written as YAML.
    pub fn apply_yaml(&self, manifests: &str) -> Result<String> {
        Ok(self.namespace.apply(&images::as_known_to(self.cluster.target(), manifests))?)
    }

    /// Creates an object, which may have a name that is only generated.
    pub fn create(&self, manifest: &Value) -> Result<String> {
        let mut command = self.command(&["create", "--filename=-"]);
        let known = images::as_known_to(self.cluster.target(), &manifest.to_string());
        Ok(run_with_input(&mut command, &known)?)
    }

    /// Applies a manifest that is to be refused, and gives the message. Fails if it is not.
    pub fn apply_refused(&self, manifest: &Value) -> Result<String> {
        let mut command = self.command(&["apply", "--filename=-"]);
        refusal(run_with_input(&mut command, &manifest.to_string()))
    }

    /// Starts a workload; does not wait for its pods.
    pub fn start(&self, workload: &Workload) -> Result<String> {
        self.apply(&workload.manifest())
    }

    /// An object as the API server has it. `words` are what follows `kubectl get`.
    pub fn get<T: DeserializeOwned>(&self, words: &[&str]) -> Result<T> {
        Ok(self.try_get(words)?)
    }

    /// Looks again and again until `look` finds something; an error of it counts as "not yet". A missed deadline
    /// shows pods, events, FencedLeases and logs of the namespace.
    pub fn eventually<T>(
        &self,
        within: Duration,
        what: &str,
        mut look: impl FnMut(&Self) -> Result<Option<T>>,
    ) -> Result<T> {
        let mut last = None;
        let found = self.namespace.eventually(within, what, || {
            Ok(look(self).unwrap_or_else(|error| {
                last = Some(error);
                None
            }))
        });
        match (found, last) {
            (Ok(found), _) => Ok(found),
            (Err(missed), Some(error)) => Err(error.context("the last look that failed")).context(missed),
            (Err(missed), None) => Err(missed.into()),
        }
    }

    /// Sends the operator away, until the answer is dropped or told to end. For a stage that is alone.
    pub fn operator_away(&self) -> Result<OperatorAway> {
        OperatorAway::begin(&self.cluster)
    }

    pub(crate) fn try_get<T: DeserializeOwned>(&self, words: &[&str]) -> Result<T, Error> {
        let mut all = vec!["get"];
        all.extend(words);
        let document = self.namespace.json(&all)?;
        serde_json::from_value(document).map_err(|source| Error::Document {
            what: format!("what kubectl get {} printed", words.join(" ")),
            source,
        })
    }

    pub(crate) fn command(&self, words: &[&str]) -> std::process::Command {
        let mut all = vec!["--namespace", self.namespace()];
        all.extend(words);
        self.cluster.kubectl().command(&all)
    }
}

/// Hands the images that workloads of tests run to the cluster, unless this test program has done so.
fn images_once(cluster: &Cluster) -> Result<()> {
    static HANDED_OVER: Mutex<bool> = Mutex::new(false);
    let mut handed_over = HANDED_OVER.lock().unwrap_or_else(PoisonError::into_inner);
    if !*handed_over {
        images::hand_over(cluster, &images::FOR_TESTS, &Progress::start())?;
        *handed_over = true;
    }
    Ok(())
}

pub(crate) fn refusal(outcome: Result<String, Error>) -> Result<String> {
    match outcome {
        Ok(printed) => bail!("was to be refused, and was not: {printed}"),
        Err(Error::Command { output, .. }) => Ok(output),
        Err(error) => Err(error.into()),
    }
}
