//! What happens to a request: its resource, its ticket, the door, the backend.

use std::sync::Arc;
use std::time::Duration;

use fencedlease_wire::gate::{
    GateResult, GuardedResource, RaiseAnswer, TICKET_HEADER, Ticket, UnverifiedTicket,
};
use http_body_util::Either;
use hyper::body::{Body as _, Incoming};
use hyper::header::HeaderMap;
use hyper::{Request, Response};
use tokio::sync::oneshot;
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
use crate::route::{Route, Rules};
use crate::store::unix_ms;

/// What a request is judged by and carried out with.
pub struct Gate {
    /// Which path belongs to which resource.
    pub rules: Rules,
    /// Who may sign for a resource.
    pub keys: Keys,
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

/// A request's result where the fence played no part.
const OPEN: &str = "open";

impl Gate {
    /// The answer to a request.
    pub async fn answer(&self, request: Request<Incoming>, client: Client) -> Response<Body> {
        let start = Instant::now();
        let (result, answer) = match self.handle(request, client).await {
            Ok((result, answer)) => (result, answer),
            Err(problem) => {
                self.metrics.problem(problem.code());
                (problem.result().as_str(), problem.answer())
            }
        };
        self.metrics.request(result, start.elapsed());
        answer
    }

    async fn handle(
        &self,
        request: Request<Incoming>,
        client: Client,
    ) -> Result<(&'static str, Response<Body>), Problem> {
        let has_ticket = request.headers().contains_key(TICKET_HEADER);
        let route = self.rules.route(request.method(), request.uri(), request.headers(), has_ticket);
        let resource = match route {
            Route::Unroutable(problem) => return Err(problem.into()),
            Route::Raise => return self.raise(request.headers()).await,
            Route::Open => {
                let answer = self.pass(request, client, None).await?;
                return Ok((OPEN, answer));
            }
            Route::Checked(resource) => resource,
        };
        let ticket = self.ticket(request.headers(), Some(resource))?;
        if request.body().size_hint().lower() > self.limits.max_body_bytes {
            return Err(Problem::BodyTooLarge(self.limits.max_body_bytes));
        }
        let mark = Mark { fence: ticket.fence, holder: Some(ticket.holder) };
        let passage = self.desk.admit(resource, &mark).await.map_err(Problem::NotLetIn)?;
        let answer = self.pass(request, client, Some((passage, mark))).await?;
        Ok((GateResult::Passed.as_str(), answer))
    }

    async fn raise(&self, headers: &HeaderMap) -> Result<(&'static str, Response<Body>), Problem> {
        let Ticket { resource, fence, holder, .. } = self.ticket(headers, None)?;
        let mark = Mark { fence, holder: Some(holder) };
        let (fence, unsettled) = self.desk.raise(&resource, &mark).await.map_err(Problem::NotLetIn)?;
        let answer = answer::raised(&RaiseAnswer { resource, fence, unsettled });
        Ok((GateResult::Passed.as_str(), answer))
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
        request: Request<Incoming>,
        client: Client,
        passage: Option<(Passage, Mark)>,
    ) -> Result<Response<Body>, Problem> {
        let (passage, fence) =
            passage.map_or((None, None), |(passage, mark)| (Some(passage), Some(mark.fence)));
        let (mut parts, body) = request.into_parts();
        headers::to_backend(&mut parts, client, fence);
        let is_checked = passage.is_some();
        let exchange = Exchange {
            backend: Arc::clone(&self.backend),
            request: Request::from_parts(parts, Upload::new(body, self.limits.max_body_bytes)),
            passage,
            idle_timeout: self.limits.idle_timeout,
        };
        let (tell, told) = oneshot::channel();
        // It ends with its passage, and the end of the process waits for those.
        tokio::spawn(exchange.run(tell));
        let answer = told.await.unwrap_or(Err(Failure::BackendCut));
        let mut answer: Response<Download> = answer.map_err(|failure| unchecked(failure, is_checked))?;
        headers::to_client(answer.headers_mut(), is_checked);
        Ok(answer.map(Either::Right))
    }
}

/// The problem of a failure; an open read has no fate that anybody could miss.
fn unchecked(failure: Failure, is_checked: bool) -> Problem {
    if is_checked { failure.into() } else { Problem::ReadFailed(failure) }
}
