//! Where do Redis's user and password come from? From mounted files, or from the operator's endpoint, kept
//! in the private volume so that a holder can reconnect while the operator is away.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fencedlease_redis::{CredentialError, CredentialFuture, CredentialProvider, Credentials};
use fencedlease_wire::endpoint;

use super::operator::Operator;
use super::private::replace;

/// In the private volume: the endpoint's last answer.
const KEPT_FILE: &str = "redis-credentials.json";

/// Files `password` and `username` of a mounted Secret, read at each connection.
#[derive(Debug)]
pub struct Mounted {
    folder: PathBuf,
}

/// The operator's endpoint, asked once, and again after Redis refused its answer.
#[derive(Debug)]
pub struct FromOperator {
    operator: Arc<Operator>,
    namespace: String,
    lease: String,
    kept_file: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    credentials: Option<Credentials>,
    /// Redis refused them: the endpoint is asked, and they serve only while it does not answer.
    stale: bool,
}

impl Mounted {
    /// The Secret mounted at `folder`.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    fn read(&self) -> Result<Credentials, CredentialError> {
        let password = self.file("password")?.ok_or_else(|| {
            CredentialError(format!(
                "{} is not there: give the Secret of spec.redis.auth.secretRef a key password",
                self.folder.join("password").display()
            ))
        })?;
        Ok(Credentials { username: self.file("username")?, password: Some(password) })
    }

    fn file(&self, name: &str) -> Result<Option<String>, CredentialError> {
        let path = self.folder.join(name);
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(CredentialError(format!("cannot read {}: {error}", path.display()))),
        }
    }
}

impl FromOperator {
    /// The credentials for this FencedLease; what is kept in `state_dir` serves at once.
    pub fn new(operator: Arc<Operator>, namespace: &str, lease: &str, state_dir: &Path) -> Self {
        let kept_file = state_dir.join(KEPT_FILE);
        let kept = std::fs::read(&kept_file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let known = Known { credentials: kept.map(plain), stale: false };
        Self {
            operator,
            namespace: namespace.to_owned(),
            lease: lease.to_owned(),
            kept_file,
            known: Mutex::new(known),
        }
    }

    async fn fetch(&self) -> Result<Credentials, CredentialError> {
        let before = {
            let known = self.lock();
            match &known.credentials {
                Some(credentials) if !known.stale => return Ok(credentials.clone()),
                before => before.clone(),
            }
        };
        match self.operator.credentials(&self.namespace, &self.lease).await {
            Ok(answer) => {
                let kept = serde_json::to_vec(&answer).unwrap_or_default();
                if let Err(error) = replace(&self.kept_file, &kept) {
                    tracing::warn!(%error, "cannot keep the credentials; a reconnect will need the operator");
                }
                let credentials = plain(answer);
                *self.lock() = Known { credentials: Some(credentials.clone()), stale: false };
                Ok(credentials)
            }
            Err(error) => before.ok_or_else(|| {
                let error = anyhow::Error::new(error);
                CredentialError(format!("cannot get the credentials of the installation's Redis: {error:#}"))
            }),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl CredentialProvider ===

impl CredentialProvider for Mounted {
    fn credentials(&self) -> CredentialFuture<'_> {
        Box::pin(std::future::ready(self.read()))
    }
}

impl CredentialProvider for FromOperator {
    fn credentials(&self) -> CredentialFuture<'_> {
        Box::pin(self.fetch())
    }

    fn rejected(&self) {
        self.lock().stale = true;
    }
}

fn plain(answer: endpoint::Credentials) -> Credentials {
    Credentials { username: answer.username, password: answer.password }
}
