//! Who makes the password of the Redis that comes with the chart? The operator, once: a chart cannot keep a
//! random value over renderings.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use kube::{Api, Client};

/// The key in the Secret.
const PASSWORD: &str = "password";

/// Why there is no password.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedRedisError {
    /// The API server did not do what was asked.
    #[error("cannot read or write the Secret {name} that keeps the embedded Redis's password")]
    Kubernetes {
        /// The Secret's name.
        name: String,
        /// Why.
        #[source]
        source: kube::Error,
    },
    /// The kernel gave no random bytes.
    #[error("cannot get random bytes for the embedded Redis's password: {0}")]
    NoRandom(getrandom::Error),
}

/// Sees to it that the Secret `name` has a password. One that is there stays as it is; else it gets 128 random
/// bits. The chart makes the Secret without one, so that it leaves with the chart.
pub async fn ensure_password(client: Client, namespace: &str, name: &str) -> Result<(), EmbeddedRedisError> {
    let kubernetes = |source| EmbeddedRedisError::Kubernetes { name: name.to_owned(), source };
    let secrets: Api<Secret> = Api::namespaced(client, namespace);
    let params = crate::post_params();
    loop {
        let present = secrets.get_opt(name).await.map_err(kubernetes)?;
        if present.as_ref().is_some_and(has_password) {
            return Ok(());
        }
        let password = Some(BTreeMap::from([(PASSWORD.to_owned(), random_password()?)]));
        let written = if let Some(secret) = present {
            secrets.replace(name, &params, &Secret { string_data: password, ..secret }).await
        } else {
            let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
            secrets.create(&params, &Secret { metadata, string_data: password, ..Secret::default() }).await
        };
        match written {
            Ok(_) => return Ok(()),
            // The other replica was first, and its password is everybody's.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(source) => return Err(kubernetes(source)),
        }
    }
}

fn has_password(secret: &Secret) -> bool {
    let data = secret.data.as_ref().and_then(|data| data.get(PASSWORD));
    data.is_some_and(|password| !password.0.is_empty())
}

fn random_password() -> Result<String, EmbeddedRedisError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(EmbeddedRedisError::NoRandom)?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

#[cfg(test)]
mod tests;
