//! The thread that speaks with gates: each raise is one request on a connection of its own, under one deadline.
//! Renewals and instants wait for nothing here; what becomes of a raise they hear by a letter.

mod ask;
mod verdict;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fencedlease_redis::Tls;
use fencedlease_wire::settings::GateSettings;
use hyper::Uri;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::mailbox::Post;
use super::pod::{Event, GateAnswer, RaiseRequest};
use super::tickets::Tickets;
use super::watch::Letter;
use crate::clock;

/// How often the key's file is read.
const REFRESH: Duration = Duration::from_secs(1);

/// One gate, and how it is reached.
#[derive(Clone, Debug)]
pub struct Gate {
    /// `host:port`.
    address: String,
    /// What the request's `Host` says.
    authority: String,
    tls: Option<Tls>,
}

/// Why a gate's URL cannot be used.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("write https://HOST:PORT or http://HOST:PORT, without a path")]
pub struct UrlError;

// === impl Gate ===

impl Gate {
    /// The gate of these settings; its own authorities are `NAME/ca.crt` below `tls_dir`.
    pub fn new(settings: &GateSettings, tls_dir: &Path) -> Result<Self, UrlError> {
        let uri: Uri = settings.url.parse().map_err(|_| UrlError)?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(UrlError),
        };
        let authority = uri.authority().ok_or(UrlError)?;
        let has_path = uri.path_and_query().is_some_and(|path| path.as_str() != "/");
        if has_path || authority.host().is_empty() || authority.as_str().contains('@') {
            return Err(UrlError);
        }
        let port = authority.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let authorities = settings.own_authorities.then(|| tls_dir.join(&settings.name).join("ca.crt"));
        Ok(Self {
            address: format!("{}:{port}", authority.host()),
            authority: authority.to_string(),
            tls: is_tls.then_some(Tls { server_name: None, authorities, identity: None }),
        })
    }
}

/// Serves until nobody can ask any more; what is under way then is dropped. `gates` are in the order of the settings.
pub async fn serve(
    gates: Vec<Gate>,
    tickets: Arc<Tickets>,
    mut requests: UnboundedReceiver<RaiseRequest>,
    post: Post<Letter>,
) {
    let gates: Vec<Arc<Gate>> = gates.into_iter().map(Arc::new).collect();
    let mut raises = JoinSet::new();
    let mut refresh = tokio::time::interval(REFRESH);
    refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            // The key is read before anything is signed with it.
            biased;
            _ = refresh.tick() => tickets.refresh(),
            request = requests.recv() => {
                let Some(request) = request else { return };
                let Some(gate) = gates.get(request.gate).map(Arc::clone) else { continue };
                let (tickets, post) = (Arc::clone(&tickets), post.clone());
                raises.spawn(async move {
                    let answer = raise(&gate, &tickets, &request).await;
                    let event = Event::RaiseAnswered { call: request.call, answer };
                    post.send(Letter { event, at: clock::now() });
                });
            }
            Some(_) = raises.join_next() => {}
        }
    }
}

async fn raise(gate: &Gate, tickets: &Tickets, request: &RaiseRequest) -> GateAnswer {
    let ticket = match tickets.sign(request.fence, &request.holding) {
        Ok(ticket) => ticket,
        Err(error) => return GateAnswer::Failed { message: error.to_string() },
    };
    match tokio::time::timeout(request.timeout, ask::raise(gate, ticket)).await {
        Ok(Ok((status, body))) => verdict::of(status, &body, tickets.resource(), request.fence),
        Ok(Err(error)) => GateAnswer::Failed { message: error.to_string() },
        Err(_) => GateAnswer::Failed {
            message: format!(
                "no answer within {} s; see that the gate runs and is not overloaded",
                request.timeout.as_secs()
            ),
        },
    }
}

#[cfg(test)]
mod tests;
