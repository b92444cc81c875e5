//! The fault proxy as a program: `run` in a pod or on a host, `set` and `state` to control one that runs.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand, ValueEnum};
use fencedlease_faults::{
    Direction, Fault, FaultProxy, Order, Snapshot, fetch_snapshot, send_order, serve_control,
};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

const CONTROL: &str = "127.0.0.1:7480";

/// A TCP proxy that delays, holds, drops and cuts on request, and counts what it did.
#[derive(Debug, Parser)]
#[command(name = "fault-proxy")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Forward connections until SIGTERM.
    Run {
        /// Where clients connect.
        #[arg(long, env = "FAULT_PROXY_LISTEN", default_value = "0.0.0.0:6379")]
        listen: SocketAddr,
        /// Where `set` and `state` connect.
        #[arg(long, env = "FAULT_PROXY_CONTROL", default_value = "0.0.0.0:7480")]
        control: SocketAddr,
        /// host:port that connections are forwarded to; looked up at each connection.
        #[arg(long, env = "FAULT_PROXY_TARGET")]
        target: String,
    },
    /// Set a fault and print the state as JSON.
    Set {
        /// What happens to connections.
        fault: Kind,
        /// The one client that it happens to; without it, every client.
        #[arg(long)]
        client: Option<IpAddr>,
        /// Which bytes; of delay, hold and drop only.
        #[arg(long, default_value = "both")]
        direction: Way,
        /// How much later bytes arrive, in milliseconds; of delay only.
        #[arg(long)]
        delay_ms: Option<u64>,
        /// host:port of the control port.
        #[arg(long, default_value = CONTROL)]
        control: String,
    },
    /// Print faults and counters as JSON.
    State {
        /// host:port of the control port.
        #[arg(long, default_value = CONTROL)]
        control: String,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    Pass,
    Delay,
    Drip,
    Hold,
    Drop,
    Cut,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Way {
    Requests,
    Replies,
    Both,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    match Args::parse().command {
        Command::Run { listen, control, target } => run(listen, control, target).await,
        Command::Set { fault, client, direction, delay_ms, control } => {
            let order = Order { client, fault: fault_of(fault, direction, delay_ms)? };
            print(&send_order(&control, order).await?)
        }
        Command::State { control } => print(&fetch_snapshot(&control).await?),
    }
}

async fn run(listen: SocketAddr, control: SocketAddr, target: String) -> Result<()> {
    // As the first process of a container it is not ended by signals that it does not handle.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let control = TcpListener::bind(control).await.with_context(|| format!("cannot listen on {control}"))?;
    let proxy = FaultProxy::start_at(listen, target.as_str())
        .await
        .with_context(|| format!("cannot listen on {listen}"))?;
    println!("forwarding {} to {target}; control port {}", proxy.address(), control.local_addr()?);
    tokio::select! {
        served = serve_control(control, proxy.handle().clone()) => Ok(served?),
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    }
}

fn fault_of(kind: Kind, way: Way, delay_ms: Option<u64>) -> Result<Fault> {
    let direction = match way {
        Way::Requests => Direction::Requests,
        Way::Replies => Direction::Replies,
        Way::Both => Direction::Both,
    };
    match (kind, delay_ms) {
        (Kind::Delay, Some(delay_ms)) => Ok(Fault::Delay { delay_ms, direction }),
        (Kind::Drip, Some(delay_ms)) => Ok(Fault::Drip { delay_ms, direction }),
        (Kind::Delay | Kind::Drip, None) => {
            bail!("delay and drip need --delay-ms, for example --delay-ms 800")
        }
        (_, Some(_)) => bail!("--delay-ms belongs to delay and drip; leave it out"),
        (Kind::Hold, None) => Ok(Fault::Hold { direction }),
        (Kind::Drop, None) => Ok(Fault::Drop { direction }),
        (Kind::Pass | Kind::Cut, None) if way != Way::Both => {
            bail!("--direction belongs to delay, drip, hold and drop; leave it out")
        }
        (Kind::Pass, None) => Ok(Fault::Pass),
        (Kind::Cut, None) => Ok(Fault::Cut),
    }
}

fn print(snapshot: &Snapshot) -> Result<()> {
    println!("{}", serde_json::to_string_pretty(snapshot)?);
    Ok(())
}
