//! Is the token genuine, and is it for us? The API server says so; its word is kept for a short while, since
//! each sidecar shows the same token every few seconds.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fencedlease_wire::paths::ENDPOINT_AUDIENCE;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus};
use kube::api::PostParams;
use kube::{Api, Client};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::caller::Caller;
use super::refusal::Refusal;

/// How long a yes is kept: as long as the API server itself goes on taking a deleted pod's token.
const KEEP_YES: Duration = Duration::from_mins(1);
/// How long a no is kept, so that a wrong token repeated costs one review.
const KEEP_NO: Duration = Duration::from_secs(5);
/// How many answers are kept.
const MOST_KEPT: usize = 20_000;
/// A projected token is about 1.2 kB.
const LONGEST_TOKEN: usize = 8192;

const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Reviews of tokens.
pub struct Reviews {
    api: Api<TokenReview>,
    kept: Mutex<HashMap<[u8; 32], Kept>>,
}

struct Kept {
    until: Instant,
    answer: Result<Caller, Refusal>,
}

impl Reviews {
    /// Reviews by the API server.
    pub fn new(client: Client) -> Self {
        Self { api: Api::all(client), kept: Mutex::default() }
    }

    /// Whose token it is.
    pub async fn caller(&self, token: &str) -> Result<Caller, Refusal> {
        if token.len() > LONGEST_TOKEN {
            return Err(Refusal::unauthorized("NotAToken", "the token is too long to be a projected one"));
        }
        let key = Sha256::digest(token.as_bytes()).into();
        if let Some(answer) = self.kept(&key) {
            return answer;
        }
        let spec =
            TokenReviewSpec { token: token.to_owned(), audiences: Some(vec![ENDPOINT_AUDIENCE.to_owned()]) };
        let review = TokenReview { spec, ..TokenReview::default() };
        let review = self.api.create(&PostParams::default(), &review).await;
        let review = review.map_err(|error| Refusal::kubernetes("have the token reviewed", &error))?;
        let answer = judge(review.status.unwrap_or_default());
        self.keep(key, answer.clone());
        answer
    }

    fn kept(&self, key: &[u8; 32]) -> Option<Result<Caller, Refusal>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(key).filter(|kept| Instant::now() < kept.until).map(|kept| kept.answer.clone())
    }

    fn keep(&self, key: [u8; 32], answer: Result<Caller, Refusal>) {
        let now = Instant::now();
        let until = now + if answer.is_ok() { KEEP_YES } else { KEEP_NO };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST_KEPT {
            kept.retain(|_, kept| now < kept.until);
        }
        if kept.len() < MOST_KEPT {
            kept.insert(key, Kept { until, answer });
        }
    }
}

/// The pod that the API server names. A token for another audience is not for us, even if it is genuine.
pub fn judge(status: TokenReviewStatus) -> Result<Caller, Refusal> {
    let audiences = status.audiences.unwrap_or_default();
    if status.authenticated != Some(true) || !audiences.iter().any(|audience| audience == ENDPOINT_AUDIENCE) {
        let why = status.error.filter(|error| !error.is_empty());
        let why = why.unwrap_or_else(|| format!("it is not for the audience {ENDPOINT_AUDIENCE}"));
        return Err(Refusal::unauthorized("TokenRefused", format!("the token is not accepted: {why}")));
    }
    let user = status.user.unwrap_or_default();
    let account = user.username.as_deref().and_then(|name| name.strip_prefix(SERVICE_ACCOUNT));
    let namespace = account.and_then(|account| account.split_once(':')).map(|(namespace, _)| namespace);
    let extra = user.extra.unwrap_or_default();
    let only = |key: &str| match extra.get(key).map(Vec::as_slice) {
        Some([value]) => Some(value.clone()),
        _ => None,
    };
    match (namespace, only(POD_NAME), only(POD_UID)) {
        (Some(namespace), Some(pod_name), Some(pod_uid)) => {
            Ok(Caller { namespace: namespace.to_owned(), pod_name, pod_uid })
        }
        _ => Err(Refusal::unauthorized(
            "NotAPodsToken",
            "the token is not bound to a pod: use the one that is mounted in the sidecar",
        )),
    }
}

#[cfg(test)]
mod tests;
