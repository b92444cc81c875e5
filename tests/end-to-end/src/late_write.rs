//! What a late write is shown and tested with: four places to write to, two of them with a fence check, and a
//! network that keeps a holder's bytes until after its death.

use std::net::IpAddr;

use anyhow::{Context as _, Result};
use fencedlease_cluster::command::run_with_input;
use fencedlease_cluster::kubectl::Kubectl;
use fencedlease_cluster::target::Target;
use fencedlease_faults::{Direction, Fault, Order};
use serde_json::{Value, json};

use crate::proxy::PodProxy;
use crate::{gate, images};

const PLACES_MANIFEST: &str = include_str!("../manifests/late-write.yaml");
const WRITERS_MANIFEST: &str = include_str!("../manifests/late-writers.yaml");
const FENCE_CHECK: &str = include_str!("../../../guards/postgresql/install.sql");
/// The control ports of the proxies in the manifest: to the database, the gate, the files.
const CONTROL_PORTS: [u16; 3] = [7481, 7482, 7483];
const LEASE: &str = "ledger";
const GATE: &str = "files-gate";
/// Where a node of this host's own cluster keeps the gate's fences.
const ON_NODE: &str = "/var/lib/fencedlease-late-write";

/// Where the writers write the same line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// A table with the triggers of `guards/postgresql`.
    CheckedTable,
    /// A table without.
    UncheckedTable,
    /// A file behind the gate.
    CheckedFile,
    /// A file past it.
    UncheckedFile,
}

/// The pod that holds the lease.
#[derive(Clone, Debug)]
pub struct Writer {
    /// The pod's name.
    pub pod: String,
    /// Its fence.
    pub fence: u64,
    /// Where its connections come from.
    pub address: IpAddr,
}

/// The places, the writers and the network between them, in one namespace.
#[derive(Debug)]
pub struct LateWrite<'a> {
    kubectl: &'a Kubectl,
    target: Target,
    namespace: String,
    network: Vec<PodProxy>,
}

// === impl Place ===

impl Place {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::CheckedTable, Self::UncheckedTable, Self::CheckedFile, Self::UncheckedFile];

    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::CheckedTable => "PostgreSQL, table checked",
            Self::UncheckedTable => "PostgreSQL, table unchecked",
            Self::CheckedFile => "a file behind the gate",
            Self::UncheckedFile => "a file past the gate",
        }
    }

    /// What checks the fence there.
    pub fn check(self) -> Option<&'static str> {
        match self {
            Self::CheckedTable => Some("trigger"),
            Self::CheckedFile => Some("gate"),
            Self::UncheckedTable | Self::UncheckedFile => None,
        }
    }
}

// === impl LateWrite ===

impl<'a> LateWrite<'a> {
    /// Makes a FencedLease of this spec with a gate, starts database, file server, gate and network in a namespace,
    /// and waits until they serve. The images [`images::FOR_LATE_WRITE`] and [`images::FOR_GATES`] must be on the
    /// cluster.
    pub fn prepare(kubectl: &'a Kubectl, target: Target, namespace: &str, spec: &Value) -> Result<Self> {
        let mut it = Self { kubectl, target, namespace: namespace.to_owned(), network: Vec::new() };
        let mut spec = spec.clone();
        spec["gates"] = json!([{ "name": "files", "url": format!("http://{GATE}.{namespace}.svc:8080") }]);
        let lease = json!({ "apiVersion": "fencedlease.dev/v1alpha1", "kind": "FencedLease",
            "metadata": { "name": LEASE }, "spec": spec });
        for manifests in [&lease.to_string(), PLACES_MANIFEST, gate::BACKEND] {
            it.apply(manifests)?;
        }
        it.install_gate()?;
        for name in ["database", "files", "network"] {
            it.run(&["rollout", "status", &format!("deployment/{name}"), "--timeout=180s"])?;
        }
        it.make_tables()?;
        let pod =
            it.run(&["get", "pods", "-l", "app=network", "-o", "jsonpath={.items[0].metadata.name}"])?;
        it.network = CONTROL_PORTS.iter().map(|&port| PodProxy::new(namespace, &pod, port)).collect();
        Ok(it)
    }

    fn install_gate(&self) -> Result<()> {
        let mut values = vec![
            format!("backend.url=http://files.{}.svc:80", self.namespace),
            format!("guards[0].lease={LEASE},guards[0].path=/reports/"),
            "persistence.size=16Mi".to_owned(),
        ];
        if self.target == Target::Own {
            // This host's own cluster makes no volumes by itself.
            values.push(format!("persistence.storageClass={}", self.make_volume()?));
        }
        gate::install(self.kubectl, self.target, &self.namespace, GATE, &values)?;
        Ok(())
    }

    /// An empty folder on a node as a volume, and the name of its storage class.
    fn make_volume(&self) -> Result<String> {
        let maker = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "volume" },
            "spec": {
                "restartPolicy": "Never",
                "containers": [{
                    "name": "make", "image": "fencedlease.dev/busybox:dev", "imagePullPolicy": "IfNotPresent",
                    "command": ["sh", "-c", "rm -rf /on-node/* && chmod 0777 /on-node"],
                    "volumeMounts": [{ "name": "on-node", "mountPath": "/on-node" }],
                }],
                "volumes": [{ "name": "on-node", "hostPath": {
                    "path": format!("{ON_NODE}/{}", self.namespace), "type": "DirectoryOrCreate" } }],
            },
        });
        self.apply(&maker.to_string())?;
        self.run(&["wait", "pod/volume", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=180s"])?;
        let node = self.run(&["get", "pod", "volume", "-o", "jsonpath={.spec.nodeName}"])?;
        let name = format!("{}-fences", self.namespace);
        self.run(&["delete", "persistentvolume", &name, "--ignore-not-found"])?;
        let path = format!("{ON_NODE}/{}", self.namespace);
        self.kubectl.apply(&gate::volume_on_node(&name, &node, &path).to_string())?;
        Ok(name)
    }

    fn make_tables(&self) -> Result<()> {
        self.sql(FENCE_CHECK)?;
        self.sql(&format!(
            "CREATE ROLE app LOGIN; CREATE TABLE checked (line text); CREATE TABLE unchecked (line text);
             INSERT INTO checked VALUES ('nothing'); INSERT INTO unchecked VALUES ('nothing');
             GRANT SELECT, UPDATE ON checked, unchecked TO app;
             SELECT fencedlease.protect('public.checked', '{}/{LEASE}'); SELECT fencedlease.allow_writer('app');",
            self.namespace
        ))?;
        Ok(())
    }

    /// Starts the two writers; does not wait for them.
    pub fn start_writers(&self) -> Result<()> {
        self.apply(WRITERS_MANIFEST).map(|_| ())
    }

    /// The pod that holds the lease with a fence above this one and has written it everywhere; `None` if there is
    /// none yet.
    pub fn writer_after(&self, fence: u64) -> Result<Option<Writer>> {
        let status = self.json(&["get", "fencedlease", LEASE])?["status"].clone();
        let (Some(pod), Some(held)) = (status["holder"]["podName"].as_str(), status["fence"].as_u64()) else {
            return Ok(None);
        };
        if held <= fence || self.lines()?.iter().any(|line| *line != line_of(held)) {
            return Ok(None);
        }
        let address = self.run(&["get", "pod", pod, "-o", "jsonpath={.status.podIP}"])?;
        let address = address.parse().with_context(|| format!("the address of pod {pod}"))?;
        Ok(Some(Writer { pod: pod.to_owned(), fence: held, address }))
    }

    /// What the FencedLease's status says of its last loss.
    pub fn last_loss(&self) -> Result<Value> {
        Ok(self.json(&["get", "fencedlease", LEASE])?["status"]["lastLoss"].clone())
    }

    /// From now on the network keeps what this writer sends.
    pub fn hold(&self, writer: &Writer) -> Result<()> {
        self.order(writer, Fault::Hold { direction: Direction::Requests })
    }

    /// The bytes of this writer that the network keeps: on the way to each place.
    pub fn held(&self, writer: &Writer) -> Result<Vec<u64>> {
        let held =
            |proxy: &PodProxy| Ok(proxy.snapshot(self.kubectl)?.client(writer.address).held_request_bytes);
        self.network.iter().map(held).collect()
    }

    /// The network delivers what it kept of this writer.
    pub fn deliver(&self, writer: &Writer) -> Result<()> {
        self.order(writer, Fault::Pass)
    }

    /// The line that now stands at each place of [`Place::ALL`]; empty where none does yet.
    pub fn lines(&self) -> Result<[String; 4]> {
        let rows = "SELECT (SELECT line FROM checked), (SELECT line FROM unchecked)";
        let words =
            ["exec", "deployment/database", "--", "psql", "-h", "/tmp", "-U", "postgres", "-Atc", rows];
        let rows = self.run(&words)?;
        let (checked_row, unchecked_row) = rows.trim().split_once('|').context("two lines of two tables")?;
        let files = "cd /data/files/reports; cat checked 2>/dev/null; echo; cat unchecked 2>/dev/null; echo";
        let files = self.run(&["exec", "deployment/files", "--", "sh", "-c", files])?;
        let mut files = files.lines();
        let mut file = || files.next().unwrap_or_default().to_owned();
        Ok([checked_row.to_owned(), unchecked_row.to_owned(), file(), file()])
    }

    /// The words with which PostgreSQL refused a fence, as its log has them, if it did.
    pub fn database_refusal(&self, fence: u64) -> Result<Option<String>> {
        let log = self.run(&["logs", "deployment/database"])?;
        let begin = format!("fence {fence} of holder ");
        let refusal = |line: &str| {
            line.find(&begin)
                .map(|at| line[at..].to_owned())
                .filter(|words| words.contains(" is refused for "))
        };
        Ok(log.lines().find_map(refusal))
    }

    /// How many requests the gate has refused, since it had met a greater fence.
    pub fn gate_refusals(&self) -> Result<u64> {
        let path = format!("/api/v1/namespaces/{}/pods/{GATE}-0:8080/proxy/metrics", self.namespace);
        let series = "fencedlease_gate_requests_total{result=\"refused\"} ";
        let metrics = self.kubectl.run(&["get", "--raw", &path])?;
        let value = metrics.lines().find_map(|line| line.strip_prefix(series));
        Ok(value.map_or(Ok(0), str::parse)?)
    }

    fn order(&self, writer: &Writer, fault: Fault) -> Result<()> {
        let order = Order { client: Some(writer.address), fault };
        self.network.iter().try_for_each(|proxy| proxy.order(self.kubectl, order).map(|_| ()))
    }

    fn sql(&self, statements: &str) -> Result<String> {
        let words = ["exec", "-i", "deployment/database", "--", "psql", "-h", "/tmp", "-U", "postgres"];
        let mut command = self.kubectl.command(&["--namespace", &self.namespace]);
        command.args(words).args(["-v", "ON_ERROR_STOP=1", "-q"]);
        Ok(run_with_input(&mut command, statements)?)
    }

    fn apply(&self, manifests: &str) -> Result<String> {
        let mut command = self.kubectl.command(&["apply", "--namespace", &self.namespace, "--filename=-"]);
        Ok(run_with_input(&mut command, &images::as_known_to(self.target, manifests))?)
    }

    fn run(&self, words: &[&str]) -> Result<String> {
        Ok(self.kubectl.run(&[&["--namespace", &self.namespace], words].concat())?)
    }

    fn json(&self, words: &[&str]) -> Result<Value> {
        Ok(self.kubectl.json(&[&["--namespace", &self.namespace], words].concat())?)
    }
}

/// What a writer writes that holds this fence.
pub fn line_of(fence: u64) -> String {
    format!("fence {fence}")
}
