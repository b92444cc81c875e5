//! The thread that speaks to Redis, and the translation between its words and the pod's.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fencedlease_redis::agent::{self, Answer, Call, Hint, Notice, Notify, Order, Request};
use fencedlease_redis::{
    Acquire, AcquireReply, CallError, CredentialProvider, Identity, LeaseKeys, Place, Release, Renew, Server,
    Tls, renewal_outcome,
};
use fencedlease_wire::ResourceName;
use fencedlease_wire::settings::{RedisSettings, RedisTls};
use tokio::sync::mpsc::UnboundedReceiver;

use super::mailbox::Post;
use super::pod::{AcquireAnswer, Event, RedisRequest};
use super::watch::Letter;
use crate::clock;

/// Turns the pod's requests into the agent's orders.
#[derive(Clone, Debug)]
pub struct Translator {
    /// How long the lease lasts.
    pub ttl: Duration,
    /// The pod's name, for people.
    pub holder: String,
}

/// Serves until nobody can ask any more.
pub async fn serve(place: Place, orders: UnboundedReceiver<Order>, post: Post<Letter>) {
    let notify: Notify = Box::new(move |notice| {
        let at = clock::now();
        post.send(Letter { event: event(notice), at });
    });
    agent::serve(place, orders, notify).await;
}

/// Where the lease is kept.
pub fn place(
    settings: &RedisSettings,
    resource: &ResourceName,
    pod_name: &str,
    credentials: Arc<dyn CredentialProvider>,
    tls_dir: &Path,
) -> Option<Place> {
    let server = Server {
        address: settings.addresses.first()?.clone(),
        tls: settings.tls.as_ref().map(|tls| encryption(tls, tls_dir)),
        database: settings.database,
        client_name: format!("fencedlease:{pod_name}"),
    };
    Some(Place { server, keys: LeaseKeys::new(resource), credentials })
}

fn encryption(tls: &RedisTls, folder: &Path) -> Tls {
    let identity = || Identity { certificate: folder.join("tls.crt"), key: folder.join("tls.key") };
    Tls {
        server_name: tls.server_name.clone(),
        authorities: tls.own_authorities.then(|| folder.join("ca.crt")),
        identity: tls.client_certificate.then(identity),
    }
}

// === impl Translator ===

impl Translator {
    /// The order that a request is.
    pub fn order(&self, request: RedisRequest) -> Order {
        let (id, timeout, request) = match request {
            RedisRequest::Listen(wanted) => return Order::Listen(wanted),
            RedisRequest::Acquire { call, token, floor, timeout } => {
                let acquire = Acquire { token, ttl: self.ttl, floor, holder: self.holder.clone() };
                (call, timeout, Request::Acquire(acquire))
            }
            RedisRequest::Renew { call, token, fence, timeout } => {
                (call, timeout, Request::Renew(Renew { token, ttl: self.ttl, fence }))
            }
            RedisRequest::Release { call, token, clean, timeout } => {
                (call, timeout, Request::Release(Release { token, clean }))
            }
        };
        Order::Call(Call { id, timeout, request })
    }
}

fn event(notice: Notice) -> Event {
    match notice {
        Notice::Hint(hint) => Event::ReleaseHeard { published: hint == Hint::Released },
        Notice::Outcome { id, answer } => match answer {
            Answer::Acquire(reply) => Event::AcquireAnswered { call: id, answer: acquired(reply) },
            Answer::Renew(reply) => Event::RenewAnswered { call: id, outcome: renewal_outcome(&reply) },
            Answer::Release(reply) => {
                if let Err(error) = reply {
                    tracing::warn!(%error, "the lease could not be released; it runs out by itself");
                }
                Event::ReleaseAnswered { call: id }
            }
        },
    }
}

fn acquired(reply: Result<AcquireReply, CallError>) -> AcquireAnswer {
    match reply {
        Ok(AcquireReply::Acquired { fence, previous_holder, clean: _ }) => {
            AcquireAnswer::Acquired { fence, previous_holder }
        }
        Ok(AcquireReply::Held { remaining, highest, holder }) => {
            AcquireAnswer::Held { remaining, highest_fence: highest, holder }
        }
        Err(error) => AcquireAnswer::Failed { kind: error.standing(), message: error.to_string() },
    }
}
