//! Work that ends with the lease under which it runs.

use std::fmt;
use std::time::Duration;

use fencedlease_wire::socket::{EventLine, LeaseView};
use fencedlease_wire::{EndReason, Fence, HoldingId};
use tokio::time::{Instant, timeout_at};

use crate::{Client, ClientError, Event, Events};

/// One holding: a lease from its acquisition to its end. Nothing is watched before [`Holding::ended`] or
/// [`Holding::run`] is awaited, and each of them sees an end that came before.
#[derive(Debug)]
pub struct Holding {
    resource: String,
    fence: Fence,
    id: HoldingId,
    /// Without a word of the sidecar until then, the lease is not to be counted on.
    until: Instant,
    events: Events,
}

/// Why work under a holding must stop now.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// The lease was lost, and the work is being killed.
    Lost {
        /// Why, for programs.
        reason: EndReason,
        /// Why, for people.
        message: String,
    },
    /// The holding is being ended on purpose, or has been.
    Released {
        /// Why.
        reason: EndReason,
    },
    /// Another holding has begun, or this process waits for one.
    Replaced,
    /// The socket is gone, or says what cannot be understood.
    Unreachable(String),
    /// Nothing was heard until the work would have been killed.
    Silent,
}

// === impl Holding ===

impl Holding {
    pub(crate) async fn open(client: &Client) -> Result<Self, ClientError> {
        let asked_at = Instant::now();
        let mut events = Events::open(client.socket()).await?;
        match events.next().await? {
            Some(Event::State(LeaseView::Active {
                resource,
                fence,
                holding,
                remaining_ms,
                ending: None,
                ..
            })) => {
                let until = asked_at + Duration::from_millis(remaining_ms);
                Ok(Self { resource, fence, id: holding, until, events })
            }
            Some(Event::State(view)) => Err(ClientError::NotHeld(Box::new(view))),
            Some(Event::Line(_)) | None => Err(ClientError::Unexpected("events without the state first")),
        }
    }

    /// `namespace/name` of what is held.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The fence to write with.
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// Which holding: the holder's name for a fence check.
    pub fn id(&self) -> &HoldingId {
        &self.id
    }

    /// Completes when the work must stop, and says why: the lease is lost or given back, its end has begun, or
    /// the sidecar cannot be heard. Use it in a `select!`, or to trip a cancellation token.
    pub async fn ended(&mut self) -> Ended {
        loop {
            let event = match timeout_at(self.until, self.events.next()).await {
                Ok(Ok(Some(event))) => event,
                Ok(Ok(None)) => {
                    return Ended::Unreachable("the sidecar closed the stream of events".to_owned());
                }
                Ok(Err(error)) => return Ended::Unreachable(error.to_string()),
                Err(_) => return Ended::Silent,
            };
            let heard_at = Instant::now();
            if let Some(ended) = self.end_by(&event) {
                return ended;
            }
            // What comes after the end prolongs nothing.
            if heard_at >= self.until {
                return Ended::Silent;
            }
            if let Event::Line(EventLine::Alive { remaining_ms }) = event {
                self.until = heard_at + Duration::from_millis(remaining_ms);
            }
        }
    }

    /// Runs work until it is done or the holding ends, whichever is first. Work that is cut short is dropped at
    /// its next `await`, which rolls nothing back: what it sent may still arrive.
    pub async fn run<T>(mut self, work: impl Future<Output = T>) -> Result<T, Ended> {
        tokio::select! {
            biased;
            ended = self.ended() => Err(ended),
            done = work => Ok(done),
        }
    }

    fn end_by(&self, event: &Event) -> Option<Ended> {
        let Event::State(view) = event else {
            return None;
        };
        match view {
            LeaseView::Active { holding, ending, .. } if *holding == self.id => {
                ending.map(|reason| Ended::Released { reason })
            }
            LeaseView::Active { .. } | LeaseView::Waiting { .. } => Some(Ended::Replaced),
            LeaseView::Lost { reason, message, .. } => {
                Some(Ended::Lost { reason: *reason, message: message.clone() })
            }
            LeaseView::Released { reason, .. } => Some(Ended::Released { reason: *reason }),
        }
    }
}

// === impl Ended ===

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { reason, message } => write!(f, "LOST {reason}: {message}"),
            Self::Released { reason } => write!(f, "RELEASED {reason}"),
            Self::Replaced => f.write_str("the holding is over"),
            Self::Unreachable(why) => write!(f, "the sidecar cannot be heard: {why}"),
            Self::Silent => f.write_str("the sidecar was silent for too long"),
        }
    }
}
