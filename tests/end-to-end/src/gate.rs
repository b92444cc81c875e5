//! A gate from its chart, in front of a file server, with a volume on a node.

use std::time::Duration;

use anyhow::{Context as _, Result};
use fencedlease_cluster::command::run;
use fencedlease_cluster::kubectl::Kubectl;
use fencedlease_cluster::progress::Progress;
use fencedlease_cluster::target::Target;
use fencedlease_wire::gate::{GateKey, GuardedResource, Ticket};
use fencedlease_wire::{Fence, HoldingId};
use serde_json::{Value, json};

use crate::images;
use crate::node_shell::NodeShell;
use crate::stage::Stage;

pub(crate) const BACKEND: &str = include_str!("../manifests/files.yaml");
const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/fencedlease-gate");
/// Where a node keeps the fences. Clusters of this host take it away with the node.
const ON_NODE: &str = "/var/lib/fencedlease-test";
/// The release's and the StatefulSet's name.
const NAME: &str = "gate";

/// A gate in a stage, in front of a file server. Its volume is taken away when this is dropped.
#[derive(Debug)]
pub struct Gate<'a> {
    stage: &'a Stage,
    _volume: Volume<'a>,
}

/// A volume of the cluster that outlives the pods of the gate.
#[derive(Debug)]
struct Volume<'a> {
    stage: &'a Stage,
    node: String,
}

impl Stage {
    /// Starts a file server `files` that compares nothing, and makes a volume for a gate; [`Gate::install`] brings that.
    pub fn files_behind_gate(&self) -> Result<Gate<'_>> {
        images::hand_over(self.cluster(), &images::FOR_GATES, &Progress::start())?;
        let volume = Volume::make(self)?;
        self.apply_yaml(BACKEND)?;
        self.kubectl(&["rollout", "status", "deployment/files", "--timeout=180s"])?;
        Ok(Gate { stage: self, _volume: volume })
    }
}

// === impl Gate ===

impl Gate<'_> {
    /// `https://host:port` for a FencedLease.
    pub fn url(&self) -> String {
        format!("https://{}:8443", self.host())
    }

    /// The name that its certificate must have.
    pub fn host(&self) -> String {
        format!("{NAME}.{}.svc", self.stage.namespace())
    }

    /// Installs the chart, which takes `/reports/` for this FencedLease and shows the certificate in this Secret, and
    /// waits until the gate is ready.
    pub fn install(&self, lease: &str, tls_secret: &str) -> Result<String> {
        let cluster = self.stage.cluster();
        let namespace = self.stage.namespace();
        let values = [
            format!("backend.url=http://files.{namespace}.svc:80"),
            format!("guards[0].lease={lease},guards[0].path=/reports/"),
            format!("tls.secretName={tls_secret}"),
            format!("persistence.storageClass={namespace},persistence.size=16Mi"),
        ];
        install(cluster.kubectl(), cluster.target(), namespace, NAME, &values)
    }

    /// How many gates there are: none or one. Waits until it is so.
    pub fn scale(&self, replicas: u32) -> Result<()> {
        self.stage.kubectl(&["scale", "statefulset/gate", &format!("--replicas={replicas}")])?;
        self.until_ready()?;
        if replicas == 0 {
            self.stage.until_no_pods("app.kubernetes.io/name=fencedlease-gate", Duration::from_secs(60))?;
        }
        Ok(())
    }

    /// Deletes the gate's pod and waits until the next one is ready.
    pub fn restart(&self) -> Result<()> {
        let before = self.stage.pod("gate-0")?.uid().to_owned();
        self.stage.kubectl(&["delete", "pod", "gate-0"])?;
        self.stage.eventually(Duration::from_secs(60), "another pod of the gate", |stage| {
            let pod = stage.pod("gate-0")?;
            Ok((pod.uid() != before && pod.is_ready()).then_some(()))
        })
    }

    /// What the gate shows to people: the highest fences.
    pub fn page(&self) -> Result<String> {
        let path = format!("/api/v1/namespaces/{}/pods/gate-0:8080/proxy/", self.stage.namespace());
        Ok(self.stage.cluster().kubectl().run(&["get", "--raw", &path])?)
    }

    /// What a file has, past the gate; empty if there is none.
    pub fn file(&self, name: &str) -> Result<String> {
        self.in_backend(&format!("cat /data/files/reports/{name} 2>/dev/null || :"))
    }

    /// Runs a line of shell beside the files.
    pub fn in_backend(&self, line: &str) -> Result<String> {
        self.stage.kubectl(&["exec", "deployment/files", "--", "sh", "-c", line])
    }

    /// A ticket as the sidecar would sign it now, by the key of the FencedLease's Secret.
    pub fn ticket(&self, lease: &str, fence: i64, holding: &str) -> Result<String> {
        let secret = format!("{lease}-gate-key");
        let template = "--output=go-template={{.data.key | base64decode}}";
        let text = self.stage.kubectl(&["get", "secret", &secret, template])?;
        let keys = GateKey::parse_file(&text)?;
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        let ticket = Ticket {
            resource: format!("{}/{lease}", self.stage.namespace()).parse::<GuardedResource>()?,
            fence: Fence::new(fence.try_into()?)?,
            holder: HoldingId::try_from(holding.to_owned())?,
            time_ms: time.as_millis().try_into()?,
        };
        Ok(ticket.sign(keys.first().context("the Secret has no key")?))
    }

    fn until_ready(&self) -> Result<String> {
        self.stage.kubectl(&["rollout", "status", "statefulset/gate", "--timeout=180s"])
    }
}

/// Installs the chart under this name with these values, and waits until the gate is ready.
pub(crate) fn install(
    kubectl: &Kubectl,
    target: Target,
    namespace: &str,
    name: &str,
    values: &[String],
) -> Result<String> {
    let image = images::as_known_to(target, "fencedlease.dev/gate:dev");
    let image = format!("image.repository={},image.tag=dev", image.trim_end_matches(":dev"));
    let words = ["upgrade", "--install", name, CHART, "--namespace", namespace, "--wait", "--timeout=180s"];
    let mut helm = kubectl.helm(&words);
    for value in values.iter().chain([&image]) {
        helm.args(["--set", value]);
    }
    Ok(run(&mut helm)?)
}

// === impl Volume ===

impl<'a> Volume<'a> {
    fn make(stage: &'a Stage) -> Result<Self> {
        let node = stage.cluster().nodes()?.into_iter().next().context("no node takes pods")?;
        let volume = Self { stage, node };
        volume.on_node("mkdir -p \"/proc/1/root$1\"")?;
        stage.apply(&volume_on_node(stage.namespace(), &volume.node, &volume.path()))?;
        Ok(volume)
    }

    fn path(&self) -> String {
        format!("{ON_NODE}/{}", self.stage.namespace())
    }

    fn on_node(&self, script: &str) -> Result<String> {
        NodeShell::on(self.stage, &self.node)?.run(script, &[&self.path()])
    }

    fn remove(&self) -> Result<()> {
        // It goes when its claim has gone with the namespace.
        self.stage.kubectl(&["delete", "pv", self.stage.namespace(), "--wait=false"])?;
        self.on_node("rm -rf \"/proc/1/root$1\"").map(|_| ())
    }
}

impl Drop for Volume<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            eprintln!("the volume on node {} stays: {error:#}", self.node);
        }
    }
}

/// A volume that lies on one node.
pub(crate) fn volume_on_node(name: &str, node: &str, path: &str) -> Value {
    let on_node = json!([{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]);
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "16Mi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": name,
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": path},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": on_node}]}},
        },
    })
}
