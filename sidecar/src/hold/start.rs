//! How does *hold* begin? Everything that can be refused is refused first, everything that can be bound is
//! bound before a thread starts, and left-overs of an earlier run are judged before anybody can see them.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::{Arc, mpsc};

use anyhow::Context as _;
use fencedlease_redis::{CredentialProvider, Credentials};
use fencedlease_wire::settings::{CredentialSource, GateSettings};
use fencedlease_wire::{HoldingId, SidecarSettings, exit, paths};
use rustix::process::{PidfdFlags, Resource, Rlimit, getpid, getrlimit, pidfd_open, setrlimit};
use rustix::system::uname;
use tokio::sync::mpsc::unbounded_channel;

use super::credentials::{FromOperator, Mounted};
use super::files::Files;
use super::gates::{self, Gate};
use super::log::{self, Flush};
use super::mailbox::mailbox;
use super::metrics::Metrics;
use super::news::news;
use super::note::{NoteFile, Page, remove};
use super::operator::Operator;
use super::pod::{Pod, PodConfig};
use super::renewals::{self, Translator};
use super::report::About;
use super::service::Service;
use super::settings::{self, SettingsError};
use super::supervise::Threads;
use super::tickets::Tickets;
use super::watch::{Outlets, Watch};
use crate::args::HoldArgs;
use crate::clock;
use crate::sys::SignalFd;

/// The name of the thread whose end in order is the process's end in order.
pub(super) const WATCH: &str = "watch";

/// Why *hold* does not begin.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// The settings are wrong.
    #[error("cannot hold a lease: {0}")]
    Settings(#[from] SettingsError),
    /// The endpoint in the settings cannot be used.
    #[error("cannot hold a lease: {0}")]
    Endpoint(String),
    /// The kernel is too old.
    #[error(
        "cannot guard here: the kernel has no pidfds ({error}): it is Linux {release}, and 5.3 or newer is needed; use nodes with a newer kernel"
    )]
    Kernel {
        /// What it said.
        error: rustix::io::Errno,
        /// Its release.
        release: String,
    },
    /// The system refused something else.
    #[error("cannot hold a lease: {0:#}")]
    System(#[from] anyhow::Error),
}

impl Refusal {
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(_) | Self::Endpoint(_) => exit::BAD_SETTINGS,
            Self::Kernel { .. } => exit::CANNOT_GUARD,
            Self::System(_) => 1,
        }
    }
}

/// Where sidecar, guards and application meet.
struct Sockets {
    guards: OwnedFd,
    lease: UnixListener,
    admin: TcpListener,
}

/// Starts all threads.
pub(super) fn start(args: &HoldArgs) -> Result<(Threads, Flush), Refusal> {
    let (settings, config) = settings::parse(&args.settings)?;
    check_kernel()?;
    raise_descriptor_limit();
    // Before any thread starts, so that none of them gets the signal itself.
    let signals = SignalFd::new(&[libc::SIGTERM, libc::SIGINT]).context("cannot receive signals")?;
    let log = log::start(&settings.log_level).context("cannot log")?;
    let operator = operator(&settings, args)?;
    let credentials = credentials(&settings, operator.as_ref(), args)?;
    let page = Page::open(&args.state_dir).context("cannot use the private volume")?;
    let note = NoteFile::new(&args.state_dir).context("cannot read the boot id")?;
    let files = Files::new(&args.shared_dir, note.clone());
    files.remove_left_over_fence().context("cannot use the shared volume")?;
    files.install_guard().context("cannot put the guard into the shared volume")?;
    let sockets = Sockets::bind(args, settings.admin_port)?;
    tracing::info!(
        resource = %config.resource, version = env!("CARGO_PKG_VERSION"), pod = args.pod_name,
        containers = ?config.containers, redis = ?settings.redis.addresses, admin_port = settings.admin_port,
        "starts"
    );
    let threads = start_threads(
        args,
        &settings,
        config,
        Parts { signals, operator, credentials, page, note, files, sockets },
    )?;
    Ok((threads, log))
}

/// What was made before the threads start.
struct Parts {
    signals: SignalFd,
    operator: Option<Arc<Operator>>,
    credentials: Arc<dyn CredentialProvider>,
    page: Page,
    note: NoteFile,
    files: Files,
    sockets: Sockets,
}

fn start_threads(
    args: &HoldArgs,
    settings: &SidecarSettings,
    config: PodConfig,
    parts: Parts,
) -> anyhow::Result<Threads> {
    let mut threads = Threads::new();
    let (post, mail) = mailbox().context("cannot make an eventfd")?;
    let (redis, redis_orders) = unbounded_channel();
    let (file_orders, files_to_write) = mpsc::channel();

    let now = clock::now();
    let interrupted = parts.note.interrupted(&parts.page, now);
    let translator = Translator { ttl: config.timing.ttl(), holder: args.pod_name.clone() };
    let resource = config.resource.clone();
    let (pod, first) = Pod::new(config, interrupted, now);
    let (news, told) = news(pod.published());

    let files_post = post.clone();
    let files = parts.files;
    threads.start("files", move || {
        files.serve(&files_to_write, &files_post);
        Ok(String::new())
    })?;

    let place =
        renewals::place(&settings.redis, &resource, &args.pod_name, parts.credentials, &args.redis_tls_dir)
            .context("there is no Redis address")?;
    let redis_post = post.clone();
    threads.start("renewals", move || {
        runtime()?.block_on(renewals::serve(place, redis_orders, redis_post));
        Ok(String::new())
    })?;

    let (raises, raises_to_send) = unbounded_channel();
    let tickets = gates(&settings.gates, &args.gate_tls_dir)?.map(|gates| {
        let tickets = Arc::new(Tickets::new((&resource).into(), &args.gate_key_file));
        (gates, tickets)
    });
    if let Some((gates, tickets)) = tickets.clone() {
        let gates_post = post.clone();
        threads.start("gates", move || {
            runtime()?.block_on(gates::serve(gates, tickets, raises_to_send, gates_post));
            Ok(String::new())
        })?;
    }

    let service = Service {
        news: told,
        lease_socket: parts.sockets.lease,
        admin_socket: parts.sockets.admin,
        standby_is_ready: settings.standby.ready,
        metrics: Metrics::new().context("cannot make the metrics")?,
        post,
        tickets: tickets.map(|(_, tickets)| tickets),
        operator: parts
            .operator
            .map(|operator| about(args, settings).map(|about| (operator, about)))
            .transpose()?,
    };
    threads.start("service", move || {
        runtime()?.block_on(service.serve())?;
        Ok(String::new())
    })?;

    let outlets = Outlets { redis, translator, gates: raises, files: file_orders, news, page: parts.page };
    let guards = parts.sockets.guards;
    threads.start(WATCH, move || Ok(Watch::new(pod, first, mail, parts.signals, guards, outlets)?.run()?))?;
    Ok(threads)
}

/// All gates, in the order of the settings; `None` if there are none.
fn gates(settings: &[GateSettings], tls_dir: &Path) -> anyhow::Result<Option<Vec<Gate>>> {
    let gates: Vec<Gate> = settings.iter().map(|gate| Gate::new(gate, tls_dir)).collect::<Result<_, _>>()?;
    Ok((!gates.is_empty()).then_some(gates))
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn check_kernel() -> Result<(), Refusal> {
    match pidfd_open(getpid(), PidfdFlags::empty()) {
        Ok(_) => Ok(()),
        Err(error) => {
            Err(Refusal::Kernel { error, release: uname().release().to_string_lossy().into_owned() })
        }
    }
}

/// As many descriptors as the process may have at all: what clients sent takes some until it is closed, and
/// what cannot be handed over for want of them is closed by the kernel, while we wait. Where it is refused
/// the usual 1024 do.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn operator(settings: &SidecarSettings, args: &HoldArgs) -> Result<Option<Arc<Operator>>, Refusal> {
    let Some(endpoint) = &settings.endpoint else { return Ok(None) };
    Operator::new(endpoint, &args.token_file, &args.state_dir)
        .map(|operator| Some(Arc::new(operator)))
        .map_err(|error| Refusal::Endpoint(error.to_string()))
}

fn credentials(
    settings: &SidecarSettings,
    operator: Option<&Arc<Operator>>,
    args: &HoldArgs,
) -> Result<Arc<dyn CredentialProvider>, Refusal> {
    Ok(match (settings.redis.credentials, operator) {
        (CredentialSource::None, _) => Arc::new(Credentials::default()),
        (CredentialSource::Mounted, _) => Arc::new(Mounted::new(&args.redis_secret_dir)),
        (CredentialSource::Endpoint, Some(operator)) => Arc::new(FromOperator::new(
            Arc::clone(operator),
            settings.resource.namespace(),
            settings.resource.name(),
            &args.state_dir,
        )),
        (CredentialSource::Endpoint, None) => {
            return Err(Refusal::Endpoint(format!(
                "redis.credentials in {} is endpoint, but there is no endpoint; delete the pod, so that it passes the present webhook",
                paths::ENV_SETTINGS
            )));
        }
    })
}

fn about(args: &HoldArgs, settings: &SidecarSettings) -> anyhow::Result<About> {
    let mut bits = [0; 8];
    getrandom::fill(&mut bits)
        .map_err(|error| anyhow::anyhow!("the kernel has no random numbers: {error}"))?;
    Ok(About {
        namespace: settings.resource.namespace().to_owned(),
        lease: settings.resource.name().to_owned(),
        pod_name: args.pod_name.clone(),
        node_name: args.node_name.clone(),
        lease_generation: settings.lease_generation,
        run: HoldingId::from_random(bits),
    })
}

// === impl Sockets ===

impl Sockets {
    fn bind(args: &HoldArgs, admin_port: u16) -> anyhow::Result<Self> {
        let admin = TcpListener::bind((args.pod_ip, admin_port)).with_context(|| {
            format!("cannot listen on {}:{admin_port} for probes and metrics", args.pod_ip)
        })?;
        admin.set_nonblocking(true)?;
        let lease = bind(&args.shared_dir.join(paths::LEASE_SOCKET))?;
        let guards = bind(&args.shared_dir.join(paths::GUARD_SOCKET))?;
        Ok(Self { guards: guards.into(), lease, admin })
    }
}

/// A socket for every user of the pod: who may speak is decided by who has the volume.
fn bind(path: &Path) -> anyhow::Result<UnixListener> {
    let cannot = || format!("cannot listen on {}", path.display());
    remove(path).with_context(cannot)?;
    let listener = UnixListener::bind(path).with_context(cannot)?;
    fs::set_permissions(path, Permissions::from_mode(0o666)).with_context(cannot)?;
    listener.set_nonblocking(true).with_context(cannot)?;
    Ok(listener)
}
