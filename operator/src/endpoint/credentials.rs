//! Where do the credentials of the installation's Redis come from? From one Secret in the operator's
//! namespace, read at each question: a new password is given out from the moment it is there.

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};

use super::refusal::Refusal;

/// The Secret with the installation's credentials, where its Redis asks for any.
pub struct InstallationSecret {
    api: Api<Secret>,
    name: Option<String>,
}

impl InstallationSecret {
    /// The Secret `name` in `namespace`; `None`: the installation's Redis asks for no password.
    pub fn new(client: Client, namespace: &str, name: Option<String>) -> Self {
        Self { api: Api::namespaced(client, namespace), name }
    }

    /// User and password.
    pub async fn read(&self) -> Result<(Option<String>, Option<String>), Refusal> {
        let Some(name) = &self.name else { return Ok((None, None)) };
        let secret = self.api.get_opt(name).await;
        let secret = secret.map_err(|error| Refusal::kubernetes("read the Redis Secret", &error))?;
        let secret = secret.ok_or_else(|| {
            Refusal::not_found(
                "SecretNotFound",
                format!("the Secret {name}, which redis.auth.secretRef names, does not exist in the operator's namespace: create it with the key password"),
            )
        })?;
        credentials(name, &secret)
    }
}

/// User and password in the Secret.
pub fn credentials(name: &str, secret: &Secret) -> Result<(Option<String>, Option<String>), Refusal> {
    let text = |key: &str| {
        let value = secret.data.as_ref().and_then(|data| data.get(key));
        value.map(|value| String::from_utf8(value.0.clone())).transpose().map_err(|_| {
            Refusal::not_found(
                "SecretNotText",
                format!("{key} in the Secret {name} is not UTF-8: put text there"),
            )
        })
    };
    let password = text("password")?.filter(|password| !password.is_empty());
    let password = password.ok_or_else(|| {
        Refusal::not_found(
            "SecretNotFound",
            format!("the Secret {name} in the operator's namespace has no key password, or it is empty: put the password there"),
        )
    })?;
    Ok((text("username")?.filter(|username| !username.is_empty()), Some(password)))
}

#[cfg(test)]
mod tests;
