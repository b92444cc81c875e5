//! How does the API server ask? Handlers that are thin: a request is read, decided by pure functions over what
//! was looked up, and answered. Whatever goes wrong is a refusal that says so.

mod cluster;
pub mod conditions;
mod decide;
mod load;
mod refused;
mod review;

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use k8s_openapi::jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;

pub use cluster::{Cluster, LiveCluster, LookUpError};
pub use refused::{ObjectName, Refused};

use crate::admit::{Cause, Problem, Refusal};
use crate::metrics::Metrics;
use load::{Load, MOST_OBJECTS, TooHeavy};
use review::{Answer, Request};

/// Path of the mutating webhook for pods, CREATE and UPDATE.
pub const PODS_PATH: &str = "/mutate/pods";
/// Path of the mutating webhook for Deployments, StatefulSets, DaemonSets, ReplicaSets, Jobs and CronJobs.
pub const WORKLOADS_PATH: &str = "/mutate/workloads";
/// Path of the validating webhook for FencedLeases.
pub const LEASES_PATH: &str = "/validate/fencedleases";

/// The longest body that is read. The API server itself takes objects of 1.5 MiB.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// The webhooks and what they need.
pub struct Webhooks {
    cluster: Arc<dyn Cluster>,
    refusals: mpsc::Sender<Refused>,
    metrics: Arc<Metrics>,
    load: Load,
}

#[derive(Clone, Copy)]
enum Kind {
    Pod,
    Workload,
    Lease,
}

impl Webhooks {
    /// Webhooks that ask `cluster` and tell `refusals`; while that channel is full, refusals are only answered.
    pub fn new(cluster: Arc<dyn Cluster>, refusals: mpsc::Sender<Refused>, metrics: Arc<Metrics>) -> Self {
        Self { cluster, refusals, metrics, load: Load::none() }
    }

    /// The routes, to be served over TLS.
    pub fn router(self) -> Router {
        let webhooks = Arc::new(self);
        let route = |kind: Kind| {
            post(move |State(webhooks): State<Arc<Self>>, body: Body| async move {
                webhooks.handle(kind, body).await
            })
        };
        Router::new()
            .route(PODS_PATH, route(Kind::Pod))
            .route(WORKLOADS_PATH, route(Kind::Workload))
            .route(LEASES_PATH, route(Kind::Lease))
            .with_state(webhooks)
    }

    async fn handle(&self, kind: Kind, body: Body) -> Response {
        let began = Instant::now();
        let Ok(body) = to_bytes(body, MOST_BYTES).await else {
            self.metrics.refused("Request");
            let text = format!("the request's body is cut off, or longer than {MOST_BYTES} bytes");
            return (StatusCode::PAYLOAD_TOO_LARGE, text).into_response();
        };
        let _room = match self.load.take(&body).await {
            Ok(room) => room,
            Err(TooHeavy { objects }) => return self.too_heavy(kind, &body, objects),
        };
        let request = match Request::read(&body) {
            Ok(request) => request,
            Err(text) => {
                self.metrics.refused("Request");
                return (StatusCode::BAD_REQUEST, text).into_response();
            }
        };
        let answer = self.answer(kind, &request).await;
        let result = match &answer {
            Answer::Allowed { .. } => "allowed",
            Answer::Refused { .. } => "refused",
        };
        self.metrics.admission(kind.as_str(), result, began.elapsed());
        json_response(&answer, &request.uid)
    }

    /// Refuses what is not even read.
    fn too_heavy(&self, kind: Kind, body: &[u8], objects: usize) -> Response {
        self.metrics.refused("Request");
        let problem = Problem::new(
            "The request",
            &format!("of the weight of {objects} JSON objects"),
            &format!(
                "{MOST_OBJECTS} at most, of 128 bytes each, with what metadata.managedFields says of them"
            ),
            "Have fewer containers, variables and mounts in one pod.",
        );
        let subject = format!("This {} is too large to be looked at by FencedLease", kind.as_str());
        let refusal = Refusal::new(Cause::Request, subject, vec![problem]);
        tracing::info!(%refusal, "refused");
        match review::uid(body) {
            Ok(uid) => json_response(&Answer::Refused { refusal, lease: None }, &uid),
            Err(text) => (StatusCode::BAD_REQUEST, text).into_response(),
        }
    }

    async fn answer(&self, kind: Kind, request: &Request) -> Answer {
        if request.is_of_no_concern() {
            return Answer::allowed();
        }
        let cluster = self.cluster.as_ref();
        let answer = match kind {
            Kind::Pod => decide::pod(cluster, request).await,
            Kind::Workload => decide::workload(cluster, request).await,
            Kind::Lease => decide::fenced_lease(cluster, request),
        };
        if let Answer::Refused { refusal, lease } = &answer {
            self.metrics.refused(refusal.cause.as_str());
            if request.dry_run != Some(true) && !matches!(kind, Kind::Lease) {
                let told = self.refusals.try_send(refused::refused(
                    request,
                    refusal,
                    lease.as_ref(),
                    Timestamp::now(),
                ));
                if told.is_err() {
                    tracing::warn!(
                        namespace = request.namespace,
                        "a refusal could not be passed on for Events"
                    );
                }
            }
            tracing::info!(namespace = request.namespace, %refusal, "refused");
        }
        answer
    }
}

fn json_response(answer: &Answer, uid: &str) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], answer.to_json(uid).to_string()).into_response()
}

// === impl Kind ===

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pod => "Pod",
            Self::Workload => "Workload",
            Self::Lease => "FencedLease",
        }
    }
}

#[cfg(test)]
mod tests;
