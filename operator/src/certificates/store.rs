//! Where are certificates kept? In one Secret, changed only under its resourceVersion.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures::{Stream, StreamExt as _, stream};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use kube::api::ObjectMeta;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};

use super::Material;
use super::issue::{IssueError, carry_out};
use super::plan::plan;

/// Key of the material in the Secret.
const MATERIAL_KEY: &str = "certificates.json";
/// Key of the bundle, for people and other tools.
const BUNDLE_KEY: &str = "ca.crt";
/// Steps of one round: adding, signing and dropping, and one more that finds nothing left.
const MOST_STEPS: usize = 4;
/// How often another replica may come first in one round.
const MOST_CONFLICTS: usize = 5;

/// The Secret that keeps the material.
#[derive(Clone)]
pub struct CertificateStore {
    secrets: Api<Secret>,
    name: String,
    names: Vec<String>,
    /// What was read or written last. Whoever runs trusts these authorities, so if the Secret is deleted it
    /// gets them back.
    known: Arc<Mutex<Option<Material>>>,
}

/// Why the material is not there.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The API server did not do what was asked.
    #[error("cannot read or write the Secret {name}")]
    Kubernetes {
        /// The Secret.
        name: String,
        /// The API server's answer.
        #[source]
        source: kube::Error,
    },
    /// A certificate could not be made.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// The material could not be written down.
    #[error("cannot write the certificates as JSON")]
    Json(#[from] serde_json::Error),
    /// Other replicas changed the Secret again and again.
    #[error("the Secret {0} was changed by others {MOST_CONFLICTS} times in a row")]
    Conflict(String),
}

impl CertificateStore {
    /// The Secret `name` in `namespace`, with a leaf for `names`.
    pub fn new(client: Client, namespace: &str, name: String, names: Vec<String>) -> Self {
        Self { secrets: Api::namespaced(client, namespace), name, names, known: Arc::default() }
    }

    /// Something for each time that the Secret may have changed. It never ends.
    pub fn changes(&self) -> impl Stream<Item = ()> + Send + use<> {
        let selector = watcher::Config::default().fields(&format!("metadata.name={}", self.name));
        let changes = watcher(self.secrets.clone(), selector).default_backoff().map(|_| ());
        changes.chain(stream::pending())
    }

    /// The material after every step that is due at `now`. Whichever replica comes first does a step; the
    /// others take over what it wrote.
    pub async fn bring_up_to_date(&self, now: Timestamp) -> Result<Material, StoreError> {
        let (mut steps, mut conflicts) = (0, 0);
        loop {
            let mut secret = self.secrets.get_opt(&self.name).await.map_err(|source| self.failed(source))?;
            let mut material = secret.as_ref().and_then(read);
            if material.is_none()
                && let Some(known) = self.known()
            {
                // The other replica puts the same back.
                if self.write(secret.clone(), &known).await? {
                    tracing::warn!(secret = self.name, "the certificates were gone, and were put back");
                }
                secret = self.secrets.get_opt(&self.name).await.map_err(|source| self.failed(source))?;
                material = secret.as_ref().and_then(read);
            }
            let step = plan(material.as_ref(), &self.names, now);
            match (carry_out(&step, material.as_ref(), &self.names, now)?, material) {
                (None, Some(material)) => return Ok(self.keep(material)),
                (Some(_), Some(material)) if steps >= MOST_STEPS => return Ok(self.keep(material)),
                (next, _) => {
                    let Some(next) = next else { return Err(StoreError::Conflict(self.name.clone())) };
                    if self.write(secret, &next).await? {
                        tracing::info!(secret = self.name, ?step, "certificates changed");
                        steps += 1;
                    } else {
                        conflicts += 1;
                    }
                    if conflicts > MOST_CONFLICTS {
                        return Err(StoreError::Conflict(self.name.clone()));
                    }
                }
            }
        }
    }

    /// Whether it was written; not if another replica was first.
    async fn write(&self, secret: Option<Secret>, material: &Material) -> Result<bool, StoreError> {
        let data = BTreeMap::from([
            (MATERIAL_KEY.to_owned(), ByteString(serde_json::to_vec(material)?)),
            (BUNDLE_KEY.to_owned(), ByteString(material.bundle_pem().into_bytes())),
        ]);
        let params = crate::post_params();
        let written = if let Some(secret) = secret {
            self.secrets.replace(&self.name, &params, &Secret { data: Some(data), ..secret }).await
        } else {
            let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
            let secret = Secret { metadata, data: Some(data), ..Secret::default() };
            self.secrets.create(&params, &secret).await
        };
        match written {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
            Err(source) => Err(self.failed(source)),
        }
    }

    fn known(&self) -> Option<Material> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep(&self, material: Material) -> Material {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(material.clone());
        material
    }

    fn failed(&self, source: kube::Error) -> StoreError {
        StoreError::Kubernetes { name: self.name.clone(), source }
    }
}

/// What cannot be read counts as absent: it is made anew, which mends it.
fn read(secret: &Secret) -> Option<Material> {
    let bytes = secret.data.as_ref()?.get(MATERIAL_KEY)?;
    match serde_json::from_slice(&bytes.0) {
        Ok(material) => Some(material),
        Err(error) => {
            tracing::warn!(%error, "the Secret's {MATERIAL_KEY} cannot be read; new certificates are made");
            None
        }
    }
}

#[cfg(test)]
mod tests;
