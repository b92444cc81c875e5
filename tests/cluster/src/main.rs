//! `cluster`: a real Kubernetes on this host, for the whole-system tests and the demo.

use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use fencedlease_cluster::cluster::{Lock, down, status, up};
use fencedlease_cluster::error::Result;
use fencedlease_cluster::init;
use fencedlease_cluster::machine::Machine;
use fencedlease_cluster::paths::Paths;
use fencedlease_cluster::progress::Progress;
use fencedlease_cluster::tools;

/// A real Kubernetes on this host, built from source once and started in about 15 seconds.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Bring the cluster up, or see to it that it is.
    Up {
        /// How many nodes at least; more may run already.
        #[arg(long, default_value_t = 1)]
        nodes: u8,
    },
    /// End the cluster and remove all that it had on this host.
    Down,
    /// Say what runs, and what of it is on this host.
    Status,
    /// Build the programs that a cluster needs, without starting one.
    Build,
    /// Print what makes kubectl and helm of this shell use the cluster: eval "$(cluster env)".
    Env,
    /// The first process of a simulated machine.
    #[command(hide = true)]
    Init {
        #[arg(value_parser = machine)]
        machine: Machine,
    },
}

fn main() -> ExitCode {
    match act(Arguments::parse().action) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cluster: {:#}", anyhow::Error::new(error));
            ExitCode::FAILURE
        }
    }
}

fn act(action: Action) -> Result<()> {
    let paths = Paths::from_env()?;
    let progress = Progress::start();
    match action {
        Action::Up { nodes } => up(&paths, nodes, &progress),
        Action::Down => {
            let _lock = Lock::take(&paths, "run", &progress)?;
            down(&paths)?;
            progress.step("Nothing of the cluster is on this host");
            Ok(())
        }
        Action::Status => {
            print!("{}", status(&paths)?);
            Ok(())
        }
        Action::Build => {
            let _lock = Lock::take(&paths, "build", &progress)?;
            tools::build_missing(&paths, &progress)
        }
        Action::Env => {
            println!("export KUBECONFIG={}", quoted(&paths.kubeconfig()));
            println!("export PATH={}:\"$PATH\"", quoted(&paths.bin()));
            Ok(())
        }
        Action::Init { machine } => {
            init::prepare(&paths, machine)?;
            init::serve(&paths, machine)
        }
    }
}

fn machine(name: &str) -> std::result::Result<Machine, String> {
    Machine::from_name(name).ok_or_else(|| "is not the name of a machine".to_owned())
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
