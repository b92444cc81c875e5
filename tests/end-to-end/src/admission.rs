//! What would the API server say to an object? Asked without making it, also with a webhook of ours changed.

use anyhow::{Context as _, Result};
use fencedlease_cluster::command::run_with_input;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::stage::{Stage, refusal};

const WEBHOOKS: &str = "mutatingwebhookconfiguration/fencedlease-operator";
/// Where the webhook for new pods stands in the configuration.
const NEW_PODS: usize = 0;

impl Stage {
    /// The object as the API server would make it: every mutator and every check has seen it.
    pub fn would_create(&self, manifest: &Value) -> Result<Value> {
        let mut command = self.command(&["create", "--dry-run=server", "--output=json", "--filename=-"]);
        let printed = run_with_input(&mut command, &manifest.to_string())?;
        serde_json::from_str(&printed).with_context(|| format!("kubectl create printed {printed}"))
    }

    /// The message with which the API server would refuse to make the object. Fails if it would not.
    pub fn would_refuse(&self, manifest: &Value) -> Result<String> {
        let mut command = self.command(&["create", "--dry-run=server", "--filename=-"]);
        refusal(run_with_input(&mut command, &manifest.to_string()))
    }

    /// Changes a field of the webhook for new pods, until the answer is dropped. The API server takes a moment to
    /// follow.
    pub fn pod_webhook(&self, field: &'static str, value: &str) -> Result<WebhookChanged> {
        let before: Value = self.cluster().get(&[WEBHOOKS])?;
        let before = before["webhooks"][NEW_PODS][field].as_str().context("the webhook lacks the field")?;
        let changed = WebhookChanged { cluster: self.cluster().clone(), field, before: before.to_owned() };
        changed.set(value)?;
        Ok(changed)
    }
}

/// A webhook of ours that is not as the chart has it. It is put back when this is dropped.
#[derive(Debug)]
pub struct WebhookChanged {
    cluster: Cluster,
    field: &'static str,
    before: String,
}

impl WebhookChanged {
    fn set(&self, value: &str) -> Result<()> {
        let field = format!("/webhooks/{NEW_PODS}/{}", self.field);
        let patch = json!([{"op": "replace", "path": field, "value": value}]).to_string();
        self.cluster.kubectl().run(&["patch", WEBHOOKS, "--type=json", "--patch", &patch])?;
        Ok(())
    }
}

impl Drop for WebhookChanged {
    fn drop(&mut self) {
        if let Err(error) = self.set(&self.before) {
            eprintln!("the webhook's {} is not put back: {error:#}", self.field);
        }
    }
}
