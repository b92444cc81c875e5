//! Which simulated machines is a cluster made of, and what are their addresses?
//!
//! A machine is a set of namespaces (processes, mounts, network, host name) with a first process of ours.
//! When that process ends, the kernel ends all others in it and takes mounts, interfaces and routes away:
//! so nothing can be left behind, however a run ends.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

/// How many nodes a cluster may have.
pub const MAX_NODES: u8 = 4;
/// The network that connects the machines and this host: TEST-NET-2, which nobody uses.
pub const MACHINE_NETWORK: &str = "198.51.100.0/24";
/// All pods: one half of the network that is set aside for benchmarks.
pub const POD_NETWORK: &str = "198.18.0.0/16";
/// All Services: the other half.
pub const SERVICE_NETWORK: &str = "198.19.0.0/16";
/// The `kubernetes` Service.
pub const API_SERVICE: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 1);
/// This host's address in the machines' network.
pub const HOST_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
/// This host's interface in the machines' network.
pub const HOST_INTERFACE: &str = "fencedlease0";

/// One simulated machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Machine {
    /// Runs etcd, the API server, the controllers, the scheduler and the DNS server, and no pods.
    Control,
    /// Runs pods; numbered from 1.
    Node(u8),
}

impl Machine {
    /// Its host name; for a node also the name of the Node object.
    pub fn name(self) -> String {
        match self {
            Self::Control => "control".to_owned(),
            Self::Node(number) => format!("node-{number}"),
        }
    }

    /// The machine of that name, if a cluster can have it.
    pub fn from_name(name: &str) -> Option<Self> {
        std::iter::once(Self::Control).chain((1..=MAX_NODES).map(Self::Node)).find(|it| it.name() == name)
    }

    /// Its address in [`MACHINE_NETWORK`].
    pub fn address(self) -> Ipv4Addr {
        match self {
            Self::Control => Ipv4Addr::new(198, 51, 100, 10),
            Self::Node(number) => Ipv4Addr::new(198, 51, 100, 10 + number),
        }
    }

    /// Where its pods have their addresses.
    pub fn pod_subnet(self) -> Option<String> {
        match self {
            Self::Control => None,
            Self::Node(number) => Some(format!("198.18.{number}.0/24")),
        }
    }

    /// Its folder in each cgroup hierarchy, from the hierarchy's root; its pods run below it.
    pub fn cgroup(self) -> String {
        format!("/{}/{}", crate::cgroups::FOLDER, self.name())
    }
}
