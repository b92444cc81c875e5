//! One call, one answer, one deadline. Nothing is repeated.

use std::sync::Arc;
use std::time::Duration;

use fencedlease_wire::Fence;
use redis::{Cmd, PushInfo, Value};
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::{Instant, timeout_at};

use crate::connection::Connection;
use crate::reply::ReplyError;
use crate::script::inspect_command;
use crate::{
    Acquire, AcquireReply, CallError, CredentialProvider, Inspection, LeaseKeys, Refusal, Release,
    ReleaseReply, Renew, RenewReply, Server,
};

/// Where a lease is kept, and how to get there.
#[derive(Clone)]
pub struct Place {
    /// Which Redis.
    pub server: Server,
    /// The lease's names in it.
    pub keys: LeaseKeys,
    /// Who we are to it.
    pub credentials: Arc<dyn CredentialProvider>,
}

/// Asks Redis, one call at a time. It keeps its connection between calls, and throws it away after any call
/// that was not answered as it should be.
pub struct Client {
    place: Place,
    connection: Option<Connection>,
}

// === impl Client ===

impl Client {
    /// A client that is not connected yet; each call connects if it must.
    pub fn new(place: Place) -> Self {
        Self { place, connection: None }
    }

    /// Whether there is a connection that can be used, as far as is known.
    pub fn is_connected(&self) -> bool {
        self.connection.as_ref().is_some_and(Connection::is_open)
    }

    /// Asks for the lease. After an error that says [`CallError::may_have_happened`] it may be held by the token.
    pub async fn acquire(&mut self, acquire: &Acquire, timeout: Duration) -> Result<AcquireReply, CallError> {
        let command = acquire.command(&self.place.keys);
        let reply = self.call(&command, timeout, AcquireReply::parse).await?;
        match &reply {
            AcquireReply::Acquired { fence, .. } if acquire.floor.is_some_and(|floor| *fence <= floor) => {
                self.connection = None;
                Err(self.below_floor(*fence))
            }
            _ => Ok(reply),
        }
    }

    /// Extends the lease.
    pub async fn renew(&mut self, renew: &Renew, timeout: Duration) -> Result<RenewReply, CallError> {
        self.call(&renew.command(&self.place.keys), timeout, RenewReply::parse).await
    }

    /// Gives the lease back.
    pub async fn release(&mut self, release: &Release, timeout: Duration) -> Result<ReleaseReply, CallError> {
        self.call(&release.command(&self.place.keys), timeout, ReleaseReply::parse).await
    }

    /// How the lease stands, for diagnosis.
    pub async fn inspect(&mut self, timeout: Duration) -> Result<Inspection, CallError> {
        self.call(&inspect_command(&self.place.keys), timeout, Inspection::parse).await
    }

    async fn call<R>(
        &mut self,
        command: &Cmd,
        timeout: Duration,
        parse: fn(&Value) -> Result<R, ReplyError>,
    ) -> Result<R, CallError> {
        let deadline = Instant::now() + timeout;
        let server = &self.place.server;
        let address = || server.address.clone();
        // Taken out, so that whatever ends this call early closes it.
        let mut connection = match self.connection.take().filter(Connection::is_open) {
            Some(connection) => connection,
            None => timeout_at(deadline, self.place.connect(None))
                .await
                .map_err(|_| CallError::ConnectTimeout { address: address(), waited: timeout })??,
        };
        let reply = timeout_at(deadline, connection.ask(server, command))
            .await
            .map_err(|_| CallError::Timeout { address: address(), waited: timeout })??;
        let reply = parse(&reply)
            .map_err(|error| CallError::Protocol { address: address(), text: error.to_string() })?;
        self.connection = Some(connection);
        Ok(reply)
    }

    fn below_floor(&self, fence: Fence) -> CallError {
        let text = format!("a fence above the floor was asked for, and {fence} was given");
        CallError::Protocol { address: self.place.server.address.clone(), text }
    }
}

// === impl Place ===

impl Place {
    /// Connects as the provider says. Has no deadline of its own.
    pub(crate) async fn connect(
        &self,
        pushes: Option<UnboundedSender<PushInfo>>,
    ) -> Result<Connection, CallError> {
        let credentials = self.credentials.credentials().await.map_err(|error| CallError::Credentials {
            address: self.server.address.clone(),
            text: error.to_string(),
        })?;
        let opened = Connection::open(&self.server, &credentials, pushes).await;
        if let Err(CallError::Refused { refusal: Refusal::Auth, .. }) = &opened {
            self.credentials.rejected();
        }
        opened
    }
}
