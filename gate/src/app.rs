//! How do the gate's parts come together? Everything is opened and bound before anything is served.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::admin::{self, Admin};
use crate::args::{Args, BackendAddress};
use crate::backend::{Backend, Target};
use crate::desk::Desk;
use crate::keys::Keys;
use crate::listener::Listener;
use crate::metrics::Metrics;
use crate::route::Rules;
use crate::service::Gate;
use crate::store::{Store, StoreThread};
use crate::tls::{self, Certificate};
use crate::workers::Workers;

/// How often keys and certificate are read anew.
const RELOAD: Duration = Duration::from_secs(5);
/// How often the end looks whether everything on its way has ended.
const LOOK: Duration = Duration::from_millis(10);

/// Runs the gate until SIGTERM or SIGINT, then drains.
pub async fn run(args: Args) -> anyhow::Result<()> {
    if let Some(problem) = args.problem() {
        bail!(problem);
    }
    let rules = Rules::new(args.guard.clone(), args.reads);
    let resources = rules.resources();
    let store = Store::open(&args.data, &args.floor)?;
    let waits = args.waits(store.ended_cleanly());
    if !store.ended_cleanly() {
        tracing::warn!(
            wait_ms = waits.closed.as_millis(),
            "the last gate was killed; nobody passes for a while"
        );
    }
    let metrics = Arc::new(Metrics::new().context("cannot make the metrics")?);
    let keys = Arc::new(Keys::load(&args.keys, resources.clone())?);
    let certificate = match (&args.tls_cert, &args.tls_key) {
        (Some(chain), Some(key)) => Some(Certificate::load(chain, key)?),
        _ => None,
    };
    let listen = bind(&args, "--listen", args.listen).await?;
    let admin_socket = bind(&args, "--admin", args.admin).await?;
    let stored = store.highest().clone();
    let thread = StoreThread::start(store)?;
    let desk = Arc::new(Desk::new(&resources, &stored, thread.jobs(), waits, Arc::clone(&metrics)));
    let (rules, target) = (Arc::new(rules), target(&args)?);
    let workers = Workers::start(|| Gate {
        rules: Arc::clone(&rules),
        keys: Arc::clone(&keys),
        desk: Arc::clone(&desk),
        backend: Arc::new(Backend::new(target.clone())),
        metrics: Arc::clone(&metrics),
        limits: args.limits(),
    })
    .context("cannot start the threads that serve clients")?;
    let is_ending = Arc::new(AtomicBool::new(false));
    let router = admin::router(Admin { desk: Arc::clone(&desk), metrics, is_ending: Arc::clone(&is_ending) });
    let (stop, stopped) = watch::channel(false);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        if let Err(error) = axum::serve(admin_socket, router).await {
            tracing::error!(%error, "the admin port cannot be served");
        }
    });
    tasks.spawn(reload(keys, certificate.clone()));
    let tls = certificate.map(|certificate| certificate.acceptor()).transpose()?;
    let listener = Listener { socket: listen, tls, bounds: args.bounds(), workers };
    let serve = tokio::spawn(listener.run(stopped));
    wait_for_the_end(&mut tasks).await?;
    tracing::info!("told to end");
    is_ending.store(true, Ordering::Relaxed);
    stop.send_replace(true);
    let _workers = serve.await.context("serving failed")?;
    end(&args, &desk, thread).await
}

async fn bind(args: &Args, flag: &str, address: std::net::SocketAddr) -> anyhow::Result<TcpListener> {
    let bound =
        TcpListener::bind(address).await.with_context(|| format!("cannot listen at {flag} {address}"));
    let socket = bound?;
    let local = socket.local_addr().unwrap_or(address);
    tracing::info!(flag, address = %local, data = %args.data.display(), "listening");
    Ok(socket)
}

fn target(args: &Args) -> anyhow::Result<Target> {
    let BackendAddress { host, port, .. } = &args.backend;
    let tls = args.backend_ca.as_ref().map(|authorities| tls::connector(authorities, host)).transpose()?;
    let address = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    Ok(Target { address, tls, connect_timeout: args.connect_timeout_ms })
}

async fn wait_for_the_end(tasks: &mut JoinSet<()>) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot receive signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot receive signals")?;
    tokio::select! {
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        Some(ended) = tasks.join_next() => bail!("a task ended that should have run on: {ended:?}"),
    }
}

async fn reload(keys: Arc<Keys>, certificate: Option<Arc<Certificate>>) {
    let mut tick = interval(RELOAD);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if let Err(error) = keys.reload() {
            tracing::warn!(error = &error as &dyn std::error::Error, "keys stay as they were");
        }
        if let Some(Err(error)) = certificate.as_ref().map(|certificate| certificate.reload()) {
            tracing::warn!(error = &error as &dyn std::error::Error, "the certificate stays as it was");
        }
    }
}

/// Requests whose clients have gone are on their way all the same.
async fn end(args: &Args, desk: &Arc<Desk>, thread: StoreThread) -> anyhow::Result<()> {
    let until = Instant::now() + args.end_timeout_ms;
    while desk.on_their_way() > 0 && Instant::now() < until {
        sleep(LOOK).await;
    }
    let left = desk.on_their_way();
    desk.close();
    let store = tokio::task::spawn_blocking(|| thread.join()).await.context("the end failed")??;
    if left > 0 {
        bail!("{left} requests were still on their way to the backend at the end");
    }
    if !store.is_broken() && desk.is_open() {
        store.end_cleanly()?;
    }
    tracing::info!("ended with nothing on its way");
    Ok(())
}
