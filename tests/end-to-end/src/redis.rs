//! The Redis of a stage, behind a proxy that can break what single pods say to it.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use fencedlease_faults::{Counters, Direction, Fault, Order, Snapshot};
use fencedlease_wire::lost::LostFlag;

use crate::pod::Pod;
use crate::proxy::PodProxy;
use crate::stage::Stage;

const MANIFEST: &str = include_str!("../manifests/redis-behind-proxy.yaml");
const CONTROL_PORT: u16 = 7480;
const REDIS_PORT: &str = "6380";

/// A pod with a Redis and a fault proxy in front of it. Sidecars connect to the proxy.
#[derive(Debug)]
pub struct RedisBehindProxy<'a> {
    stage: &'a Stage,
    pod: String,
}

impl Stage {
    /// Starts a Redis behind a fault proxy and waits until it serves.
    pub fn redis_behind_proxy(&self) -> Result<RedisBehindProxy<'_>> {
        self.apply_yaml(MANIFEST)?;
        self.kubectl(&["rollout", "status", "deployment/redis", "--timeout=180s"])?;
        let pods = self.pods("app=redis")?;
        let pod = pods.first().context("the Deployment redis has no pod")?;
        // Its name and its Service are known to the nodes a moment after the pod is Ready.
        self.eventually(Duration::from_secs(30), "redis answers by its Service's name", |_| {
            let answer = pod.shell("redis", "printf 'PING\\r\\n' | timeout 1 nc redis 6379 | head -n 1")?;
            Ok((answer.trim() == "+PONG").then_some(()))
        })?;
        Ok(RedisBehindProxy { stage: self, pod: pod.name().to_owned() })
    }
}

// === impl RedisBehindProxy ===

impl RedisBehindProxy<'_> {
    /// `host:port` for a FencedLease.
    pub fn address(&self) -> String {
        format!("redis.{}.svc:6379", self.stage.namespace())
    }

    /// Sets a fault for what goes between this pod and Redis.
    pub fn set(&self, pod: &Pod<'_>, fault: Fault) -> Result<Snapshot> {
        self.order(Order { client: Some(pod.address()?), fault })
    }

    /// Sets a fault for every client, in place of all that was set before.
    pub fn set_for_all(&self, fault: Fault) -> Result<Snapshot> {
        self.order(Order { client: None, fault })
    }

    /// Takes all faults away.
    pub fn heal(&self) -> Result<Snapshot> {
        self.set_for_all(Fault::Pass)
    }

    /// Faults and counters of the proxy.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.proxy().snapshot(self.stage.cluster().kubectl())
    }

    /// Drops what goes between a holder and Redis until the last process of its container `app` is dead. Gives the
    /// instant of that on CLOCK_BOOTTIME, and what the file `lost` said. Fails if nothing was dropped.
    pub fn cut_off(&self, holder: &Pod<'_>) -> Result<(Duration, LostFlag)> {
        let within = Duration::from_secs(30);
        let (death, flag) = (holder.watch_death("app", within)?, holder.watch_flag(within)?);
        self.set(holder, Fault::Drop { direction: Direction::Both })?;
        let (dead_at, flag) = (death.seen()?, flag.seen()?);
        let counted = self.snapshot()?.client(holder.address()?);
        ensure!(counted.dropped_request_bytes > 0, "the proxy dropped nothing: {counted:?}");
        Ok((dead_at, flag))
    }

    /// Waits until the proxy's counters of a pod show something: that a fault has happened.
    pub fn until_counted(
        &self,
        pod: &Pod<'_>,
        within: Duration,
        what: &str,
        shows: impl Fn(&Counters) -> bool,
    ) -> Result<Counters> {
        let client = pod.address()?;
        let what = format!("the proxy counted of pod {}: {what}", pod.name());
        self.stage.eventually(within, &what, |_| {
            let counted = self.snapshot()?.client(client);
            Ok(shows(&counted).then_some(counted))
        })
    }

    /// Runs redis-cli beside the server, past the proxy, and gives what it printed.
    pub fn cli(&self, words: &[&str]) -> Result<String> {
        let mut all = vec!["redis-cli", "-e", "-p", REDIS_PORT];
        all.extend(words);
        self.pod()?.exec("redis", &all)
    }

    /// SIGSTOP: the server hangs, its connections stay open.
    pub fn freeze(&self) -> Result<()> {
        self.pod()?.signal("redis", "STOP")
    }

    /// SIGCONT: it goes on.
    pub fn thaw(&self) -> Result<()> {
        self.pod()?.signal("redis", "CONT")
    }

    /// SIGKILL: it loses everything, and the kubelet starts it again.
    pub fn kill(&self) -> Result<()> {
        self.pod()?.signal("redis", "KILL")
    }

    /// The pod of both.
    pub fn pod(&self) -> Result<Pod<'_>> {
        self.stage.pod(&self.pod)
    }

    fn order(&self, order: Order) -> Result<Snapshot> {
        self.proxy().order(self.stage.cluster().kubectl(), order)
    }

    fn proxy(&self) -> PodProxy {
        PodProxy::new(self.stage.namespace(), &self.pod, CONTROL_PORT)
    }
}
