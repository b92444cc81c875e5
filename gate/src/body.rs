//! Bodies on their way through the gate: never whole in memory, and cut where nothing more may pass.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::Version;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::sync::Notify;

use crate::backend::Lent;

/// How often a body is asked whether its beginning is here: hyper hands on what it has read once somebody asked.
const ASKS: u32 = 2;

/// What a body says when it is asked for its next part.
type Polled = Option<Result<Frame<Bytes>, hyper::Error>>;

/// How far a request's body is. Decided once, by whoever comes first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Stage {
    /// The backend lacks a part of it.
    Sending = 0,
    /// The backend may have all of it.
    Complete = 1,
    /// No more of it may pass.
    Cut = 2,
    /// The client did not send the rest.
    ClientCut = 3,
    /// It is longer than the gate takes.
    TooLarge = 4,
    /// The backend took no more of it.
    Dropped = 5,
}

/// A request's body as others see it.
pub struct Progress {
    stage: AtomicU8,
    /// Grows with each frame.
    frames: AtomicU64,
    /// Whether the client was waited for when this was last looked at.
    waits_for_client: AtomicU8,
    changed: Notify,
}

/// A request's body.
pub struct Upload {
    inner: Incoming,
    /// What came out of `inner` already, its end included.
    first: Option<Polled>,
    /// Over HTTP/2 a body that ends may lack its end: a stream that was reset without an error ends likewise.
    is_http_2: bool,
    left: u64,
    progress: Arc<Progress>,
}

/// Why a body ends before its end.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The client's connection.
    #[error("the client did not send the rest")]
    Client(#[from] hyper::Error),
    /// The client's stream, without an error.
    #[error("the client ended the stream before the body's end")]
    Reset,
    /// Decided by the gate.
    #[error("the gate let no more of it through")]
    Cut,
}

/// An answer's body; at its end the connection goes back to the pool.
pub struct Download {
    inner: Incoming,
    lent: Option<Lent>,
}

impl Progress {
    /// How far the body is.
    pub fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Acquire) {
            0 => Stage::Sending,
            1 => Stage::Complete,
            2 => Stage::Cut,
            3 => Stage::ClientCut,
            4 => Stage::TooLarge,
            _ => Stage::Dropped,
        }
    }

    /// Lets nothing more through, unless the backend may have all of it already. Whether it did so.
    pub fn cut(&self) -> bool {
        self.turn(Stage::Cut)
    }

    /// Waits until the body is no longer being sent.
    pub async fn ended(&self) -> Stage {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            match self.stage() {
                Stage::Sending => changed.await,
                stage => return stage,
            }
        }
    }

    /// A number that is another one whenever something has moved.
    pub fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    /// Whether the client is what the body waits for.
    pub fn waits_for_client(&self) -> bool {
        self.waits_for_client.load(Ordering::Relaxed) == 1
    }

    fn turn(&self, stage: Stage) -> bool {
        let order = Ordering::AcqRel;
        let turned = self.stage.compare_exchange(0, stage as u8, order, Ordering::Acquire).is_ok();
        if turned {
            self.changed.notify_waiters();
        }
        turned
    }
}

/// Whether nothing more comes. Over HTTP/2 the end may come in a frame of its own, which nobody asks for once the
/// length is reached.
fn has_all(inner: &Incoming) -> bool {
    inner.is_end_stream() || inner.size_hint().exact() == Some(0)
}

impl Upload {
    /// A body of at most `limit` bytes, which came by this version of HTTP.
    pub fn new(inner: Incoming, version: Version, limit: u64) -> Self {
        let progress = Arc::new(Progress {
            stage: AtomicU8::new(Stage::Sending as u8),
            frames: AtomicU64::new(0),
            waits_for_client: AtomicU8::new(0),
            changed: Notify::new(),
        });
        if has_all(&inner) {
            progress.turn(Stage::Complete);
        }
        Self { inner, first: None, is_http_2: version == Version::HTTP_2, left: limit, progress }
    }

    /// Takes the beginning if it is here, so that it leaves with the request's head and not after it. Does not wait
    /// for it.
    pub async fn begin(&mut self) {
        let mut asked = 0;
        self.first = poll_fn(|cx| {
            if self.inner.is_end_stream() {
                return Poll::Ready(None);
            }
            asked += 1;
            match Pin::new(&mut self.inner).poll_frame(cx) {
                Poll::Ready(polled) => Poll::Ready(Some(polled)),
                Poll::Pending if asked < ASKS => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                Poll::Pending => Poll::Ready(None),
            }
        })
        .await;
    }

    /// How far it is, for others.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Whether the end that came is the end of the whole: the one that was announced, or where none was, the one that
    /// the client said itself.
    fn has_whole(&self) -> bool {
        has_all(&self.inner) || !self.is_http_2 && self.inner.size_hint().exact().is_none()
    }

    /// Before the last bytes are handed on they count as with the backend, and only if nobody has cut it.
    fn finish(&self) -> Result<(), UploadError> {
        let is_complete = self.progress.turn(Stage::Complete) || self.progress.stage() == Stage::Complete;
        if is_complete { Ok(()) } else { Err(UploadError::Cut) }
    }
}

impl Download {
    /// An answer's body over this connection.
    pub fn new(inner: Incoming, lent: Lent) -> Self {
        let mut download = Self { inner, lent: Some(lent) };
        download.give_back_at_end();
        download
    }

    /// An answer's body over a connection that is not used again.
    pub fn alone(inner: Incoming) -> Self {
        Self { inner, lent: None }
    }

    fn give_back_at_end(&mut self) {
        if self.inner.is_end_stream()
            && let Some(lent) = self.lent.take()
        {
            lent.give_back();
        }
    }
}

// === impl Upload ===

impl Body for Upload {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        if matches!(self.progress.stage(), Stage::Cut) {
            return Poll::Ready(Some(Err(UploadError::Cut)));
        }
        let polled = match self.first.take() {
            Some(first) => Poll::Ready(first),
            None => Pin::new(&mut self.inner).poll_frame(cx),
        };
        self.progress.waits_for_client.store(u8::from(polled.is_pending()), Ordering::Relaxed);
        let frame = match ready!(polled) {
            None if self.has_whole() => return Poll::Ready(self.finish().err().map(Err)),
            None => {
                self.progress.turn(Stage::ClientCut);
                return Poll::Ready(Some(Err(UploadError::Reset)));
            }
            Some(Err(error)) => {
                self.progress.turn(Stage::ClientCut);
                return Poll::Ready(Some(Err(error.into())));
            }
            Some(Ok(frame)) => frame,
        };
        self.progress.frames.fetch_add(1, Ordering::Relaxed);
        let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
        let Some(left) = self.left.checked_sub(bytes) else {
            self.progress.turn(Stage::TooLarge);
            return Poll::Ready(Some(Err(UploadError::Cut)));
        };
        self.left = left;
        if has_all(&self.inner) {
            self.finish()?;
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let taken = match &self.first {
            Some(Some(Ok(frame))) => frame.data_ref().map_or(0, Bytes::len) as u64,
            _ => 0,
        };
        let rest = self.inner.size_hint();
        let mut hint = SizeHint::new();
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + taken);
        }
        hint.set_lower(rest.lower() + taken);
        hint
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.progress.turn(Stage::Dropped);
    }
}

// === impl Download ===

impl Body for Download {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        match &frame {
            None => {
                if let Some(lent) = self.lent.take() {
                    lent.give_back();
                }
            }
            Some(Ok(_)) => self.give_back_at_end(),
            Some(Err(_)) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
