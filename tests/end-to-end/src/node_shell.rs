//! A shell on a node that sees all its processes: what a test does to a container that has no shell, and what it
//! counts without asking the container.

use anyhow::{Context as _, Result};
use fencedlease_cluster::command::run;
use serde_json::{Value, json};

use crate::stage::Stage;
use crate::workload::Workload;

/// Prints each process of the container `$1` that is not dead: its id and its name. It knows them by their
/// cgroup, which no change of user or process group changes. One `grep` for all processes: a shell reads byte by byte,
/// and a look that takes a second sees a death a second late.
pub(crate) const LIST: &str = r#"
list() {
  for f in $(grep -ls -- "$1" /proc/[0-9]*/cgroup); do
    d=${f%/cgroup}
    read -r stat <"$d/stat" || continue
    case "$stat" in *") Z "*|*") X "*) ;; *) read -r name <"$d/comm" && echo "${d#/proc/} $name" ;; esac
  done 2>/dev/null
  :
}
"#;

const SEND: &str = r#"while read -r pid name; do kill -"$2" "$pid" || [ ! -d "/proc/$pid" ] || exit 1; done"#;

/// A privileged pod of the stage in the node's PID namespace, made when it is first asked for.
#[derive(Clone, Debug)]
pub struct NodeShell<'a> {
    stage: &'a Stage,
    pod: String,
}

/// A process as its node sees it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostProcess {
    /// Its number on the node.
    pub pid: u32,
    /// The name of its program.
    pub name: String,
}

// === impl NodeShell ===

impl<'a> NodeShell<'a> {
    /// The shell on this node. Takes a second the first time.
    pub fn on(stage: &'a Stage, node: &str) -> Result<Self> {
        let pod = format!("shell-on-{node}");
        let found = stage.kubectl(&["get", "pod", &pod, "--ignore-not-found", "--output=name"])?;
        if found.trim().is_empty() {
            stage.apply(&manifest(&pod, node))?;
            stage.kubectl(&["wait", "pod", &pod, "--for=condition=Ready", "--timeout=180s"])?;
        }
        Ok(Self { stage, pod })
    }

    /// Runs a script as root of the node's PID namespace and gives what it printed. `words` are its `$1`, `$2`, ….
    pub fn run(&self, script: &str, words: &[&str]) -> Result<String> {
        Ok(run(&mut self.command(script, words))?)
    }

    /// Every process of a container that is not dead.
    pub fn processes(&self, container_id: &str) -> Result<Vec<HostProcess>> {
        let script = format!("{LIST}\nlist \"$1\"");
        self.run(&script, &[container_id])?.lines().map(HostProcess::parse).collect()
    }

    /// Sends a signal to every process of a container. One that has ended meanwhile is no failure.
    pub fn signal(&self, container_id: &str, signal: &str) -> Result<()> {
        let script = format!("{LIST}\nlist \"$1\" | {SEND}");
        self.run(&script, &[container_id, signal]).map(|_| ())
    }

    pub(crate) fn command(&self, script: &str, words: &[&str]) -> std::process::Command {
        let mut all = vec!["exec", &self.pod, "--", "sh", "-c", script, "sh"];
        all.extend(words);
        self.stage.command(&all)
    }
}

fn manifest(name: &str, node: &str) -> Value {
    let changes = json!({"hostPID": true, "nodeName": node, "terminationGracePeriodSeconds": 0});
    let mut pod = Workload::pod(name).as_root().script("sleep 86400").with_pod_spec(changes).manifest();
    pod["spec"]["containers"][0]["securityContext"] = json!({"privileged": true});
    pod
}

// === impl HostProcess ===

impl HostProcess {
    fn parse(line: &str) -> Result<Self> {
        let (pid, name) = line.split_once(' ').unwrap_or((line, ""));
        let pid = pid.parse().with_context(|| format!("the shell on the node printed {line:?}"))?;
        Ok(Self { pid, name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests;
