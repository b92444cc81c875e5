//! The requests that have one answer.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fencedlease_wire::Fence;
use fencedlease_wire::gate::TICKET_HEADER;
use fencedlease_wire::paths::ENV_SOCKET;
use fencedlease_wire::socket::{CommitCheck, CommitVerdict, FenceRejection, LeaseView};
use hyper::{Method, StatusCode};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use tokio::time::timeout;

use crate::http::{Whole, parse, send};
use crate::{ClientError, Events, Holding};

/// How long an answer may take. The sidecar is on this machine and waits for nobody.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the sidecar. Cheap to clone; each request has a connection of its own.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
}

/// The sidecar's yes to a commit.
#[derive(Clone, Debug)]
#[must_use = "a commit is written with the permit's fence and while it remains"]
pub struct Permit {
    fence: Fence,
    /// On CLOCK_BOOTTIME, which a suspend does not stop.
    until: Duration,
    headers: BTreeMap<String, String>,
}

// === impl Client ===

impl Client {
    /// A client of the socket that `FENCEDLEASE_SOCKET` names.
    pub fn from_env() -> Result<Self, ClientError> {
        let socket = env::var_os(ENV_SOCKET).filter(|path| !path.is_empty());
        socket.map(Self::at).ok_or(ClientError::NoSocket)
    }

    /// A client of this socket.
    pub fn at(socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into() }
    }

    /// The socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// How the lease stands: held with its fence and the time that remains, waited for, lost or released.
    pub async fn lease(&self) -> Result<LeaseView, ClientError> {
        parse(&self.ask(Method::GET, "/v1/lease", Vec::new()).await?.accepted()?)
    }

    /// The state now, then each change, as long as the holding lasts.
    pub async fn events(&self) -> Result<Events, ClientError> {
        within(Events::open(&self.socket)).await
    }

    /// The holding under which this process runs, to run work that ends with it.
    /// [`ClientError::NotHeld`] if this process does not hold the lease now.
    pub async fn holding(&self) -> Result<Holding, ClientError> {
        within(Holding::open(self)).await
    }

    /// May a commit start that writes with this fence and takes up to `need`? `need` only raises the
    /// FencedLease's `commitMargin`. Ask right before the commit; a no is [`ClientError::NotAllowed`].
    pub async fn commit_check(
        &self,
        fence: Option<Fence>,
        need: Option<Duration>,
    ) -> Result<Permit, ClientError> {
        let need_ms = need.map(|need| u64::try_from(need.as_millis()).unwrap_or(u64::MAX));
        let asked_at = since_boot();
        let check = CommitCheck { fence, need_ms };
        let answer = self.ask(Method::POST, "/v1/commit-check", json(&check)?).await?;
        if answer.status != StatusCode::OK && answer.status != StatusCode::CONFLICT {
            answer.accepted()?;
            return Err(ClientError::Unexpected("a commit check that is neither yes nor no"));
        }
        match parse(&answer.body)? {
            // Counted from the question, not from the answer: what remains was true in between.
            CommitVerdict::Allowed { allowed: true, fence, remaining_ms, headers } => {
                Ok(Permit { fence, until: asked_at + Duration::from_millis(remaining_ms), headers })
            }
            CommitVerdict::Allowed { .. } => {
                Err(ClientError::Unexpected("a commit that is allowed and is not"))
            }
            CommitVerdict::Refused { reason, message, .. } => {
                Err(ClientError::NotAllowed { reason, message })
            }
        }
    }

    /// Gives the lease back: SIGTERM follows, and another pod may have the lease once this one's work is gone.
    pub async fn step_down(&self) -> Result<(), ClientError> {
        self.ask(Method::POST, "/v1/step-down", Vec::new()).await?.accepted().map(drop)
    }

    /// Tells that a resource refused a fence, to be counted and logged. A message is cut to what is accepted.
    pub async fn fence_rejected(&self, mut rejection: FenceRejection) -> Result<(), ClientError> {
        if let Some(message) = &mut rejection.message {
            let most = FenceRejection::MAX_MESSAGE_BYTES;
            let end = (0..=most.min(message.len())).rev().find(|&end| message.is_char_boundary(end));
            message.truncate(end.unwrap_or_default());
        }
        self.ask(Method::POST, "/v1/fence-rejected", json(&rejection)?).await?.accepted().map(drop)
    }

    async fn ask(&self, method: Method, path: &'static str, body: Vec<u8>) -> Result<Whole, ClientError> {
        within(async { send(&self.socket, method, path, body).await?.whole().await }).await
    }
}

// === impl Permit ===

impl Permit {
    /// The fence to write with.
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// What remains until the work is killed if no renewal succeeds any more. Zero: do not start.
    pub fn remaining(&self) -> Duration {
        self.until.saturating_sub(since_boot())
    }

    /// The headers to send to a gate with the write, ready as they are.
    pub fn headers(&self) -> &BTreeMap<String, String> {
        &self.headers
    }

    /// The signed value of the gate's header, [`TICKET_HEADER`]; `None` where the sidecar has no gate's key.
    pub fn ticket(&self) -> Option<&str> {
        let is_ticket = |name: &str| name.eq_ignore_ascii_case(TICKET_HEADER);
        self.headers.iter().find(|(name, _)| is_ticket(name)).map(|(_, value)| value.as_str())
    }
}

fn since_boot() -> Duration {
    // The kernel's clock is never negative, and neither is what is left of its second.
    clock_gettime(ClockId::Boottime).try_into().unwrap_or(Duration::MAX)
}

async fn within<T>(exchange: impl Future<Output = Result<T, ClientError>>) -> Result<T, ClientError> {
    timeout(PATIENCE, exchange).await.map_err(|_| ClientError::Silent(PATIENCE))?
}

fn json(body: &impl Serialize) -> Result<Vec<u8>, ClientError> {
    serde_json::to_vec(body).map_err(|source| ClientError::Shape { text: String::new(), source })
}
