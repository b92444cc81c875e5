//! Does the API server trust our webhooks? The bundle in every entry of our two webhook configurations.

use std::pin::pin;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;

/// How often the bundle is looked at without any sign of a change.
const LOOK: Duration = Duration::from_mins(1);

/// A webhook configuration of either kind.
pub trait HasClientConfigs {
    /// Name and client settings of each entry.
    fn client_configs(&self) -> Vec<(&str, &WebhookClientConfig)>;
}

impl HasClientConfigs for MutatingWebhookConfiguration {
    fn client_configs(&self) -> Vec<(&str, &WebhookClientConfig)> {
        self.webhooks
            .iter()
            .flatten()
            .map(|webhook| (webhook.name.as_str(), &webhook.client_config))
            .collect()
    }
}

impl HasClientConfigs for ValidatingWebhookConfiguration {
    fn client_configs(&self) -> Vec<(&str, &WebhookClientConfig)> {
        self.webhooks
            .iter()
            .flatten()
            .map(|webhook| (webhook.name.as_str(), &webhook.client_config))
            .collect()
    }
}

/// What gives every entry `bundle`, under this resourceVersion; `None` where all have it. A strategic merge
/// patch, in which entries are known by their names, so that everything else in them stays as it is.
pub fn bundle_patch(
    configuration: &impl HasClientConfigs,
    resource_version: Option<&str>,
    bundle: &str,
) -> Option<Value> {
    let wrong = |config: &ByteString| config.0 != bundle.as_bytes();
    let entries: Vec<Value> = configuration
        .client_configs()
        .into_iter()
        .filter(|(_, config)| config.ca_bundle.as_ref().is_none_or(wrong))
        .map(|(name, _)| json!({"name": name, "clientConfig": {"caBundle": ByteString(bundle.into())}}))
        .collect();
    (!entries.is_empty())
        .then(|| json!({"metadata": {"resourceVersion": resource_version}, "webhooks": entries}))
}

/// Keeps the bundle right in the configuration `name` until `stop`. Whoever changes it, a Helm upgrade for
/// one, is met by the watch.
pub async fn keep_bundle<K>(
    client: Client,
    name: String,
    mut bundle: watch::Receiver<String>,
    mut stop: watch::Receiver<bool>,
) where
    K: HasClientConfigs + Resource<DynamicType = ()> + Clone + DeserializeOwned,
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
            renewed = bundle.changed() => if renewed.is_err() { return },
            () = tokio::time::sleep(LOOK) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

async fn put_in_place<K>(api: &Api<K>, name: &str, bundle: &str)
where
    K: HasClientConfigs + Resource + Clone + DeserializeOwned + std::fmt::Debug,
{
    let configuration = match api.get_opt(name).await {
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
    let version = configuration.meta().resource_version.clone();
    let Some(patch) = bundle_patch(&configuration, version.as_deref(), bundle) else { return };
    match api
        .patch(
            name,
            &PatchParams { field_manager: Some(crate::FIELD_MANAGER.to_owned()), ..PatchParams::default() },
            &Patch::Strategic(patch),
        )
        .await
    {
        Ok(_) => tracing::info!(name, "the webhook configuration trusts our certificates"),
        // Another replica or a Helm upgrade was first; the watch tells what it left.
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        Err(error) => tracing::warn!(name, %error, "cannot write the bundle into the webhook configuration"),
    }
}

#[cfg(test)]
mod tests;
