//! Who renews certificates? A task that looks every few minutes, and whenever the Secret changes, and hands on
//! what is new.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::jiff::Timestamp;
use tokio::sync::watch;

use super::served::{ServedCertificate, ServedError};
use super::store::{CertificateStore, StoreError};
use crate::metrics::Metrics;

/// How often the Secret is looked at without any sign of a change. Steps of a rotation lie days apart.
const LOOK: Duration = Duration::from_mins(2);

/// The certificates in use: what is served, and what clients are told to trust.
pub struct Upkeep {
    store: CertificateStore,
    served: Arc<ServedCertificate>,
    bundle: watch::Sender<String>,
    metrics: Arc<Metrics>,
}

/// Why certificates could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum UpkeepError {
    /// They could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// They could not be served.
    #[error(transparent)]
    Served(#[from] ServedError),
}

impl Upkeep {
    /// Certificates from `store`, shown by `served`.
    pub fn new(store: CertificateStore, served: Arc<ServedCertificate>, metrics: Arc<Metrics>) -> Self {
        Self { store, served, bundle: watch::Sender::default(), metrics }
    }

    /// The bundle in PEM, now and whenever it changes.
    pub fn bundle(&self) -> watch::Receiver<String> {
        self.bundle.subscribe()
    }

    /// One look: what is due is done, and what is new is served.
    pub async fn look(&self, now: Timestamp) -> Result<(), UpkeepError> {
        let material = self.store.bring_up_to_date(now).await?;
        // The bundle goes out first, so that nothing is served that it does not cover.
        self.bundle.send_if_modified(|bundle| {
            let new = material.bundle_pem();
            let changed = *bundle != new;
            *bundle = new;
            changed
        });
        self.served.replace(&material.leaf)?;
        self.metrics.certificate_expires(material.leaf.expires_at);
        Ok(())
    }

    /// Looks again and again until `stop`. A failure is told and tried again: what is served stays valid
    /// for months.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        let mut changes = pin!(self.store.changes());
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                _ = changes.next() => {}
                _ = stop.wait_for(|stop| *stop) => return,
            }
            if let Err(error) = self.look(Timestamp::now()).await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot look after the certificates"
                );
            }
        }
    }
}
