//! What is this installation called? From the chart's values, or made once and kept for good.

use std::collections::BTreeMap;

use fencedlease_wire::{ResourceName, ResourceNameError};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;
use kube::{Api, Client};

/// The ConfigMap in the operator's namespace. It stays after an uninstall: a new id would begin every fence
/// sequence anew.
pub const CONFIG_MAP: &str = "fencedlease-installation";
const KEY: &str = "installationID";

/// Why the installation has no id.
#[derive(Debug, thiserror::Error)]
pub enum InstallationError {
    /// The API server did not do what was asked.
    #[error("cannot read or create the ConfigMap {CONFIG_MAP} that keeps the installation's id")]
    Kubernetes(#[from] kube::Error),
    /// The id cannot be part of a lease's name.
    #[error("the installation's id cannot be used; set installationID to 1 to 63 of a-z, 0-9 and '-'")]
    NotAName(#[source] ResourceNameError),
    /// The ConfigMap lacks its key.
    #[error(
        "the ConfigMap {CONFIG_MAP} has no key {KEY}: put the id back that leases were made with, or delete the ConfigMap if there were none"
    )]
    NoKey,
    /// The kernel gave no random bytes.
    #[error("cannot get random bytes for the installation's id: {0}")]
    NoRandom(getrandom::Error),
}

/// The id: `configured` where it is not empty, else the one that is kept, made now if there is none.
pub async fn id(client: Client, namespace: &str, configured: &str) -> Result<String, InstallationError> {
    let id = if configured.is_empty() { kept(client, namespace).await? } else { configured.to_owned() };
    // Any namespace and name do: only the id is in question.
    ResourceName::new(&id, "namespace", "name").map_err(InstallationError::NotAName)?;
    Ok(id)
}

async fn kept(client: Client, namespace: &str) -> Result<String, InstallationError> {
    let maps: Api<ConfigMap> = Api::namespaced(client, namespace);
    if let Some(map) = maps.get_opt(CONFIG_MAP).await? {
        return read(&map);
    }
    let metadata = ObjectMeta { name: Some(CONFIG_MAP.to_owned()), ..ObjectMeta::default() };
    let data = BTreeMap::from([(KEY.to_owned(), random_id()?)]);
    let map = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
    match maps.create(&crate::post_params(), &map).await {
        Ok(map) => read(&map),
        // The other replica was first, and its id is everybody's.
        Err(kube::Error::Api(status)) if status.code == 409 => read(&maps.get(CONFIG_MAP).await?),
        Err(error) => Err(error.into()),
    }
}

fn read(map: &ConfigMap) -> Result<String, InstallationError> {
    let id = map.data.as_ref().and_then(|data| data.get(KEY));
    id.filter(|id| !id.is_empty()).cloned().ok_or(InstallationError::NoKey)
}

/// 48 bits: enough that two clusters on one Redis never meet, short enough to read in a key.
fn random_id() -> Result<String, InstallationError> {
    use std::fmt::Write as _;
    let mut bytes = [0; 6];
    getrandom::fill(&mut bytes).map_err(InstallationError::NoRandom)?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests;
