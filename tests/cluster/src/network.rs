//! How are the machines and this host connected?
//!
//! The control machine has a bridge; each node and this host have a cable to it. No machine has a way
//! out: its default route ends at the control machine, which answers that there is none.

use std::thread;
use std::time::{Duration, Instant};

use crate::command::{command, run, run_with_input};
use crate::error::{Error, Result};
use crate::machine::{
    HOST_ADDRESS, HOST_INTERFACE, MACHINE_NETWORK, MAX_NODES, Machine, POD_NETWORK, SERVICE_NETWORK,
};

/// The bridge in the control machine.
const BRIDGE: &str = "machines";
/// The metric of the routes that keep packets for a cluster that is gone on this host.
const LAST_RESORT: &str = "metric 4294967294";

/// How long the kernel may take to remove the network of a killed machine.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// Makes the control machine's bridge and this host's cable to it.
/// `pid` is the first process of the control machine.
pub fn connect_control(pid: i32) -> Result<()> {
    disconnect_host()?;
    in_machine(pid, &control_script())?;
    batch(&mut command(&["ip", "-batch", "-"]), &host_script(pid))?;
    in_machine(pid, &format!("link set host master {BRIDGE} up\n"))
}

/// Connects a node. `pid` and `control` are first processes.
pub fn connect_node(node: Machine, pid: i32, control: i32) -> Result<()> {
    let cable = format!("link add eth0 netns {pid} type veth peer name {} netns {control}\n", node.name());
    let until = Instant::now() + GONE_WITHIN;
    loop {
        match batch(&mut command(&["ip", "-batch", "-"]), &cable) {
            // The kernel takes the cable of a machine that was killed away a little later.
            Err(Error::Command { output, .. })
                if output.contains("File exists") && Instant::now() < until =>
            {
                thread::sleep(Duration::from_millis(50));
            }
            other => break other?,
        }
    }
    in_machine(control, &format!("link set {} master {BRIDGE} up\n", node.name()))?;
    in_machine(pid, &node_script(node))
}

/// Takes this host's cable and routes away, if they are there.
pub fn disconnect_host() -> Result<()> {
    for network in [MACHINE_NETWORK, POD_NETWORK, SERVICE_NETWORK] {
        while host_routes()?.iter().any(|route| route.starts_with(&format!("unreachable {network} "))) {
            run(command(&["ip", "route", "del", "unreachable", network]).args(LAST_RESORT.split(' ')))?;
        }
    }
    if run(&mut command(&["ip", "-brief", "link", "show"]))?.contains(HOST_INTERFACE) {
        match run(&mut command(&["ip", "link", "del", HOST_INTERFACE])) {
            // It goes by itself as soon as the kernel has taken the other end away.
            Err(Error::Command { output, .. }) if output.contains("Cannot find device") => {}
            other => drop(other?),
        }
    }
    Ok(())
}

/// Routes of this host into the cluster's networks, as `ip route` prints them.
pub fn host_routes() -> Result<Vec<String>> {
    Ok(ours(&run(&mut command(&["ip", "route", "show"]))?))
}

/// Checks that nothing else on this host uses the cluster's networks.
pub fn check() -> Result<()> {
    match foreign(&host_routes()?) {
        None => Ok(()),
        Some(route) => Err(Error::missing(
            format!("this host has a route of its own into the test networks: {route}"),
            format!(
                "The cluster needs {MACHINE_NETWORK}, {POD_NETWORK} and {SERVICE_NETWORK}: remove that route, \
                 or use CLUSTER=current"
            ),
        )),
    }
}

/// The lines of `ip route` that lead into the cluster's networks.
fn ours(routes: &str) -> Vec<String> {
    let leads_there = |line: &&str| {
        let network = line.trim_start_matches("unreachable ").trim_start_matches("blackhole ");
        ["198.51.100.", "198.18.", "198.19."].iter().any(|start| network.starts_with(start))
    };
    routes.lines().filter(leads_there).map(str::to_owned).collect()
}

/// The first of these routes that no cluster of ours made.
fn foreign(routes: &[String]) -> Option<&String> {
    routes.iter().find(|route| !route.contains(HOST_INTERFACE) && !route.contains(LAST_RESORT))
}

fn in_machine(pid: i32, script: &str) -> Result<()> {
    batch(&mut command(&["nsenter", "--target", &pid.to_string(), "--net", "ip", "-batch", "-"]), script)
}

fn batch(ip: &mut std::process::Command, script: &str) -> Result<()> {
    run_with_input(ip, script).map(|_| ())
}

fn pod_routes(except: Machine) -> String {
    let others = (1..=MAX_NODES).map(Machine::Node).filter(|node| *node != except);
    let route = |node: Machine| {
        node.pod_subnet().map(|subnet| format!("route add {subnet} via {}\n", node.address()))
    };
    others.filter_map(route).collect::<Vec<_>>().concat()
}

fn service_route() -> String {
    format!("route add {SERVICE_NETWORK} via {}\n", Machine::Node(1).address())
}

fn control_script() -> String {
    let control = Machine::Control;
    format!(
        "link add {BRIDGE} type bridge\naddress add {}/24 dev {BRIDGE}\nlink set {BRIDGE} up\n\
         route add unreachable default\n{}{}",
        control.address(),
        pod_routes(control),
        service_route()
    )
}

fn host_script(control: i32) -> String {
    let last_resort = [MACHINE_NETWORK, POD_NETWORK, SERVICE_NETWORK]
        .map(|network| format!("route add unreachable {network} {LAST_RESORT}\n"))
        .concat();
    format!(
        "link add {HOST_INTERFACE} type veth peer name host netns {control}\n\
         address add {HOST_ADDRESS}/24 dev {HOST_INTERFACE}\nlink set {HOST_INTERFACE} up\n{last_resort}{}{}",
        pod_routes(Machine::Control),
        service_route()
    )
}

fn node_script(node: Machine) -> String {
    format!(
        "address add {}/24 dev eth0\nlink set eth0 up\nroute add default via {}\n{}",
        node.address(),
        Machine::Control.address(),
        pod_routes(node)
    )
}

#[cfg(test)]
mod tests;
