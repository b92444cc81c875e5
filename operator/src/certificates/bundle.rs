//! Does the API server trust our webhooks? The bundle in every entry of our two webhook configurations.

use std::pin::pin;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use kube::api::PostParams;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

/// How often the bundle is looked at without any sign of a change.
const LOOK: Duration = Duration::from_secs(60);

/// A webhook configuration of either kind.
pub trait HasClientConfigs {
    /// The client settings of each entry.
    fn client_configs(&mut self) -> Vec<&mut WebhookClientConfig>;
}

impl HasClientConfigs for MutatingWebhookConfiguration {
    fn client_configs(&mut self) -> Vec<&mut WebhookClientConfig> {
        self.webhooks.iter_mut().flatten().map(|webhook| &mut webhook.client_config).collect()
    }
}

impl HasClientConfigs for ValidatingWebhookConfiguration {
    fn client_configs(&mut self) -> Vec<&mut WebhookClientConfig> {
        self.webhooks.iter_mut().flatten().map(|webhook| &mut webhook.client_config).collect()
    }
}

/// Writes `bundle` into every entry; whether anything changed.
pub fn put_bundle(configuration: &mut impl HasClientConfigs, bundle: &str) -> bool {
    let mut changed = false;
    for config in configuration.client_configs() {
        let right = config.ca_bundle.as_ref().is_some_and(|current| current.0 == bundle.as_bytes());
        if !right {
            config.ca_bundle = Some(ByteString(bundle.as_bytes().to_vec()));
            changed = true;
        }
    }
    changed
}

/// Keeps the bundle right in the configuration `name` until `stop`. Whoever changes it, a Helm upgrade for
/// one, is met by the watch.
pub async fn keep_bundle<K>(
    client: Client,
    name: String,
    mut bundle: watch::Receiver<String>,
    mut stop: watch::Receiver<bool>,
) where
    K: HasClientConfigs + Resource<DynamicType = ()> + Clone + DeserializeOwned + serde::Serialize,
    K: std::fmt::Debug + Send + Sync + 'static,
{
    let api: Api<K> = Api::all(client);
    let selector = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let changes = watcher(api.clone(), selector).default_backoff().map(|_| ());
    let mut changes = pin!(changes.chain(stream::pending()));
    loop {
        let wanted = bundle.borrow_and_update().clone();
        put_in_place(&api, &name, &wanted).await;
        tokio::select! {
            _ = changes.next() => {}
            changed = bundle.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(LOOK) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

async fn put_in_place<K>(api: &Api<K>, name: &str, bundle: &str)
where
    K: HasClientConfigs + Clone + DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    let mut configuration = match api.get_opt(name).await {
        Ok(Some(configuration)) => configuration,
        Ok(None) => {
            tracing::debug!(name, "the webhook configuration does not exist yet");
            return;
        }
        Err(error) => {
            tracing::warn!(name, %error, "cannot read the webhook configuration");
            return;
        }
    };
    if !put_bundle(&mut configuration, bundle) {
        return;
    }
    match api.replace(name, &PostParams::default(), &configuration).await {
        Ok(_) => tracing::info!(name, "the webhook configuration trusts our certificates"),
        // Another replica or a Helm upgrade was first; the watch tells what it left.
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        Err(error) => tracing::warn!(name, %error, "cannot write the bundle into the webhook configuration"),
    }
}

#[cfg(test)]
mod tests;
