//! Which pods ask for a lease and run unguarded? Those made while the webhook did not see them: before the
//! operator came, or while it was uninstalled. They lack our label, so no watch of ours shows them; each
//! namespace with a FencedLease is asked once a minute.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client};
use tokio::time::Instant;

use crate::cache::{INJECTED_LABEL, LEASE_ANNOTATION};

/// How long an answer is used.
const ASK: Duration = Duration::from_mins(1);

/// What was found, by namespace.
pub struct Unguarded {
    client: Client,
    known: Mutex<HashMap<String, Answer>>,
}

struct Answer {
    at: Instant,
    /// Names of pods, by the FencedLease that they ask for.
    pods: HashMap<String, Vec<String>>,
}

impl Unguarded {
    /// Nothing is known yet.
    pub fn new(client: Client) -> Self {
        Self { client, known: Mutex::default() }
    }

    /// The unguarded pods of this FencedLease, at most a minute old. While the API server does not answer,
    /// what was known stays.
    pub async fn of(&self, namespace: &str, lease: &str) -> Vec<String> {
        if self.is_due(namespace) {
            match self.ask(namespace).await {
                Ok(pods) => {
                    self.lock().insert(namespace.to_owned(), Answer { at: Instant::now(), pods });
                }
                Err(error) => tracing::warn!(namespace, %error, "cannot look for unguarded pods"),
            }
        }
        self.lock().get(namespace).and_then(|answer| answer.pods.get(lease)).cloned().unwrap_or_default()
    }

    fn is_due(&self, namespace: &str) -> bool {
        self.lock().get(namespace).is_none_or(|answer| answer.at.elapsed() >= ASK)
    }

    async fn ask(&self, namespace: &str) -> Result<HashMap<String, Vec<String>>, kube::Error> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let selection = ListParams::default()
            .labels(&format!("{INJECTED_LABEL}!=true"))
            .fields("status.phase!=Succeeded,status.phase!=Failed");
        let mut pods: HashMap<String, Vec<String>> = HashMap::new();
        for pod in api.list_metadata(&selection).await? {
            let metadata = pod.metadata;
            let lease = metadata.annotations.as_ref().and_then(|all| all.get(LEASE_ANNOTATION));
            if let (Some(lease), Some(name), None) = (lease, metadata.name, metadata.deletion_timestamp) {
                pods.entry(lease.clone()).or_default().push(name);
            }
        }
        Ok(pods)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Answer>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
