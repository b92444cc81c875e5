//! What the program is started with. The webhook writes all of it; people meet it in tests.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};
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
    /// The workload's command and its arguments.
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}
