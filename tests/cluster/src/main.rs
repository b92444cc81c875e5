//! `cluster`: a real Kubernetes on this host, for the whole-system tests and the demo.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use fencedlease_cluster::cluster::{Lock, down, load_images, named_images, status, up};
use fencedlease_cluster::images;
use fencedlease_cluster::init;
use fencedlease_cluster::kubectl::Kubectl;
use fencedlease_cluster::machine::Machine;
use fencedlease_cluster::node::Node;
use fencedlease_cluster::paths::Paths;
use fencedlease_cluster::progress::Progress;
use fencedlease_cluster::target::{Target, check_current, deliver_to_current};
use fencedlease_cluster::tools;

/// A real Kubernetes on this host, built from source once and started in about 15 seconds.
///
/// With CLUSTER=current, the cluster that your kubeconfig names is used instead: `up` checks it, and
/// `images` loads images into kind or k3d, or pushes them to IMAGE_REGISTRY.
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
    /// Install the packages and build the programs that a cluster and the tests need, without starting one.
    Build,
    /// Build the images of this workspace and hand them to every node; does work only for what changed.
    Images {
        /// Only these, by their short names (sidecar, operator, redis, …); all if none is given.
        names: Vec<String>,
    },
    /// Print what makes kubectl and helm of this shell use the cluster: eval "$(cluster env)".
    Env,
    /// Run a program inside a machine, as root: cluster exec node-1 -- crictl ps.
    Exec {
        /// control, node-1, node-2, …
        #[arg(value_parser = machine)]
        machine: Machine,
        /// The program and its arguments.
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
}

fn main() -> ExitCode {
    let result =
        init::take_over_if_asked().map_or_else(|| act(Arguments::parse().action), |error| Err(error.into()));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cluster: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn act(action: Action) -> Result<()> {
    let paths = Paths::from_env()?;
    let progress = Progress::start();
    match (action, Target::from_env()?) {
        (Action::Build, _) => {
            tools::install_missing(&progress)?;
            let _lock = Lock::take(&paths, "build", &progress)?;
            tools::build_missing(&paths, &tools::TOOLS, &progress)?;
            tools::build_missing(&paths, &tools::SERVERS, &progress)?;
            tools::install_python(&paths, &progress)?;
        }
        (Action::Env, target) => print_environment(&paths, target),
        (Action::Up { nodes }, Target::Own) => up(&paths, nodes, &progress)?,
        (Action::Down, Target::Own) => {
            let _lock = Lock::take(&paths, "run", &progress)?;
            down(&paths)?;
            progress.step("Nothing of the cluster is on this host");
        }
        (Action::Status, Target::Own) => println!("{}", status(&paths)?),
        (Action::Images { names }, Target::Own) => load_images(&paths, &names, &progress)?,
        (Action::Exec { machine, command }, Target::Own) => {
            let words: Vec<&str> = command.iter().map(String::as_str).collect();
            return Err(Node::new(&paths, machine).command(&words)?.exec().into());
        }
        (action, Target::Current) => act_on_current(&action, &paths, &progress)?,
    }
    Ok(())
}

fn act_on_current(action: &Action, paths: &Paths, progress: &Progress) -> Result<()> {
    let kubectl = Kubectl::for_target(paths, Target::Current);
    match action {
        Action::Up { nodes } => check_current(&kubectl, *nodes, progress)?,
        Action::Status => check_current(&kubectl, 0, progress)?,
        Action::Images { names } => {
            let archives = images::build(paths.cache(), progress, named_images(names)?)?;
            deliver_to_current(&kubectl, &archives, progress)?;
        }
        Action::Down => progress.step("CLUSTER=current: the cluster is yours and stays as it is"),
        _ => bail!("CLUSTER=current: that works only in a cluster of this host's own. Unset CLUSTER"),
    }
    Ok(())
}

fn print_environment(paths: &Paths, target: Target) {
    if let Some(kubeconfig) = target.kubeconfig(paths) {
        println!("export KUBECONFIG={}", quoted(&kubeconfig));
    }
    // Behind the user's own programs, where the user's own cluster is meant.
    match target {
        Target::Own => println!("export PATH={}:\"$PATH\"", quoted(&paths.bin())),
        Target::Current => println!("export PATH=\"$PATH\":{}", quoted(&paths.bin())),
    }
}

fn machine(name: &str) -> std::result::Result<Machine, String> {
    Machine::from_name(name).ok_or_else(|| "accepted are control, node-1, node-2, …".to_owned())
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
