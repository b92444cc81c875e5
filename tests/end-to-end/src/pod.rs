//! A pod as a test sees it: what the API server says of it, and what can be done to it.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use fencedlease_cluster::command::run;
use fencedlease_wire::socket::LeaseView;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod as PodObject, PodStatus};
use serde_json::Value;

use crate::cluster::Items;
use crate::death::DeathWatch;
use crate::flag::FlagWatch;
use crate::node_shell::{HostProcess, NodeShell};
use crate::stage::Stage;

/// A pod, as it was when it was read. [`Pod::again`] reads it anew.
#[derive(Clone, Debug)]
pub struct Pod<'a> {
    stage: &'a Stage,
    object: PodObject,
}

/// How a container's life ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Termination {
    /// Its exit code.
    pub exit_code: i32,
    /// Its termination message; empty if there is none.
    pub message: String,
}

impl Stage {
    /// The pod of this name.
    pub fn pod(&self, name: &str) -> Result<Pod<'_>> {
        Ok(Pod { stage: self, object: self.get(&["pod", name])? })
    }

    /// The pods with these labels, such as `app=report`, that are not being deleted, by name.
    pub fn pods(&self, selector: &str) -> Result<Vec<Pod<'_>>> {
        let list: Items<PodObject> = self.get(&["pods", "--selector", selector])?;
        let there = list.items.into_iter().map(|object| Pod { stage: self, object });
        Ok(there.filter(|pod| !pod.is_going()).collect())
    }

    /// Waits until all pods with these labels are so many and show something, and gives them.
    pub fn until_pods(
        &self,
        selector: &str,
        count: usize,
        within: Duration,
        what: &str,
        shows: impl Fn(&Pod<'_>) -> bool,
    ) -> Result<Vec<Pod<'_>>> {
        let what = format!("{count} pods with {selector}: {what}");
        self.eventually(within, &what, |_| {
            let pods = self.pods(selector)?;
            Ok((pods.len() == count && pods.iter().all(&shows)).then_some(pods))
        })
    }

    /// Waits until no pod with these labels is there, not even one that is being deleted.
    pub fn until_no_pods(&self, selector: &str, within: Duration) -> Result<()> {
        self.eventually(within, &format!("no pod with {selector}"), |stage| {
            let list: Items<PodObject> = stage.get(&["pods", "--selector", selector])?;
            Ok(list.items.is_empty().then_some(()))
        })
    }
}

// === impl Pod ===

impl<'a> Pod<'a> {
    /// Its name.
    pub fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    /// Its uid, by which it differs from another pod of its name.
    pub fn uid(&self) -> &str {
        self.object.metadata.uid.as_deref().unwrap_or_default()
    }

    /// All that the API server says of it.
    pub fn object(&self) -> &PodObject {
        &self.object
    }

    /// The same pod, read anew. Fails if it is gone.
    pub fn again(&self) -> Result<Self> {
        self.stage.pod(self.name())
    }

    /// Waits until it shows something, and gives it as it then is.
    pub fn until(&self, within: Duration, what: &str, shows: impl Fn(&Self) -> bool) -> Result<Self> {
        self.stage.eventually(within, &format!("pod {}: {what}", self.name()), |_| {
            let pod = self.again()?;
            Ok(shows(&pod).then_some(pod))
        })
    }

    /// Its address. Fails if it has none yet.
    pub fn address(&self) -> Result<std::net::IpAddr> {
        let text = self.status().and_then(|status| status.pod_ip.as_deref());
        let text = text.with_context(|| format!("pod {} has no address yet", self.name()))?;
        text.parse().with_context(|| format!("pod {} has the address {text}", self.name()))
    }

    /// The node that it runs on. Fails if it has none yet.
    pub fn node(&self) -> Result<&str> {
        let node = self.object.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        node.with_context(|| format!("pod {} has no node yet", self.name()))
    }

    /// Pending, Running, Succeeded, Failed or Unknown.
    pub fn phase(&self) -> &str {
        self.status().and_then(|status| status.phase.as_deref()).unwrap_or("Unknown")
    }

    /// Whether it is Ready.
    pub fn is_ready(&self) -> bool {
        let conditions = self.status().and_then(|status| status.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|it| it.type_ == "Ready" && it.status == "True"))
    }

    /// Whether it is being deleted.
    pub fn is_going(&self) -> bool {
        self.object.metadata.deletion_timestamp.is_some()
    }

    /// Whether the operator put its sidecar in.
    pub fn is_injected(&self) -> bool {
        let labels = self.object.metadata.labels.as_ref();
        labels.is_some_and(|all| all.get("fencedlease.dev/injected").is_some_and(|value| value == "true"))
    }

    /// How often a container was started again.
    pub fn restarts(&self, container: &str) -> Result<i32> {
        Ok(self.container(container)?.restart_count)
    }

    /// How a container's last life ended, if one did.
    pub fn last_end(&self, container: &str) -> Result<Option<Termination>> {
        let status = self.container(container)?;
        let ends = [&status.state, &status.last_state];
        Ok(ends.into_iter().flatten().find_map(|state| state.terminated.as_ref()).map(Termination::of))
    }

    /// Whether one of a container's last two ends was with this code.
    pub fn has_ended_with(&self, container: &str, exit_code: i32) -> Result<bool> {
        let status = self.container(container)?;
        let mut ends = [&status.state, &status.last_state].into_iter().flatten();
        Ok(ends.any(|state| state.terminated.as_ref().is_some_and(|end| end.exit_code == exit_code)))
    }

    /// What a container's present life has printed.
    pub fn logs(&self, container: &str) -> Result<String> {
        self.stage.kubectl(&["logs", self.name(), "--container", container])
    }

    /// What a container's life before printed.
    pub fn logs_before(&self, container: &str) -> Result<String> {
        self.stage.kubectl(&["logs", self.name(), "--container", container, "--previous"])
    }

    /// Runs a command in a container and gives what it printed. Fails if it ends with a failure.
    pub fn exec(&self, container: &str, words: &[&str]) -> Result<String> {
        Ok(run(&mut self.exec_command(container, words))?)
    }

    /// Runs a line of shell in a container.
    pub fn shell(&self, container: &str, line: &str) -> Result<String> {
        self.exec(container, &["sh", "-c", line])
    }

    /// Asks the application's socket how the lease stands, from within a container.
    pub fn lease(&self, container: &str) -> Result<LeaseView> {
        let (status, body) = self.ask(container, "GET", "/v1/lease", "")?;
        if status != 200 {
            bail!("GET /v1/lease answered {status}: {body}");
        }
        serde_json::from_str(&body).with_context(|| format!("GET /v1/lease answered {body}"))
    }

    /// Sends a request to the application's socket from within a container, and gives status and body.
    pub fn ask(&self, container: &str, method: &str, path: &str, body: &str) -> Result<(u16, String)> {
        let (url, write) = (format!("http://lease{path}"), "\n%{http_code}");
        let socket = "/run/fencedlease/lease.sock";
        let mut words =
            vec!["curl", "-sS", "--max-time", "5", "--unix-socket", socket, "-X", method, "-w", write];
        if !body.is_empty() {
            words.extend(["-H", "content-type: application/json", "-d", body]);
        }
        words.push(&url);
        answer(&self.exec(container, &words)?)
    }

    /// The file `lost` of the shared volume, if it is there.
    pub fn lost_flag(&self, container: &str) -> Result<Option<Value>> {
        let text = self.shell(container, "cat /run/fencedlease/lost 2>/dev/null || :")?;
        if text.trim().is_empty() {
            return Ok(None);
        }
        serde_json::from_str(&text).map(Some).with_context(|| format!("the file lost holds {text}"))
    }

    /// Every process of a container, as its node sees them, also those that changed user or group.
    pub fn processes(&self, container: &str) -> Result<Vec<HostProcess>> {
        self.node_shell()?.processes(&self.container_id(container)?)
    }

    /// Sends a signal, such as `STOP`, to every process of a container, from its node.
    pub fn signal(&self, container: &str, signal: &str) -> Result<()> {
        self.node_shell()?.signal(&self.container_id(container)?, signal)
    }

    /// Watches from the node, for so long at most, until no process of a container lives. It watches already when
    /// this returns. Fails if none lives now.
    pub fn watch_death(&self, container: &str, within: Duration) -> Result<DeathWatch> {
        DeathWatch::begin(&self.node_shell()?, &self.container_id(container)?, within)
    }

    /// Watches from the node, for so long at most, until the file `lost` is in the shared volume. It watches already
    /// when this returns, and goes on when every container has ended.
    pub fn watch_flag(&self, within: Duration) -> Result<FlagWatch> {
        FlagWatch::begin(&self.node_shell()?, self.uid(), within)
    }

    /// Deletes it and does not wait.
    pub fn delete(&self) -> Result<()> {
        self.stage.kubectl(&["delete", "pod", self.name(), "--wait=false"]).map(|_| ())
    }

    /// A command that runs in a container when it is started.
    pub fn exec_command(&self, container: &str, words: &[&str]) -> Command {
        let mut all = vec!["exec", self.name(), "--container", container, "--"];
        all.extend(words);
        self.stage.command(&all)
    }

    /// A container's id, without the runtime's name. Fails if it was never started.
    pub fn container_id(&self, container: &str) -> Result<String> {
        let id = self.container(container)?.container_id.as_deref().unwrap_or_default();
        let (_, id) =
            id.split_once("://").with_context(|| format!("container {container} has not started"))?;
        Ok(id.to_owned())
    }

    fn node_shell(&self) -> Result<NodeShell<'a>> {
        NodeShell::on(self.stage, self.node()?)
    }

    fn status(&self) -> Option<&PodStatus> {
        self.object.status.as_ref()
    }

    fn container(&self, name: &str) -> Result<&ContainerStatus> {
        let found = self.status().and_then(|status| {
            let lists = [&status.container_statuses, &status.init_container_statuses];
            lists.into_iter().flatten().flatten().find(|container| container.name == name)
        });
        found.with_context(|| format!("pod {} has no status of a container {name}", self.name()))
    }
}

// === impl Termination ===

impl Termination {
    fn of(state: &ContainerStateTerminated) -> Self {
        Self { exit_code: state.exit_code, message: state.message.clone().unwrap_or_default() }
    }
}

/// Status and body in what curl printed: the body, a newline, the status.
fn answer(printed: &str) -> Result<(u16, String)> {
    let printed = printed.trim_end();
    let (body, status) = printed.rsplit_once('\n').unwrap_or(("", printed));
    let status = status.parse().with_context(|| format!("curl printed {printed:?}"))?;
    Ok((status, body.to_owned()))
}

#[cfg(test)]
mod tests;
