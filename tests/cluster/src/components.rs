//! Which programs run in which machine, and with which arguments?

use std::net::IpAddr;

use crate::config::{self, API_PORT};
use crate::init::Start;
use crate::machine::{API_SERVICE, HOST_ADDRESS, Machine, SERVICE_NETWORK};
use crate::paths::Paths;
use crate::pki::Subject;

/// When in the start of a machine a component is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// At once.
    First,
    /// When the API server is ready: these end, or wait long, if they come before it.
    WithApiServer,
}

/// A component's program and arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    /// Its name in its machine.
    pub name: &'static str,
    /// When it is started.
    pub phase: Phase,
    /// Program and arguments.
    pub argv: Vec<String>,
}

impl Component {
    /// The request that starts it.
    pub fn start(&self, paths: &Paths, machine: Machine) -> Start {
        Start { name: self.name.to_owned(), argv: self.argv.clone(), log: paths.log(machine, self.name) }
    }
}

/// The components of a machine, in the order of starting.
pub fn of(paths: &Paths, machine: Machine) -> Vec<Component> {
    match machine {
        Machine::Control => {
            vec![etcd(paths), api_server(paths), controller_manager(paths), scheduler(paths), dns(paths)]
        }
        Machine::Node(_) => vec![containerd(paths, machine), kubelet(paths, machine), proxy(paths, machine)],
    }
}

/// The identities of a machine's components: a file name and who it is.
pub fn subjects(machine: Machine, name: &str, run: impl FnMut(&str, Subject<'_>)) {
    let mut run = run;
    let own = [IpAddr::V4(machine.address()), IpAddr::from([127, 0, 0, 1])];
    if machine != Machine::Control {
        let user = format!("system:node:{name}");
        run(name, Subject { name: &user, group: Some("system:nodes"), hosts: &[name], addresses: &own });
        return;
    }
    let hosts = [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "localhost",
    ];
    let addresses = [own[0], own[1], IpAddr::V4(API_SERVICE), IpAddr::V4(HOST_ADDRESS)];
    run("api-server", Subject { name: "kube-apiserver", group: None, hosts: &hosts, addresses: &addresses });
    for (file, user, group) in [
        ("admin", "fencedlease-test-admin", Some("system:masters")),
        ("kubelet-client", "kube-apiserver-kubelet-client", Some("system:masters")),
        ("front-proxy", "front-proxy-client", None),
        ("controller-manager", "system:kube-controller-manager", None),
        ("scheduler", "system:kube-scheduler", None),
        ("kube-proxy", "system:kube-proxy", None),
    ] {
        run(file, Subject { name: user, group, hosts: &[], addresses: &[] });
    }
}

fn component(paths: &Paths, name: &'static str, phase: Phase, arguments: &[String]) -> Component {
    let mut argv = vec![paths.bin().join(name).display().to_string()];
    argv.extend_from_slice(arguments);
    Component { name, phase, argv }
}

fn kubeconfig(paths: &Paths, name: &str) -> String {
    format!("--kubeconfig={}/{name}.kubeconfig", paths.pki().display())
}

fn etcd(paths: &Paths) -> Component {
    let data = paths.machine(Machine::Control).join("etcd");
    component(
        paths,
        "etcd",
        Phase::First,
        &[
            "--name=control".to_owned(),
            format!("--data-dir={}", data.display()),
            // The data lives as long as the run.
            "--unsafe-no-fsync".to_owned(),
            "--listen-client-urls=http://127.0.0.1:2379".to_owned(),
            "--advertise-client-urls=http://127.0.0.1:2379".to_owned(),
            "--listen-peer-urls=http://127.0.0.1:2380".to_owned(),
            "--initial-advertise-peer-urls=http://127.0.0.1:2380".to_owned(),
            "--initial-cluster=control=http://127.0.0.1:2380".to_owned(),
            "--log-level=warn".to_owned(),
        ],
    )
}

fn api_server(paths: &Paths) -> Component {
    let pki = paths.pki();
    let pki = pki.display();
    component(
        paths,
        "kube-apiserver",
        Phase::First,
        &[
            format!("--advertise-address={}", Machine::Control.address()),
            format!("--secure-port={API_PORT}"),
            "--etcd-servers=http://127.0.0.1:2379".to_owned(),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--enable-admission-plugins=NodeRestriction".to_owned(),
            "--allow-privileged=true".to_owned(),
            format!("--service-cluster-ip-range={SERVICE_NETWORK}"),
            format!("--client-ca-file={pki}/ca.crt"),
            format!("--tls-cert-file={pki}/api-server.crt"),
            format!("--tls-private-key-file={pki}/api-server.key"),
            format!("--kubelet-certificate-authority={pki}/ca.crt"),
            format!("--kubelet-client-certificate={pki}/kubelet-client.crt"),
            format!("--kubelet-client-key={pki}/kubelet-client.key"),
            // Else `logs` and `exec` look the node's name up.
            "--kubelet-preferred-address-types=InternalIP".to_owned(),
            format!("--service-account-issuer=https://kubernetes.default.svc.{}", config::DOMAIN),
            format!("--service-account-key-file={pki}/service-account.crt"),
            format!("--service-account-signing-key-file={pki}/service-account.key"),
            // Webhooks are reached at their pods' addresses.
            "--enable-aggregator-routing=true".to_owned(),
            format!("--requestheader-client-ca-file={pki}/ca.crt"),
            "--requestheader-allowed-names=front-proxy-client".to_owned(),
            "--requestheader-username-headers=X-Remote-User".to_owned(),
            "--requestheader-group-headers=X-Remote-Group".to_owned(),
            "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
            format!("--proxy-client-cert-file={pki}/front-proxy.crt"),
            format!("--proxy-client-key-file={pki}/front-proxy.key"),
        ],
    )
}

fn controller_manager(paths: &Paths) -> Component {
    let pki = paths.pki();
    let pki = pki.display();
    component(
        paths,
        "kube-controller-manager",
        Phase::WithApiServer,
        &[
            kubeconfig(paths, "controller-manager"),
            "--leader-elect=false".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            "--use-service-account-credentials=true".to_owned(),
            format!("--service-account-private-key-file={pki}/service-account.key"),
            format!("--root-ca-file={pki}/ca.crt"),
            format!("--cluster-signing-cert-file={pki}/ca.crt"),
            format!("--cluster-signing-key-file={pki}/ca.key"),
            // Its default is a folder of the host's, which it makes.
            format!(
                "--flex-volume-plugin-dir={}",
                paths.machine(Machine::Control).join("volume-plugins").display()
            ),
        ],
    )
}

fn scheduler(paths: &Paths) -> Component {
    let arguments = [
        kubeconfig(paths, "scheduler"),
        "--leader-elect=false".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
    ];
    component(paths, "kube-scheduler", Phase::WithApiServer, &arguments)
}

fn dns(paths: &Paths) -> Component {
    let file = paths.machine(Machine::Control).join("Corefile");
    component(paths, "coredns", Phase::WithApiServer, &["-conf".to_owned(), file.display().to_string()])
}

fn containerd(paths: &Paths, node: Machine) -> Component {
    let file = paths.machine(node).join("containerd.toml");
    component(paths, "containerd", Phase::First, &["--config".to_owned(), file.display().to_string()])
}

fn kubelet(paths: &Paths, node: Machine) -> Component {
    let arguments = [
        format!("--config={}", paths.machine(node).join("kubelet.json").display()),
        kubeconfig(paths, &node.name()),
        format!("--hostname-override={}", node.name()),
        format!("--node-ip={}", node.address()),
    ];
    component(paths, "kubelet", Phase::WithApiServer, &arguments)
}

fn proxy(paths: &Paths, node: Machine) -> Component {
    let file = paths.machine(node).join("kube-proxy.json");
    component(paths, "kube-proxy", Phase::WithApiServer, &[format!("--config={}", file.display())])
}

#[cfg(test)]
mod tests;
