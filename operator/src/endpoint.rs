//! What do sidecars ask of the operator? Credentials of the installation's Redis, and an ear for reports.
//! Every caller shows a token that is for us alone; which pod it is the API server tells, and the pod must
//! carry the lease that it speaks of.

pub mod caller;
pub mod credentials;
pub mod refusal;
pub mod reviews;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Query, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use fencedlease_crds::FencedLease;
use fencedlease_wire::endpoint::{CREDENTIALS_PATH, Credentials, Fact, REPORT_PATH, Report, ReportAnswer};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, Client};
use serde::Deserialize;
use tokio::sync::{Semaphore, watch};

use self::caller::{Caller, Callers};
use self::credentials::InstallationSecret;
use self::refusal::Refusal;
use crate::replace;
use crate::status::write::Statuses;

/// The longest report; a message for people is the only part without a bound of its own.
const LONGEST_BODY: usize = 16 * 1024;
/// How many requests are answered at a time; more are told to come back.
const AT_A_TIME: usize = 64;
/// How long one request may take. Sidecars repeat what was not answered.
const TIME: Duration = Duration::from_secs(10);

/// What the endpoint works with.
pub struct Endpoint {
    client: Client,
    callers: Callers,
    leases: Store<FencedLease>,
    statuses: Arc<Statuses>,
    secret: InstallationSecret,
    bundle: watch::Receiver<String>,
    slots: Semaphore,
}

/// Whose credentials are asked for.
#[derive(Deserialize)]
struct CredentialsQuery {
    namespace: String,
    lease: String,
}

impl Endpoint {
    /// An endpoint whose answers bring the certificate authorities in `bundle`.
    pub fn new(
        client: Client,
        callers: Callers,
        leases: Store<FencedLease>,
        statuses: Arc<Statuses>,
        secret: InstallationSecret,
        bundle: watch::Receiver<String>,
    ) -> Self {
        Self { client, callers, leases, statuses, secret, bundle, slots: Semaphore::new(AT_A_TIME) }
    }

    /// What it serves.
    pub fn router(self) -> Router {
        let endpoint = Arc::new(self);
        Router::new()
            .route(REPORT_PATH, post(take_report))
            .route(CREDENTIALS_PATH, get(give_credentials))
            .fallback(async || {
                Refusal::not_found(
                    "NoSuchPath",
                    "there is nothing here; the endpoint is for FencedLease sidecars",
                )
            })
            .layer(from_fn_with_state(Arc::clone(&endpoint), admit))
            .layer(DefaultBodyLimit::max(LONGEST_BODY))
            .with_state(endpoint)
    }

    /// The FencedLease from the cache, else from the API server: it may be younger than the cache.
    async fn lease(&self, namespace: &str, name: &str) -> Result<Arc<FencedLease>, Refusal> {
        if let Some(lease) = self.leases.get(&ObjectRef::new(name).within(namespace)) {
            return Ok(lease);
        }
        let api: Api<FencedLease> = Api::namespaced(self.client.clone(), namespace);
        match api.get_opt(name).await {
            Ok(Some(lease)) => Ok(Arc::new(lease)),
            Ok(None) => Err(Refusal::not_found(
                "NoSuchLease",
                format!(
                    "FencedLease {namespace}/{name} does not exist: create it, or delete the pod that asks for it"
                ),
            )),
            Err(error) => Err(Refusal::kubernetes("read the FencedLease", &error)),
        }
    }

    fn ca_pem(&self) -> String {
        self.bundle.borrow().clone()
    }
}

/// A place among the requests that are answered, and a bound on its time.
async fn admit(
    State(endpoint): State<Arc<Endpoint>>,
    request: Request,
    next: Next,
) -> Result<Response, Refusal> {
    let Ok(_slot) = endpoint.slots.try_acquire() else { return Err(Refusal::busy()) };
    tokio::time::timeout(TIME, next.run(request)).await.map_err(|_| Refusal::slow())
}

async fn take_report(
    State(endpoint): State<Arc<Endpoint>>,
    caller: Caller,
    body: Result<Bytes, BytesRejection>,
) -> Result<Json<ReportAnswer>, Refusal> {
    let body = body.map_err(|error| Refusal::unread(&error))?;
    let report: Report = serde_json::from_slice(&body)
        .map_err(|error| Refusal::bad("NotAReport", format!("the body is no report: {error}")))?;
    let reporter = endpoint.callers.reporter(&caller, &report.namespace, &report.lease).await?;
    if report.pod_name != caller.pod_name {
        return Err(Refusal::forbidden(
            "OtherPod",
            format!("the token is pod {}'s, and the report speaks of {}", caller.pod_name, report.pod_name),
        ));
    }
    let lease = endpoint.lease(&report.namespace, &report.lease).await?;
    endpoint.statuses.report(lease, &report, &reporter).await.map_err(|error| {
        tracing::warn!(error = &error as &dyn std::error::Error, "a report is not written");
        Refusal::unavailable("NotWritten", "the report could not be written; send it again")
    })?;
    if matches!(report.fact, Fact::Lost { dead_after_ms: Some(_), .. }) {
        let client = endpoint.client.clone();
        replace::after_proven_death(client, &report.namespace, &caller.pod_name, &caller.pod_uid)
            .await
            .map_err(|error| Refusal::kubernetes("replace the pod after its loss", &error))?;
    }
    Ok(Json(ReportAnswer { ca_pem: endpoint.ca_pem() }))
}

async fn give_credentials(
    State(endpoint): State<Arc<Endpoint>>,
    caller: Caller,
    query: Result<Query<CredentialsQuery>, QueryRejection>,
) -> Result<Json<Credentials>, Refusal> {
    let Query(CredentialsQuery { namespace, lease: name }) = query.map_err(|error| {
        Refusal::bad("NotAQuery", format!("{}: ask with ?namespace=N&lease=L", error.body_text()))
    })?;
    endpoint.callers.reporter(&caller, &namespace, &name).await?;
    let lease = endpoint.lease(&namespace, &name).await?;
    if lease.spec.redis.is_some() {
        return Err(Refusal::forbidden(
            "OwnRedis",
            format!(
                "FencedLease {namespace}/{name} has a Redis of its own (spec.redis), so the installation's credentials are not given out for it: restart the pod, which was injected before"
            ),
        ));
    }
    let (username, password) = endpoint.secret.read().await?;
    Ok(Json(Credentials { username, password, ca_pem: endpoint.ca_pem() }))
}

#[cfg(test)]
mod tests;
