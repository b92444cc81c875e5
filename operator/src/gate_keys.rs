//! Who makes the key by which gates believe a pod's tickets? The operator, one for each FencedLease that names gates,
//! as a Secret beside it. It may create such Secrets and do nothing else with them: it never learns what a key became,
//! and a user who changes or deletes one needs nobody's leave.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fencedlease_crds::FencedLease;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use kube::{Api, Client, Resource as _, ResourceExt as _};
use tokio::time::Instant;

/// The Secret's type, by which a policy knows what the operator may make.
pub const SECRET_TYPE: &str = "fencedlease.dev/gate-key";
/// The key in the Secret.
pub const KEY: &str = "key";
/// How long a Secret is taken to be there: one that was deleted is made anew after that.
const TRUSTED: Duration = Duration::from_mins(1);
/// How long a FencedLease that nobody looks at any more is remembered.
const REMEMBERED: Duration = Duration::from_mins(10);

/// The Secrets that are there, as far as is known without reading any.
pub struct GateKeys {
    client: Client,
    known: Mutex<HashMap<(String, String), Known>>,
}

struct Known {
    uid: String,
    at: Instant,
    /// Why the Secret could not be made, for people.
    problem: Option<String>,
}

/// Why there is no Secret.
#[derive(Debug, thiserror::Error)]
enum GateKeyError {
    /// The API server did not do what was asked.
    #[error("{0}")]
    Kubernetes(#[from] kube::Error),
    /// The kernel gave no random bytes.
    #[error("cannot get random bytes: {0}")]
    NoRandom(getrandom::Error),
    /// It has no uid to belong to: it does not come from the API server.
    #[error("the FencedLease has no uid")]
    NoOwner,
}

/// The name of the Secret with the key of a FencedLease. A FencedLease's name has at most 63 characters.
pub fn secret_name(lease: &str) -> String {
    format!("{lease}-gate-key")
}

impl GateKeys {
    /// Keys that `client` makes.
    pub fn new(client: Client) -> Self {
        Self { client, known: Mutex::default() }
    }

    /// Sees to it that a FencedLease with gates has its key. What fails is told by [`GateKeys::problem_of`], and tried
    /// again at the next look.
    pub async fn look(&self, lease: &FencedLease) {
        let is_wanted = !lease.spec.gates.is_empty() && lease.metadata.deletion_timestamp.is_none();
        let uid = lease.uid().unwrap_or_default();
        if !is_wanted || self.is_there(lease, &uid) {
            return;
        }
        let problem = match self.make(lease).await {
            Ok(()) => None,
            Err(error) => Some(problem(lease, &error)),
        };
        if let Some(problem) = &problem {
            tracing::warn!(
                namespace = lease.namespace(),
                lease = lease.name_any(),
                problem,
                "no key for gates"
            );
        }
        let mut known = self.lock();
        known.retain(|_, known| known.at.elapsed() < REMEMBERED);
        known.insert(place(lease), Known { uid, at: Instant::now(), problem });
    }

    /// Why this FencedLease's key could not be made, if it could not.
    pub fn problem_of(&self, lease: &FencedLease) -> Option<String> {
        self.lock().get(&place(lease)).and_then(|known| known.problem.clone())
    }

    fn is_there(&self, lease: &FencedLease, uid: &str) -> bool {
        let known = self.lock();
        let known = known.get(&place(lease));
        known.is_some_and(|known| known.uid == uid && known.problem.is_none() && known.at.elapsed() < TRUSTED)
    }

    async fn make(&self, lease: &FencedLease) -> Result<(), GateKeyError> {
        let namespace = lease.namespace().unwrap_or_default();
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &namespace);
        match secrets.create(&crate::post_params(), &secret(lease)?).await {
            Ok(_) => {
                tracing::info!(namespace, secret = secret_name(&lease.name_any()), "a key for gates is made");
                Ok(())
            }
            // It is there: ours, or one that the user brought.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(String, String), Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(lease: &FencedLease) -> (String, String) {
    (lease.namespace().unwrap_or_default(), lease.name_any())
}

/// A Secret with a new key, which goes with its FencedLease.
fn secret(lease: &FencedLease) -> Result<Secret, GateKeyError> {
    let metadata = ObjectMeta {
        name: Some(secret_name(&lease.name_any())),
        owner_references: Some(vec![lease.owner_ref(&()).ok_or(GateKeyError::NoOwner)?]),
        ..ObjectMeta::default()
    };
    let data = BTreeMap::from([(KEY.to_owned(), ByteString(random_key()?.into_bytes()))]);
    Ok(Secret { metadata, type_: Some(SECRET_TYPE.to_owned()), data: Some(data), ..Secret::default() })
}

/// 256 bits as sidecars and gates read them: a line of hexadecimal digits.
fn random_key() -> Result<String, GateKeyError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(GateKeyError::NoRandom)?;
    let mut text = bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    });
    text.push('\n');
    Ok(text)
}

fn problem(lease: &FencedLease, error: &GateKeyError) -> String {
    let (namespace, name) = place(lease);
    let secret = secret_name(&name);
    format!(
        "The operator cannot make the Secret {namespace}/{secret} with the key that signs tickets for the gates, without which no pod starts: {error}. See that the chart's ClusterRole and ValidatingAdmissionPolicy are there (helm upgrade), or make the Secret yourself: kubectl create secret generic {secret} -n {namespace} --type {SECRET_TYPE} --from-literal {KEY}=$(openssl rand -hex 32)."
    )
}

#[cfg(test)]
mod tests;
