//! What the program is started with. The webhook writes all of it; people meet it in tests.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use fencedlease_wire::paths;

/// FencedLease in a pod: keeps a lease, and ends the workload before the lease can be somebody else's.
#[derive(Debug, Parser)]
#[command(name = "fencedlease", version)]
pub struct Args {
    /// The part to play.
    #[command(subcommand)]
    pub command: Command,
}

/// The part to play.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Sidecar: acquire and renew the lease, grant it to the guards, serve the application's socket.
    Hold(HoldArgs),
    /// PID 1 of a guarded container: run the command while the lease is held, and end it in time.
    Guard(GuardArgs),
    /// In a guarded container: run the command of a probe or a hook if the workload runs under the lease.
    WhileActive(WhileActiveArgs),
    /// Outside Kubernetes: run a command while a lease is held, and end it in time.
    Exec(Box<ExecArgs>),
    /// Print the Redis command that makes a user with the least rights.
    Acl(AclArgs),
    /// The part of *exec* that keeps the lease.
    #[command(hide = true)]
    ExecHold(HoldArgs),
    /// The part of *exec* that guards the command.
    #[command(hide = true)]
    ExecGuard(GuardArgs),
}

/// What *hold* is started with.
#[derive(Debug, clap::Args)]
pub struct HoldArgs {
    /// The settings that the webhook wrote, as one JSON document.
    #[arg(long, env = paths::ENV_SETTINGS)]
    pub settings: String,
    /// The pod's name.
    #[arg(long, env = paths::ENV_POD_NAME)]
    pub pod_name: String,
    /// The pod's uid.
    #[arg(long, env = paths::ENV_POD_UID)]
    pub pod_uid: String,
    /// The pod's address, where probes and metrics are served.
    #[arg(long, env = paths::ENV_POD_IP)]
    pub pod_ip: IpAddr,
    /// The node's name.
    #[arg(long, env = paths::ENV_NODE_NAME)]
    pub node_name: String,
    /// The volume that is shared with the guarded containers.
    #[arg(long, default_value = paths::SHARED_DIR)]
    pub shared_dir: PathBuf,
    /// The sidecar's private volume.
    #[arg(long, default_value = paths::STATE_DIR)]
    pub state_dir: PathBuf,
    /// Where the token for the operator's endpoint is mounted.
    #[arg(long, default_value = paths::ENDPOINT_TOKEN_FILE)]
    pub token_file: PathBuf,
    /// Where the FencedLease's own Redis Secret is mounted, if it has one.
    #[arg(long, default_value = paths::REDIS_SECRET_DIR)]
    pub redis_secret_dir: PathBuf,
    /// Where what TLS to Redis needs is mounted.
    #[arg(long, default_value = paths::REDIS_TLS_DIR)]
    pub redis_tls_dir: PathBuf,
    /// The file with the key that signs tickets for gates.
    #[arg(long, default_value = paths::GATE_KEY_FILE)]
    pub gate_key_file: PathBuf,
    /// Where gates' certificate authorities are mounted: NAME/ca.crt for each gate that has its own.
    #[arg(long, default_value = paths::GATE_TLS_DIR)]
    pub gate_tls_dir: PathBuf,
}

/// What *acl* is started with.
#[derive(Debug, clap::Args)]
pub struct AclArgs {
    /// The installation's id, from the ConfigMap fencedlease-installation; for leases of *exec* leave it out.
    #[arg(long, default_value = "exec")]
    pub installation: String,
    /// The namespace whose leases the user is for. Without it: all of the installation's.
    #[arg(long)]
    pub namespace: Option<String>,
    /// The user's name. Default: fencedlease-NAMESPACE, or fencedlease.
    #[arg(long)]
    pub user: Option<String>,
    /// The database's number; the user needs a further right if it is not 0.
    #[arg(long, default_value_t = 0)]
    pub database: i64,
}

/// What *guard* is started with.
#[derive(Debug, clap::Args)]
pub struct GuardArgs {
    /// The container's name, told to the sidecar.
    #[arg(long)]
    pub container: String,
    /// The container's terminationMessagePath.
    #[arg(long, default_value = "/dev/termination-log")]
    pub termination_message_path: PathBuf,
    /// The volume that is shared with the sidecar.
    #[arg(long, env = paths::ENV_DIR, default_value = paths::SHARED_DIR)]
    pub dir: PathBuf,
    /// Say only what is worth a warning.
    #[arg(long)]
    pub quiet: bool,
    /// The workload's command and its arguments.
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

/// What *while-active* is started with.
#[derive(Debug, clap::Args)]
pub struct WhileActiveArgs {
    /// What the command is to Kubernetes, by which it is decided what is answered without the lease.
    #[arg(long = "as", value_enum)]
    pub part: Part,
    /// The command and its arguments.
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

/// What of a container's Kubernetes runs beside its workload.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Part {
    /// Passes without the lease.
    LivenessProbe,
    /// Fails without the lease.
    ReadinessProbe,
    /// Fails without the lease.
    StartupProbe,
    /// Waits until the workload runs, and fails if that takes too long.
    PostStart,
    /// Passes without the lease.
    PreStop,
}

/// What *exec* is started with. Durations are written as `15s`, `500ms` or `1m30s`.
#[derive(Debug, clap::Args)]
pub struct ExecArgs {
    /// What is to be alone: NAMESPACE/NAME, as a FencedLease would have it.
    #[arg(long, env = paths::ENV_RESOURCE)]
    pub lease: String,
    /// The Redis that keeps the lease: host:port.
    #[arg(long, env = "FENCEDLEASE_REDIS")]
    pub redis: String,
    /// Its database number.
    #[arg(long, default_value_t = 0)]
    pub redis_database: i64,
    /// A folder with the files `password` and, if it is not the default user, `username`.
    #[arg(long)]
    pub redis_secret_dir: Option<PathBuf>,
    /// Speak TLS to Redis.
    #[arg(long)]
    pub redis_tls: bool,
    /// A folder with `ca.crt` (else the authorities that browsers trust count), and with `tls.crt` and `tls.key` if
    /// Redis asks for a certificate of ours. Means --redis-tls.
    #[arg(long)]
    pub redis_tls_dir: Option<PathBuf>,
    /// The name that Redis's certificate must have. Default: the host of --redis.
    #[arg(long)]
    pub redis_server_name: Option<String>,
    /// NAME=URL: a gate in front of the resource, which stores the fence before the command is started. May stand more
    /// than once.
    #[arg(long, requires = "gate_key_file")]
    pub gate: Vec<String>,
    /// The file with the key of this lease, as the gates have it: 64 hexadecimal digits.
    #[arg(long, requires = "gate")]
    pub gate_key_file: Option<PathBuf>,
    /// PEM file with the authorities of the gates' certificates. Default: those that browsers trust.
    #[arg(long, requires = "gate")]
    pub gate_ca_file: Option<PathBuf>,
    /// What keeps leases of one Redis apart; that of a cluster, to share a lease with its pods.
    #[arg(long, default_value = "exec")]
    pub installation: String,
    /// The name that others see as the holder's. Default: the machine's.
    #[arg(long, env = "HOSTNAME", default_value_t = host_name())]
    pub name: String,
    /// How long to wait for the lease before giving up with exit code 198; 0s tries once. Default: for ever.
    #[arg(long)]
    pub wait: Option<String>,
    /// The exit code after a lost lease.
    #[arg(long, default_value_t = fencedlease_wire::exit::LOST)]
    pub lost_exit_code: u8,
    /// Make the PID namespace within a user namespace, where this is not run as root.
    #[arg(long)]
    pub user_namespace: bool,
    /// How long the lease lasts in Redis.
    #[arg(long, default_value = "15s")]
    pub ttl: String,
    /// From one renewal to the next. Default: a third of the ttl.
    #[arg(long)]
    pub renew_interval: Option<String>,
    /// How long a renewal may take before the lease counts as lost.
    #[arg(long, default_value = "1s")]
    pub renew_timeout: String,
    /// From SIGTERM to SIGKILL.
    #[arg(long, default_value = "2s")]
    pub grace_period: String,
    /// How long the kernel may take to end killed processes.
    #[arg(long, default_value = "2s")]
    pub kill_budget: String,
    /// How much time must remain for a final commit to start.
    #[arg(long, default_value = "2s")]
    pub commit_margin: String,
    /// The longest a command may hold the lease.
    #[arg(long, default_value = "24h")]
    pub max_hold: String,
    /// How long a command that was sent SIGTERM from outside may take to end.
    #[arg(long, default_value = "1m30s")]
    pub stop_timeout: String,
    /// Serve metrics on this port of 127.0.0.1. Default: one that is free.
    #[arg(long, default_value_t = 0)]
    pub metrics_port: u16,
    /// What is logged on standard error.
    #[arg(long, default_value = "warn")]
    pub log_level: String,
    /// The command and its arguments.
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

impl ExecArgs {
    /// `--wait` as people read it.
    pub fn wait_text(&self) -> &str {
        self.wait.as_deref().unwrap_or("for ever")
    }
}

/// Neither cron nor systemd sets `HOSTNAME`.
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
