//! What happens to a request: its resource, its ticket, the door, the backend.

use std::sync::Arc;
use std::time::Duration;

use fencedlease_wire::gate::{
    GateResult, GuardedResource, RaiseAnswer, TICKET_HEADER, Ticket, UnverifiedTicket,
};
use http_body_util::{BodyExt as _, Either};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use hyper::{Request, Response};
use tokio::time::Instant;

use crate::answer::{self, Body, Problem};
use crate::backend::Backend;
use crate::body::{Download, Upload};
use crate::check::Mark;
use crate::desk::{Desk, Passage};
use crate::exchange::{Exchange, Failure};
use crate::headers::{self, Client};
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::outlive::Outlive;
use crate::route::{Route, Rules};
use crate::store::unix_ms;

/// What a request is judged by and carried out with.
pub struct Gate {
    /// Which path belongs to which resource.
    pub rules: Arc<Rules>,
    /// Who may sign for a resource.
    pub keys: Arc<Keys>,
    /// Who may go to the backend now.
    pub desk: Arc<Desk>,
    /// Where it goes.
    pub backend: Arc<Backend>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What a request may take.
    pub limits: Limits,
}

/// What a request may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How far a ticket's time may be from the gate's clock.
    pub freshness: Duration,
    /// The longest body, in bytes.
    pub max_body_bytes: u64,
    /// How long nothing may move between client and backend.
    pub idle_timeout: Duration,
}

/// What is taken in of a body that nobody wants, at most.
const LEFT_BYTES: usize = 64 * 1024;
/// And how long that may take.
const LEFT_TIME: Duration = Duration::from_secs(1);

/// What a request may do.
enum Judged {
    /// Go to the backend; a read that was not checked has no passage.
    Passes(Option<(Passage, Mark)>),
    /// Nothing more: a fence was raised.
    Raised(RaiseAnswer),
}

/// A request's result where the fence played no part.
const OPEN: &str = "open";

impl Gate {
    /// The answer to a request.
    pub async fn answer(&self, request: Request<Incoming>, client: Client) -> Response<Body> {
        let start = Instant::now();
        let (parts, body) = request.into_parts();
        let outcome = match self.judge(&parts, body.size_hint().lower()).await {
            Ok(Judged::Passes(passage)) => {
                let result = if passage.is_some() { GateResult::Passed.as_str() } else { OPEN };
                self.pass(parts, body, client, passage).await.map(|answer| (result, answer))
            }
            Ok(Judged::Raised(answer)) => {
                tokio::spawn(leave(body));
                Ok((GateResult::Passed.as_str(), answer::raised(&answer)))
            }
            Err(problem) => {
                tokio::spawn(leave(body));
                Err(problem)
            }
        };
        let (result, answer) = outcome.unwrap_or_else(|problem| {
            self.metrics.problem(problem.code());
            (problem.result().as_str(), problem.answer())
        });
        self.metrics.request(result, start.elapsed());
        answer
    }

    /// Judges by the headers alone; `announced` is how long the body says that it is, in bytes.
    async fn judge(&self, parts: &Parts, announced: u64) -> Result<Judged, Problem> {
        let has_ticket = parts.headers.contains_key(TICKET_HEADER);
        let resource = match self.rules.route(&parts.method, &parts.uri, &parts.headers, has_ticket) {
            Route::Unroutable(problem) => return Err(problem.into()),
            Route::Raise => return self.raise(&parts.headers).await.map(Judged::Raised),
            Route::Open => return Ok(Judged::Passes(None)),
            Route::Checked(resource) => resource,
        };
        let ticket = self.ticket(&parts.headers, Some(resource))?;
        if announced > self.limits.max_body_bytes {
            return Err(Problem::BodyTooLarge(self.limits.max_body_bytes));
        }
        let mark = Mark { fence: ticket.fence, holder: Some(ticket.holder) };
        let passage = self.desk.admit(resource, &mark).await.map_err(Problem::NotLetIn)?;
        Ok(Judged::Passes(Some((passage, mark))))
    }

    async fn raise(&self, headers: &HeaderMap) -> Result<RaiseAnswer, Problem> {
        let Ticket { resource, fence, holder, .. } = self.ticket(headers, None)?;
        let mark = Mark { fence, holder: Some(holder) };
        let (fence, unsettled) = self.desk.raise(&resource, &mark).await.map_err(Problem::NotLetIn)?;
        Ok(RaiseAnswer { resource, fence, unsettled })
    }

    fn ticket(&self, headers: &HeaderMap, guarded: Option<&GuardedResource>) -> Result<Ticket, Problem> {
        let mut values = headers.get_all(TICKET_HEADER).iter();
        let value = values.next().ok_or(Problem::TicketMissing)?;
        if values.next().is_some() {
            return Err(Problem::TicketTwice);
        }
        // What is no text is no ticket either: it lacks the first word of one.
        let ticket = UnverifiedTicket::parse(value.to_str().unwrap_or_default())?;
        let shown = ticket.claimed_resource();
        if let Some(guarded) = guarded
            && shown != guarded
        {
            return Err(Problem::ResourceMismatch { shown: shown.clone(), guarded: guarded.clone() });
        }
        let keys = self.keys.of(shown).ok_or_else(|| Problem::ResourceUnknown(shown.clone()))?;
        Ok(ticket.verify(&keys, unix_ms(), self.limits.freshness)?)
    }

    async fn pass(
        &self,
        mut parts: Parts,
        body: Incoming,
        client: Client,
        passage: Option<(Passage, Mark)>,
    ) -> Result<Response<Body>, Problem> {
        let (passage, fence) =
            passage.map_or((None, None), |(passage, mark)| (Some(passage), Some(mark.fence)));
        let version = parts.version;
        headers::to_backend(&mut parts, client, fence, body.size_hint().exact());
        let is_checked = passage.is_some();
        let exchange = Exchange {
            backend: Arc::clone(&self.backend),
            request: Request::from_parts(parts, Upload::new(body, version, self.limits.max_body_bytes)),
            passage,
            idle_timeout: self.limits.idle_timeout,
        };
        let answer = if is_checked {
            // It goes on without its client, and the end of the process waits for its passage.
            Outlive::new(exchange.run()).await
        } else {
            // Clients that come and go must not leave reads behind at the backend.
            exchange.run().await
        };
        let mut answer: Response<Download> = answer.map_err(|failure| unchecked(failure, is_checked))?;
        headers::to_client(answer.headers_mut(), is_checked);
        Ok(answer.map(Either::Right))
    }
}

/// Takes in what is under way of a body that nobody wants: a client that still sends when its stream is reset may
/// not look at the answer.
async fn leave(mut body: Incoming) {
    let take_in = async {
        let mut taken = 0;
        while let Some(Ok(frame)) = body.frame().await
            && taken < LEFT_BYTES
        {
            taken += frame.data_ref().map_or(0, Bytes::len);
        }
    };
    // Who sends more, or slowly, is not waited for.
    let _ = tokio::time::timeout(LEFT_TIME, take_in).await;
}

/// The problem of a failure; an open read has no fate that anybody could miss.
fn unchecked(failure: Failure, is_checked: bool) -> Problem {
    if is_checked { failure.into() } else { Problem::ReadFailed(failure) }
}
