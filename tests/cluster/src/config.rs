//! The configuration files of the components, as texts.

use serde_json::{Value, json};

use crate::machine::{MAX_NODES, Machine, POD_NETWORK};
use crate::pki::Identity;

/// The domain of the cluster's DNS names.
pub const DOMAIN: &str = "cluster.local";
/// The port of the API server, on the control machine's address.
pub const API_PORT: u16 = 6443;
/// Where containerd listens, in every node.
pub const CONTAINERD: &str = "/run/containerd/containerd.sock";
/// The image that holds a pod's namespaces.
pub const PAUSE_IMAGE: &str = "fencedlease.dev/pause:local";

/// The URL of the API server, the same in every machine, in pods and on this host.
pub fn api_url() -> String {
    format!("https://{}:{API_PORT}", Machine::Control.address())
}

/// A kubeconfig (JSON is YAML) with everything inside, so that it can be copied.
pub fn kubeconfig(authority: &str, identity: &Identity) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let name = "fencedlease-test";
    pretty(&json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {
            "server": api_url(),
            "certificate-authority-data": STANDARD.encode(authority),
        }}],
        "users": [{"name": name, "user": {
            "client-certificate-data": STANDARD.encode(&identity.certificate),
            "client-key-data": STANDARD.encode(&identity.key),
        }}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    }))
}

/// The kubelet's. `pki` is the folder of certificates, `resolv` an empty resolver configuration.
pub fn kubelet(node: Machine, pki: &str, resolv: &str, plugins: &str) -> String {
    let name = node.name();
    pretty(&json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": node.address(),
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": format!("{pki}/ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": format!("{pki}/{name}.crt"),
        "tlsPrivateKeyFile": format!("{pki}/{name}.key"),
        "containerRuntimeEndpoint": format!("unix://{CONTAINERD}"),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": node.cgroup(),
        "failCgroupV1": false,
        "failSwapOn": false,
        // Lowering it asks for a right that root does not have everywhere.
        "oomScoreAdj": 0,
        "clusterDomain": DOMAIN,
        "clusterDNS": [Machine::Control.address()],
        "resolvConf": resolv,
        "volumePluginDir": plugins,
        "podLogsDir": "/var/log/pods",
        // A full disk of the host is not what the tests are about.
        "evictionHard": {"imagefs.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%"},
        "imageGCHighThresholdPercent": 100,
    }))
}

/// kube-proxy's.
pub fn kube_proxy(node: Machine, kubeconfig: &str) -> String {
    pretty(&json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "hostnameOverride": node.name(),
        "bindAddress": "0.0.0.0",
        "clusterCIDR": POD_NETWORK,
        "clientConnection": {"kubeconfig": kubeconfig},
        // The table of connections is the host's: its size stays as it is.
        "conntrack": {"maxPerCore": 0},
        "oomScoreAdj": 0,
    }))
}

/// The pod network of a node: each pod has a cable to the node, so that what the node's packet filter
/// says holds between any two pods.
pub fn cni(node: Machine) -> String {
    pretty(&json!({
        "cniVersion": "1.0.0",
        "name": "fencedlease",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": false,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": node.pod_subnet()}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    }))
}

/// containerd's. `cni` is the folder with the pod network's file, `shim` the folder of the shim program.
pub fn containerd(cni: &str) -> String {
    format!(
        r#"version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
  address = "{CONTAINERD}"

[plugins.'io.containerd.cri.v1.images']
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{PAUSE_IMAGE}"

[plugins.'io.containerd.cri.v1.runtime']
  # Root does not have CAP_SYS_RESOURCE everywhere; without it no score can be lowered.
  restrict_oom_score_adj = true
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      SystemdCgroup = false
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["/usr/lib/cni", "/opt/cni/bin"]
    conf_dir = "{cni}"
"#
    )
}

/// CoreDNS's. It knows the cluster's names; all others do not exist, as there is no way out.
pub fn coredns(kubeconfig: &str) -> String {
    let reverse: Vec<String> = (1..=MAX_NODES).map(|node| format!("{node}.18.198.in-addr.arpa")).collect();
    let zones = format!("{DOMAIN} 19.198.in-addr.arpa {}", reverse.join(" "));
    let address = Machine::Control.address();
    // Two blocks: in one, `template` would come before `kubernetes` and answer for its names too.
    format!(
        "{zones} {{
    bind {address}
    errors
    health 127.0.0.1:8080
    ready 127.0.0.1:8181
    kubernetes {zones} {{
        kubeconfig {kubeconfig} fencedlease-test
        ttl 5
    }}
    cache 5
}}
. {{
    bind {address}
    errors
    template ANY ANY . {{
        rcode NXDOMAIN
    }}
}}
"
    )
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests;
