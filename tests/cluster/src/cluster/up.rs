//! From nothing to Ready; from one node to more; and back on its feet after a run that was killed.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::down::{down, refuse_foreign};
use super::files;
use super::images;
use super::lock::Lock;
use super::start;
use super::state::State;
use super::status::{Health, health};
use crate::cgroups;
use crate::command::{command, run};
use crate::components::Phase;
use crate::error::{Error, Result};
use crate::init;
use crate::kubectl::Kubectl;
use crate::machine::{MAX_NODES, Machine};
use crate::network;
use crate::node::Node;
use crate::paths::Paths;
use crate::pki::Authority;
use crate::progress::Progress;
use crate::tools;

/// How long the API server may take to be ready.
const API_WITHIN: Duration = Duration::from_secs(90);
/// How long a cluster that runs may not be ready before it is started anew.
const SETTLED_WITHIN: Duration = Duration::from_mins(1);
/// How long a node may take to be Ready.
const NODE_WITHIN: Duration = Duration::from_secs(90);

/// Sees to it that a cluster with at least so many nodes runs: returns soon if it does.
/// Fails, saying what is missing on this host or what ended with the end of its log; whatever a failed
/// start leaves is cleaned up by the next.
pub fn up(paths: &Paths, nodes: u8, progress: &Progress) -> Result<()> {
    if !(1..=MAX_NODES).contains(&nodes) {
        return Err(Error::missing(
            format!("--nodes is {nodes}; a cluster has 1 to {MAX_NODES} nodes"),
            "Give a number in that range",
        ));
    }
    if init::was_asked() {
        return Err(Error::missing(
            "this program was started as the first process of a machine and did not become it",
            "Call fencedlease_cluster::init::take_over_if_asked before anything else",
        ));
    }
    check_root()?;
    tools::install_missing(progress)?;
    check_host(paths)?;
    build(paths, progress)?;
    let _lock = Lock::take(paths, "run", progress)?;
    let state = match settled(paths, progress)? {
        Health::Healthy(state) => state,
        Health::Absent => start_control(paths, progress)?,
        Health::Busy(_, why) | Health::Broken(why) => {
            progress.step(&format!("Clearing away what is left of a cluster: {why}"));
            down(paths)?;
            start_control(paths, progress)?
        }
    };
    let before = state.nodes;
    let state = add_nodes(paths, state, nodes, progress)?;
    if before == state.nodes {
        progress.step(&format!("The cluster runs, with {before} node(s)"));
    } else {
        progress.step(&format!("The cluster is ready, with {} node(s)", state.nodes));
    }
    Ok(())
}

/// The health of the cluster, with patience for one that is busy: others may be using it.
fn settled(paths: &Paths, progress: &Progress) -> Result<Health> {
    let until = Instant::now() + SETTLED_WITHIN;
    let mut said = false;
    loop {
        match health(paths)? {
            Health::Busy(_, why) if Instant::now() < until => {
                if !said {
                    progress.step(&format!(
                        "The cluster is not ready; giving it {} s: {why}",
                        SETTLED_WITHIN.as_secs()
                    ));
                }
                said = true;
                thread::sleep(Duration::from_secs(1));
            }
            other => return Ok(other),
        }
    }
}

/// Builds what a cluster needs; does not wait for another's build when all is there.
fn build(paths: &Paths, progress: &Progress) -> Result<()> {
    if tools::is_built(paths, &tools::TOOLS)? {
        return Ok(());
    }
    let _lock = Lock::take(paths, "build", progress)?;
    tools::build_missing(paths, &tools::TOOLS, progress)
}

fn check_root() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Err(Error::missing(
            "a cluster of this host's own needs root, for namespaces, mounts and cgroups",
            "Run it with sudo -E, or use a cluster that you have: CLUSTER=current",
        ));
    }
    Ok(())
}

fn check_host(paths: &Paths) -> Result<()> {
    refuse_foreign(paths)?;
    check_namespaces()?;
    cgroups::check(&cgroups::of_this_host()?)?;
    network::check()
}

fn check_namespaces() -> Result<()> {
    match run(&mut command(&["unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "true"])) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::missing(
            format!("this host does not let root make namespaces: {error}"),
            "Run on a host or virtual machine, or in a privileged container (docker run --privileged)",
        )),
    }
}

fn start_control(paths: &Paths, progress: &Progress) -> Result<State> {
    progress.step("Starting etcd and the API server; next: the nodes");
    let state = State { fingerprint: files::fingerprint(paths)?, nodes: 0 };
    start::machine(paths, Machine::Control, &Authority::new()?)?;
    start::components(paths, Machine::Control, Phase::First)?;
    let admin = paths.pki().join("admin.kubeconfig");
    fs::copy(&admin, paths.kubeconfig()).map_err(Error::file("copy", &admin))?;
    Ok(state)
}

fn add_nodes(paths: &Paths, state: State, wanted: u8, progress: &Progress) -> Result<State> {
    let fresh: Vec<Machine> = (state.nodes + 1..=wanted).map(Machine::Node).collect();
    if fresh.is_empty() {
        return Ok(state);
    }
    let authority = Authority::read(&paths.pki(), "ca")?;
    for node in &fresh {
        start::machine(paths, *node, &authority)?;
        start::components(paths, *node, Phase::First)?;
    }
    let first = state.nodes == 0;
    let state = State { nodes: wanted, ..state };
    let kubectl = Kubectl::new(paths);
    if first {
        wait(paths, &state, "the API server's readiness", API_WITHIN, || kubectl.is_ready())?;
        progress.step("The API server is ready; starting controllers, scheduler and DNS");
        start::components(paths, Machine::Control, Phase::WithApiServer)?;
    }
    progress.step(&format!(
        "Starting {}",
        fresh.iter().map(|node| node.name()).collect::<Vec<_>>().join(" and ")
    ));
    for node in &fresh {
        let inside = Node::new(paths, *node);
        wait(paths, &state, "containerd's readiness", NODE_WITHIN, || {
            inside.run(&["ctr", "version"]).is_ok()
        })?;
        // Before pods can be scheduled to it.
        images::give_what_others_have(paths, &inside, progress)?;
        start::components(paths, *node, Phase::WithApiServer)?;
    }
    wait(paths, &state, "the nodes' readiness", NODE_WITHIN, || {
        kubectl.ready_nodes().is_ok_and(|ready| fresh.iter().all(|node| ready.contains(&node.name())))
    })?;
    wait(paths, &state, "the default service account", NODE_WITHIN, || kubectl.can_make_pods())?;
    state.write(paths)?;
    Ok(state)
}

fn wait(
    paths: &Paths,
    state: &State,
    what: &str,
    within: Duration,
    mut happened: impl FnMut() -> bool,
) -> Result<()> {
    let until = Instant::now() + within;
    while !happened() {
        start::check(paths, &state.machines())?;
        if Instant::now() > until {
            return Err(Error::Timeout {
                what: what.to_owned(),
                seconds: within.as_secs(),
                hint: format!("the components' logs are in {}", paths.logs().display()),
            });
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}
