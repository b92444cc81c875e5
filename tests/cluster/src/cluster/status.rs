//! What is the cluster now?

use super::files;
use super::leftovers::leftovers;
use super::start;
use super::state::State;
use crate::error::Result;
use crate::init::{Client, ComponentState};
use crate::kubectl::Kubectl;
use crate::machine::Machine;
use crate::paths::Paths;

/// How a cluster is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// There is none.
    Absent,
    /// It runs, all of it, as it would be started today.
    Healthy(State),
    /// All of it runs, but it does not answer, or a node is not Ready; the text says which. On a busy host
    /// that may pass.
    Busy(State, String),
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
        Err(error) => return Ok(Health::Busy(state, error.to_string())),
    };
    Ok(match state.nodes().find(|node| !ready.contains(&node.name())) {
        Some(node) => Health::Busy(state, format!("{} is not Ready", node.name())),
        None => Health::Healthy(state),
    })
}

/// What a person is told about the cluster: its health, its components, and what of it is on this host.
pub fn status(paths: &Paths) -> Result<String> {
    let mut lines = vec![match health(paths)? {
        Health::Absent => "No cluster runs.".to_owned(),
        Health::Busy(_, why) => format!("The cluster runs, but it is not ready: {why}"),
        Health::Broken(why) => format!("The cluster cannot be used: {why}"),
        Health::Healthy(state) => {
            format!(
                "The cluster runs, with {} node(s). KUBECONFIG={}",
                state.nodes,
                paths.kubeconfig().display()
            )
        }
    }];
    let state = State::read(paths);
    for machine in state.iter().flat_map(State::machines) {
        lines.extend(machine_lines(paths, machine));
    }
    let remaining = leftovers(paths)?;
    if remaining.is_empty() {
        lines.push("Nothing of it is on this host.".to_owned());
    } else {
        lines.push(format!(
            "On this host: {} processes, {} mounts, {} cgroup folders, {} routes and interfaces.",
            remaining.processes.len(),
            remaining.mounts.len(),
            remaining.cgroups.len(),
            remaining.network.len()
        ));
        if state.is_none() {
            lines.push(remaining.to_string().trim_end().to_owned());
            lines.push("To clear it away: cluster down".to_owned());
        }
    }
    Ok(lines.join("\n"))
}

fn machine_lines(paths: &Paths, machine: Machine) -> Vec<String> {
    let client = Client::new(paths, machine);
    let (Ok(pid), Ok(components)) = (client.pid(), client.components()) else {
        return vec![format!("{:10} does not run", machine.name())];
    };
    let mut lines = vec![format!("{:10} {:16} first process {pid}", machine.name(), machine.address())];
    lines.extend(components.into_iter().map(|component| {
        let state = match component.state {
            ComponentState::Running => "running".to_owned(),
            ComponentState::Ended(how) => format!("ended, {how}"),
        };
        format!("{:10} {:24} {state}", "", component.name)
    }));
    lines
}
