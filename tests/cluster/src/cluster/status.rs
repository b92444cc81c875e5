//! What is the cluster now?

use super::files;
use super::leftovers::leftovers;
use super::start;
use super::state::State;
use crate::error::Result;
use crate::init::{Client, ComponentState};
use crate::kubectl::Kubectl;
use crate::paths::Paths;

/// How a cluster is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// There is none.
    Absent,
    /// It runs, all of it, as it would be started today.
    Healthy(State),
    /// Something is there that cannot be used; the text says why.
    Broken(String),
}

/// Looks at the cluster with this cache folder; takes a fraction of a second.
pub fn health(paths: &Paths) -> Result<Health> {
    let Some(state) = State::read(paths) else {
        return Ok(if leftovers(paths)?.is_empty() {
            Health::Absent
        } else {
            Health::Broken("it was not started, or not ended, to the end".to_owned())
        });
    };
    if state.fingerprint != files::fingerprint(paths)? {
        return Ok(Health::Broken("it was started with other programs or settings than today's".to_owned()));
    }
    if let Err(error) = start::check(paths, &state.machines()) {
        return Ok(Health::Broken(error.to_string()));
    }
    let kubectl = Kubectl::new(paths);
    let ready = match kubectl.ready_nodes() {
        Ok(ready) => ready,
        Err(error) => return Ok(Health::Broken(error.to_string())),
    };
    Ok(match state.nodes().find(|node| !ready.contains(&node.name())) {
        Some(node) => Health::Broken(format!("{} is not Ready", node.name())),
        None => Health::Healthy(state),
    })
}

/// What a person is told about the cluster: its health, its components, and what of it is on this host.
pub fn status(paths: &Paths) -> Result<String> {
    let mut text = match health(paths)? {
        Health::Absent => "No cluster runs.\n".to_owned(),
        Health::Broken(why) => format!("The cluster cannot be used: {why}\n"),
        Health::Healthy(state) => format!(
            "The cluster runs, with {} node(s). KUBECONFIG={}\n",
            state.nodes,
            paths.kubeconfig().display()
        ),
    };
    for machine in State::read(paths).map(|state| state.machines()).unwrap_or_default() {
        let client = Client::new(paths, machine);
        let (Ok(pid), Ok(components)) = (client.pid(), client.components()) else {
            text.push_str(&format!("{:10} does not run\n", machine.name()));
            continue;
        };
        text.push_str(&format!("{:10} {:16} first process {pid}\n", machine.name(), machine.address()));
        for component in components {
            let state = match component.state {
                ComponentState::Running => "running".to_owned(),
                ComponentState::Ended(how) => format!("ended, {how}"),
            };
            text.push_str(&format!("{:10} {:24} {state}\n", "", component.name));
        }
    }
    let remaining = leftovers(paths)?;
    if remaining.is_empty() {
        text.push_str("Nothing of it is on this host.\n");
    } else {
        text.push_str(&format!(
            "On this host: {} processes, {} mounts, {} cgroup folders, {} routes and interfaces.\n",
            remaining.processes.len(),
            remaining.mounts.len(),
            remaining.cgroups.len(),
            remaining.network.len()
        ));
        if State::read(paths).is_none() {
            text.push_str(&remaining.to_string());
        }
    }
    Ok(text)
}
