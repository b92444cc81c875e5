//! What happens to the lease, a line each.

use std::path::Path;

use fencedlease_wire::socket::{EventLine, LeaseView};
use http_body_util::BodyExt as _;
use hyper::Method;
use serde::Deserialize;

use crate::ClientError;
use crate::http::{Answer, parse, send};

/// The sidecar's lines have some hundred bytes.
const MAX_LINE: usize = 16 * 1024;

/// Something that the sidecar tells of the lease.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub enum Event {
    /// The state: the present one first, then each change.
    State(LeaseView),
    /// A renewal was confirmed, or `maxHold` is near.
    Line(EventLine),
}

/// The stream of events. The connection ends when this is dropped.
#[derive(Debug)]
pub struct Events {
    answer: Answer,
    buffer: Vec<u8>,
}

// === impl Events ===

impl Events {
    pub(crate) async fn open(socket: &Path) -> Result<Self, ClientError> {
        let answer = send(socket, Method::GET, "/v1/events", Vec::new()).await?;
        if !answer.response.status().is_success() {
            answer.whole().await?.accepted()?;
            return Err(ClientError::Unexpected("no events"));
        }
        Ok(Self { answer, buffer: Vec::new() })
    }

    /// The next event; `None` after LOST or RELEASED. No event is lost if the future is dropped.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), fencedlease_client::ClientError> {
    /// let mut events = fencedlease_client::Client::from_env()?.events().await?;
    /// while let Some(event) = events.next().await? {
    ///     println!("{event:?}");
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return parse(&line).map(Some);
            }
            if self.buffer.len() > MAX_LINE {
                return Err(ClientError::LineTooLong(MAX_LINE));
            }
            match self.answer.response.body_mut().frame().await {
                Some(frame) => {
                    if let Some(data) = frame?.data_ref() {
                        self.buffer.extend_from_slice(data);
                    }
                }
                None => return Ok(None),
            }
        }
    }
}
