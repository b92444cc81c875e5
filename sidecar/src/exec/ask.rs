//! How does the lease stand? Asked of *hold* over the application's socket.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use fencedlease_wire::paths;
use fencedlease_wire::socket::LeaseView;
use http_body_util::{BodyExt as _, Empty};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// The lease as *hold* sees it. Fails while *hold* is not up, and when it is gone.
pub(super) fn lease(shared: &Path) -> anyhow::Result<LeaseView> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        tokio::time::timeout(PATIENCE, exchange(shared)).await.context("hold did not answer in time")?
    })
}

async fn exchange(shared: &Path) -> anyhow::Result<LeaseView> {
    let stream = UnixStream::connect(shared.join(paths::LEASE_SOCKET)).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::get("/v1/lease").header("host", "lease").body(Empty::<Bytes>::new())?;
    let answer = async {
        let answer = sender.send_request(request).await?;
        anyhow::Ok(answer.into_body().collect().await?.to_bytes())
    };
    let body = tokio::select! {
        answer = answer => answer?,
        ended = connection => {
            ended?;
            anyhow::bail!("hold closed the connection")
        }
    };
    serde_json::from_slice(&body).context("hold answered something else")
}
