//! Who makes the password of the Redis that comes with the chart? The operator, once: a chart cannot keep a
//! random value over renderings.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use kube::{Api, Client};

/// Why there is no password.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedRedisError {
    /// The API server did not do what was asked.
    #[error("cannot read or create the Secret {name} that keeps the embedded Redis's password")]
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

/// Sees to it that the Secret `name` exists, with a password of 128 random bits. One that exists stays as it is.
pub async fn ensure_password(client: Client, namespace: &str, name: &str) -> Result<(), EmbeddedRedisError> {
    let kubernetes = |source| EmbeddedRedisError::Kubernetes { name: name.to_owned(), source };
    let secrets: Api<Secret> = Api::namespaced(client, namespace);
    if secrets.get_opt(name).await.map_err(kubernetes)?.is_some() {
        return Ok(());
    }
    let secret = Secret {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        string_data: Some(BTreeMap::from([("password".to_owned(), random_password()?)])),
        ..Secret::default()
    };
    match secrets.create(&crate::post_params(), &secret).await {
        Ok(_) => Ok(()),
        // The other replica was first, and its password is everybody's.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(source) => Err(kubernetes(source)),
    }
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
