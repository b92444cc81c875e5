//! One request and its answer. It goes on when the client has gone, since the backend may go on; its passage
//! ends only when nothing more of it can reach the backend.

use std::sync::Arc;
use std::time::Duration;

use hyper::{Request, Response};
use tokio::time::{Instant, sleep_until};

use crate::backend::{Backend, Connection};
use crate::body::{Download, Progress, Stage, Upload};
use crate::desk::Passage;

/// Why there is no answer of the backend.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Failure {
    /// Nothing was sent.
    #[error("the backend cannot be reached; nothing was sent to it")]
    Unreachable,
    /// The connection ended after something was sent.
    #[error("the backend ended the connection before it answered: the request may have been carried out")]
    BackendCut,
    /// No answer, or nothing taken, for too long.
    #[error("the backend did not answer in time: the request may have been carried out, or may still be")]
    BackendSilent,
    /// The client did not go on with its body.
    #[error("the rest of the body did not come in time: the backend has a part of the request")]
    ClientSilent,
    /// The client ended its body before its end.
    #[error("the body ended before its end: the backend has a part of the request")]
    ClientCut,
    /// The body became too long.
    #[error("the body is longer than the gate's --max-body-bytes: the backend has a part of the request")]
    TooLarge,
    /// A newer fence was raised meanwhile.
    #[error(
        "a newer fence was raised while this was on its way: it may have been carried out, wholly or in part"
    )]
    Superseded,
}

/// One request on its way.
pub struct Exchange {
    /// Where to.
    pub backend: Arc<Backend>,
    /// What.
    pub request: Request<Upload>,
    /// Its right to be on its way; `None` for what is not checked.
    pub passage: Option<Passage>,
    /// How long nothing may move before it is given up.
    pub idle_timeout: Duration,
}

impl Exchange {
    /// Carries it out, and returns the answer. Its passage ends when nothing more of it can reach the backend.
    pub async fn run(self) -> Result<Response<Download>, Failure> {
        let Self { backend, request, passage, idle_timeout } = self;
        let mut way = Way { progress: request.body().progress(), passage, idle_timeout };
        let (connection, answer) = way.send(&backend, request).await?;
        if way.progress.stage() == Stage::Complete {
            way.settle();
            return Ok(answer.map(|body| Download::new(body, connection.lent(&backend))));
        }
        // It answered before it had everything; what it still gets is on its way all the same, and the connection
        // is for nobody else.
        tokio::spawn(async move {
            way.rest().await;
            drop(connection);
        });
        Ok(answer.map(Download::alone))
    }
}

/// What a request's fate hangs on.
struct Way {
    progress: Arc<Progress>,
    passage: Option<Passage>,
    idle_timeout: Duration,
}

impl Way {
    async fn send(
        &mut self,
        backend: &Arc<Backend>,
        mut request: Request<Upload>,
    ) -> Result<(Connection, Response<hyper::body::Incoming>), Failure> {
        request.body_mut().begin().await;
        loop {
            let connection = match backend.idle().await {
                Some(connection) => Ok(connection),
                None => backend.connect().await,
            };
            let mut connection = match connection {
                Ok(connection) => connection,
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "the backend cannot be reached");
                    self.settle();
                    return Err(Failure::Unreachable);
                }
            };
            let is_used = connection.is_used();
            let mut answer = std::pin::pin!(connection.sender().try_send_request(request));
            let failure = tokio::select! {
                biased;
                answer = answer.as_mut() => match answer {
                    Ok(answer) => return Ok((connection, answer)),
                    Err(mut error) => match error.take_message() {
                        // The backend had closed it meanwhile, and got nothing of the request.
                        Some(unsent) if is_used => {
                            request = unsent;
                            continue;
                        }
                        Some(_) => {
                            self.settle();
                            return Err(Failure::Unreachable);
                        }
                        None => self.cause(),
                    },
                },
                failure = self.given_up() => failure,
            };
            connection.close().await;
            // What was let go of unfinished may have been all that the backend waited for.
            if !matches!(self.progress.stage(), Stage::Complete | Stage::Dropped) {
                self.settle();
            }
            return Err(failure);
        }
    }

    /// Returns when the request has to be given up: superseded, or nothing moves.
    async fn given_up(&mut self) -> Failure {
        let Self { progress, passage, idle_timeout } = self;
        let mut moved = progress.frames();
        let mut idle_at = Instant::now() + *idle_timeout;
        loop {
            let is_sending = progress.stage() == Stage::Sending;
            if matches!(progress.stage(), Stage::Complete | Stage::Dropped)
                && let Some(passage) = passage
            {
                passage.complete();
            }
            tokio::select! {
                _ = progress.ended(), if is_sending => idle_at = Instant::now() + *idle_timeout,
                () = superseded(passage.as_mut()) => {
                    // Where the last bytes went out just now, it has the drain time like any complete one.
                    if progress.cut() || progress.stage() != Stage::Complete || !is_sending {
                        return Failure::Superseded;
                    }
                }
                () = sleep_until(idle_at) => {
                    let now = progress.frames();
                    if now == moved {
                        let is_client = progress.cut() && progress.waits_for_client();
                        return if is_client { Failure::ClientSilent } else { Failure::BackendSilent };
                    }
                    moved = now;
                    idle_at = Instant::now() + *idle_timeout;
                }
            }
        }
    }

    /// After an early answer: until the backend has everything, or gets no more.
    async fn rest(mut self) {
        let progress = Arc::clone(&self.progress);
        tokio::select! {
            _ = progress.ended() => {}
            _ = self.given_up() => {}
        }
        // Cut or not, the body's connection reads its stage before it sends a next part.
        progress.cut();
        self.settle();
    }

    /// Why the connection failed, as the body knows it.
    fn cause(&self) -> Failure {
        match self.progress.stage() {
            Stage::ClientCut => Failure::ClientCut,
            Stage::TooLarge => Failure::TooLarge,
            Stage::Cut => Failure::Superseded,
            Stage::Sending | Stage::Complete | Stage::Dropped => Failure::BackendCut,
        }
    }

    fn settle(&mut self) {
        if let Some(passage) = self.passage.take() {
            passage.settle();
        }
    }
}

async fn superseded(passage: Option<&mut Passage>) {
    match passage {
        Some(passage) => passage.cut().await,
        None => std::future::pending().await,
    }
}
