//! The loop that speaks to Redis for somebody who must never wait: orders come over a channel, outcomes go to a
//! function. It decides nothing; above all it never repeats a call.
//!
//! A call never waits for another one: it takes the idle connection if there is one, else it opens its own, so
//! a renewal that hangs does not delay the release after it.

mod abandoned;
mod listener;

use std::time::Duration;

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::{AbortHandle, JoinError, JoinSet};

use crate::{Acquire, AcquireReply, CallError, Client, Place, Release, ReleaseReply, Renew, RenewReply};

/// What the agent is to do.
#[derive(Debug)]
pub enum Order {
    /// Ask Redis.
    Call(Call),
    /// Hear of releases from now on, or no longer. Asking for what is the case already changes nothing.
    Listen(bool),
}

/// One call.
#[derive(Debug)]
pub struct Call {
    /// Comes back with the outcome.
    pub id: u64,
    /// How long all of it may take, connecting included.
    pub timeout: Duration,
    /// What to ask.
    pub request: Request,
}

/// What to ask Redis.
#[derive(Debug)]
pub enum Request {
    /// For the lease.
    Acquire(Acquire),
    /// To extend it.
    Renew(Renew),
    /// To take it back.
    Release(Release),
}

/// What the agent tells.
#[derive(Debug)]
pub enum Notice {
    /// What became of a call. Each call has exactly one, unless the agent ends before.
    Outcome {
        /// The call's id.
        id: u64,
        /// What Redis answered.
        answer: Answer,
    },
    /// Something that may end a standby's sleep, and means nothing else.
    Hint(Hint),
}

/// What Redis answered to each kind of request.
#[derive(Debug)]
pub enum Answer {
    /// To an acquisition. One that may have happened is released by its token in the background, so the next
    /// attempt needs a new token.
    Acquire(Result<AcquireReply, CallError>),
    /// To a renewal.
    Renew(Result<RenewReply, CallError>),
    /// To a release.
    Release(Result<ReleaseReply, CallError>),
}

/// Why a standby may want to try now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hint {
    /// A release was published.
    Released,
    /// Releases are heard from now on; one may have been missed before.
    Listening,
}

/// Where notices go. Called on the agent's own task, so it must not block.
pub type Notify = Box<dyn Fn(Notice) + Send>;

struct Agent {
    place: Place,
    idle: Option<Client>,
    calls: JoinSet<Done>,
    background: JoinSet<()>,
    listener: Option<AbortHandle>,
    hints: mpsc::Sender<Hint>,
    abandoned: UnboundedSender<abandoned::Abandoned>,
}

/// A call that is over.
struct Done {
    id: u64,
    answer: Answer,
    client: Client,
    abandoned: Option<abandoned::Abandoned>,
}

/// Serves until every sender of orders is gone; what is under way then is broken off, and a lease that an
/// unanswered acquisition may have taken is left to expire.
pub async fn serve(place: Place, mut orders: UnboundedReceiver<Order>, notify: Notify) {
    let (hints, mut heard) = mpsc::channel(HINTS);
    let (abandoned, given_up) = mpsc::unbounded_channel();
    let mut agent = Agent {
        idle: None,
        calls: JoinSet::new(),
        background: JoinSet::new(),
        listener: None,
        hints,
        abandoned,
        place,
    };
    agent.background.spawn(abandoned::release_all(agent.place.clone(), given_up));
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(Order::Call(call)) => agent.start(call),
                Some(Order::Listen(wanted)) => agent.listen(wanted),
                None => return,
            },
            Some(done) = agent.calls.join_next() => {
                if let Some((id, answer)) = agent.finish(done) {
                    notify(Notice::Outcome { id, answer });
                }
            }
            Some(hint) = heard.recv() => notify(Notice::Hint(hint)),
            Some(ended) = agent.background.join_next() => report(ended),
        }
    }
}

/// Hints that wait to be told at most; more say nothing new.
const HINTS: usize = 4;

// === impl Agent ===

impl Agent {
    fn start(&mut self, call: Call) {
        let idle = self.idle.take().filter(Client::is_connected);
        let client = idle.unwrap_or_else(|| Client::new(self.place.clone()));
        self.calls.spawn(perform(client, call));
    }

    fn finish(&mut self, done: Result<Done, JoinError>) -> Option<(u64, Answer)> {
        let Done { id, answer, client, abandoned } = match done {
            Ok(done) => done,
            Err(error) => {
                report(Err(error));
                return None;
            }
        };
        if self.idle.is_none() && client.is_connected() {
            self.idle = Some(client);
        }
        if let Some(abandoned) = abandoned {
            // Its receiver lives in `background`; if that has died, the lease expires by itself.
            let _ = self.abandoned.send(abandoned);
        }
        Some((id, answer))
    }

    fn listen(&mut self, wanted: bool) {
        if !wanted {
            if let Some(listener) = self.listener.take() {
                listener.abort();
            }
        } else if self.listener.as_ref().is_none_or(AbortHandle::is_finished) {
            let listening = listener::listen(self.place.clone(), self.hints.clone());
            self.listener = Some(self.background.spawn(listening));
        }
    }
}

async fn perform(mut client: Client, call: Call) -> Done {
    let Call { id, timeout, request } = call;
    let mut abandoned = None;
    let answer = match request {
        Request::Acquire(acquire) => {
            let reply = client.acquire(&acquire, timeout).await;
            if reply.as_ref().is_err_and(CallError::may_have_happened) {
                abandoned = Some(abandoned::Abandoned::now(acquire.token, acquire.ttl, timeout));
            }
            Answer::Acquire(reply)
        }
        Request::Renew(renew) => Answer::Renew(client.renew(&renew, timeout).await),
        Request::Release(release) => Answer::Release(client.release(&release, timeout).await),
    };
    Done { id, answer, client, abandoned }
}

fn report(ended: Result<(), JoinError>) {
    // A task that was broken off on purpose is no news; one that panicked is a fault of ours, and whoever waits
    // for it takes the silence for a timeout.
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(%error, "a call to Redis ended without an outcome");
    }
}
