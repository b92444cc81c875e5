//! The story: who holds, what is cut, what dies and when, who holds then, and what the operator refuses.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use fencedlease_cluster::kubectl::Kubectl;
use fencedlease_faults::{Direction, Fault, Snapshot};
use serde_json::Value;

use crate::NAMESPACE;
use crate::proxy::Proxy;
use crate::setup::{apply, lease, wait};
use crate::view::{show, tell};

/// A Deployment that runs unguarded, and is then asked to be guarded by a rolling update.
const UNGUARDED: &str = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"forgotten"},"spec":{
 "selector":{"matchLabels":{"app":"forgotten"}},"template":{"metadata":{"labels":{"app":"forgotten"}},"spec":{
 "terminationGracePeriodSeconds":1,"containers":[{"name":"app","image":"fencedlease.dev/busybox:dev","command":["sleep","3600"]}]}}}}"#;

/// Plays it and prints it.
pub(crate) fn tell_all(kubectl: &Kubectl) -> Result<()> {
    show(kubectl, "get fencedleases")?;
    show(kubectl, "get pods -l app=report")?;
    let before = lease(kubectl)?;
    let holder = text(&before["status"]["holder"]["podName"])?;
    let fence = number(&before["status"]["fence"])?;
    tell(&format!("\n1. {holder} holds the lease with fence {fence} and works; the other pod waits."));

    let proxy = Proxy::find(kubectl)?;
    let client = pod_address(kubectl, &holder)?;
    let cut_at = Instant::now();
    proxy.order(Some(&client), Fault::Drop { direction: Direction::Both })?;
    tell(&format!(
        "2. Now the proxy in front of Redis drops everything from and to {client}: that pod alone."
    ));

    let loss = wait("the holder's loss", Duration::from_secs(40), || {
        let lease = lease(kubectl)?;
        let loss = lease["status"]["lastLoss"].clone();
        Ok((loss["fence"] == fence).then_some(loss))
    })?;
    tell(&format!(
        "3. LOST, {:.1} s after the cut: {}.",
        cut_at.elapsed().as_secs_f64(),
        text(&loss["message"])?
    ));
    let dead_after = number(&loss["deadAfterMilliseconds"])?;
    tell(&format!(
        "4. Every process of its container was proven dead {dead_after} ms after the loss was noticed."
    ));

    let (next, next_fence) = wait("another pod to hold the lease", Duration::from_secs(40), || {
        let lease = lease(kubectl)?;
        let next = lease["status"]["holder"]["podName"].as_str().map(str::to_owned);
        let next_fence = lease["status"]["fence"].as_u64().unwrap_or_default();
        Ok(next.filter(|_| next_fence > fence).map(|next| (next, next_fence)))
    })?;
    let after = cut_at.elapsed().as_secs_f64();
    tell(&format!(
        "5. {next} took over with fence {next_fence}, {after:.1} s after the cut: {next_fence} > {fence}."
    ));
    let swallowed = proxy.order(None, Fault::Pass)?;
    tell(&format!(
        "6. The cut is mended. What the proxy swallowed of it, by its own count: {} bytes.",
        dropped(&swallowed, &client)
    ));
    wait("the lost pod to be back as a standby", Duration::from_secs(40), || {
        Ok((lease(kubectl)?["status"]["standbys"] == 1).then_some(()))
    })?;
    tell("7. The lost pod was replaced; its successor waits for the lease:");
    show(kubectl, "get fencedleases")?;
    show(kubectl, "get pods -l app=report")?;
    show(
        kubectl,
        "get events --field-selector involvedObject.kind=FencedLease -o custom-columns=REASON:.reason,MESSAGE:.message",
    )?;
    refusal(kubectl)?;
    Ok(())
}

/// Shows what someone reads who turns guarding on under a rolling update.
fn refusal(kubectl: &Kubectl) -> Result<()> {
    apply(kubectl, UNGUARDED)?;
    let name = "deployment/forgotten";
    kubectl.run(&["rollout", "status", name, "--namespace", NAMESPACE, "--timeout=180s"])?;
    tell("\n8. Who forgets that guarded and unguarded pods must not run side by side is told so:");
    println!("\n$ kubectl annotate {name} fencedlease.dev/lease=report -n {NAMESPACE}");
    let words = ["annotate", name, "fencedlease.dev/lease=report", "--namespace", NAMESPACE];
    match kubectl.run(&words) {
        Ok(_) => bail!("a rolling update from unguarded to guarded pods was admitted"),
        Err(error) => println!("{error}"),
    }
    kubectl.run(&["delete", name, "--namespace", NAMESPACE, "--wait=false"])?;
    Ok(())
}

fn dropped(snapshot: &Snapshot, client: &str) -> u64 {
    let counters = client.parse().ok().and_then(|client: std::net::IpAddr| snapshot.clients.get(&client));
    counters.map_or(0, |counters| counters.dropped_request_bytes + counters.dropped_reply_bytes)
}

fn pod_address(kubectl: &Kubectl, pod: &str) -> Result<String> {
    text(&kubectl.json(&["get", "pod", pod, "--namespace", NAMESPACE])?["status"]["podIP"])
}

pub(crate) fn text(value: &Value) -> Result<String> {
    value.as_str().map(str::to_owned).with_context(|| format!("expected a text, found {value}"))
}

pub(crate) fn number(value: &Value) -> Result<u64> {
    value.as_u64().with_context(|| format!("expected a number, found {value}"))
}
