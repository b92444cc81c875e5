//! A gate in front of a file server: no pod works before the gate has stored its fence, and what an older holder or
//! somebody without a key sends is refused.

use anyhow::{Context as _, Result, ensure};
use fencedlease_crds::FencedLeaseStatus;
use fencedlease_end_to_end::timings::short;
use fencedlease_end_to_end::{Direction, Fault, Gate, Pod, Stage, Workload, chart, seconds};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::{Value, json};

const LEASE: &str = "report";
const TLS: &str = "gate-tls";

/// Writes its fence through the gate, with the header of a commit check, for as long as the file `go` is there.
fn writer(url: &str) -> String {
    format!(
        r#"while sleep 0.5; do
             curl -sfk -m 2 -o /dev/null {url}/reports/go || continue
             ticket=$(curl -sf --unix-socket $FENCEDLEASE_SOCKET -X POST http://lease/v1/commit-check |
               sed -n 's/.*"FencedLease":"\([^"]*\)".*/\1/p')
             printf 'fence %s' "$FENCEDLEASE_FENCE" | curl -sfk -m 2 -X PUT --data-binary @- -H "FencedLease: $ticket" {url}/reports/line
           done"#
    )
}

/// A certificate for the gate in a Secret, and its authority in a ConfigMap.
fn certify(stage: &Stage, host: &str) -> Result<()> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, "authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec![host.to_owned()])?.signed_by(&key, &authority)?;
    stage.apply(&json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": {"name": TLS},
        "stringData": {"tls.crt": certificate.pem(), "tls.key": key.serialize_pem()},
    }))?;
    let data = json!({"ca.crt": authority.pem()});
    stage.apply(
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "gate-ca"}, "data": data}),
    )?;
    Ok(())
}

fn condition(status: &FencedLeaseStatus, of: &str) -> Option<(String, String, String)> {
    let found = status.conditions.iter().find(|condition| condition.type_ == of)?;
    Some((found.status.clone(), found.reason.clone(), found.message.clone()))
}

/// Waits until it is said that the gate is in the way, with nobody ACTIVE, and that `kubectl get` shows it.
fn until_in_the_way(stage: &Stage) -> Result<()> {
    let message = stage.until_lease(LEASE, seconds(90), "that the gate is in the way", |status| {
        let (ready, gates) = (condition(status, "Ready")?, condition(status, "GatesReady")?);
        let says = |it: &(String, String, String)| it.0 == "False" && it.1 == "GateUnreachable";
        (says(&ready) && says(&gates) && status.holder.is_none()).then_some(gates.2)
    })?;
    println!("{message}");
    ensure!(message.contains("reports"), "the message does not name the gate: {message}");
    let shown = stage.kubectl(&["get", "fencedleases", LEASE, "--no-headers", "--output=wide"])?;
    ensure!(shown.contains("Waiting") && shown.contains("GateUnreachable"), "{shown}");
    stage.until_event(LEASE, "GateUnreachable", "reports", seconds(20))?;
    Ok(())
}

/// What the gate says of a write of this pod: status and result.
fn put(pod: &Pod<'_>, url: &str, ticket: &str, content: &str) -> Result<String> {
    let header = format!("FencedLease: {ticket}");
    let url = format!("{url}/reports/line");
    let mut words = vec!["curl", "-sk", "-m", "10", "-o", "/dev/null", "-X", "PUT", "--data-binary", content];
    if !ticket.is_empty() {
        words.extend(["-H", &header]);
    }
    words.extend(["-w", "%{http_code} %header{fencedlease-result}", &url]);
    Ok(pod.exec("app", &words)?.trim().to_owned())
}

fn until_written(stage: &Stage, gate: &Gate<'_>, fence: i64) -> Result<()> {
    let expected = format!("fence {fence}");
    stage.eventually(seconds(30), &format!("the file has {expected:?}"), |_| {
        Ok((gate.file("line")?.trim() == expected).then_some(()))
    })
}

#[test]
fn no_pod_works_before_its_gate_and_an_older_fence_is_refused_before_the_newer_has_written() -> Result<()> {
    let stage = Stage::open("gates")?;
    let gate = stage.files_behind_gate()?;
    let redis = stage.redis_behind_proxy()?;
    certify(&stage, &gate.host())?;
    let authorities = json!({"kind": "ConfigMap", "name": "gate-ca"});
    let gates = json!([{"name": "reports", "url": gate.url(), "caRef": authorities}]);
    let mut spec = short();
    spec["gates"] = gates;
    stage.lease(LEASE, &redis, &spec)?;
    gate.in_backend(": >/data/files/reports/go")?;
    let url = gate.url();
    stage.start(&Workload::deployment(LEASE).guarded_by(LEASE).replicas(2).script(&writer(&url)))?;
    let plain = Workload::pod("plain");
    stage.start(&plain)?;
    until_in_the_way(&stage)?;
    ensure!(gate.file("line")?.is_empty(), "written before there was a gate");

    gate.install(LEASE, TLS)?;
    let holder = stage.holder(LEASE, seconds(90))?;
    let fence = stage.fence(LEASE)?;
    until_written(&stage, &gate, fence)?;
    stage.until_lease(LEASE, seconds(30), "that every gate has the fence", |status| {
        let (gates, ready) = (condition(status, "GatesReady")?, condition(status, "Ready")?);
        (gates.1 == "Raised" && ready.1 == "AsSpecified").then_some(())
    })?;
    ensure!(gate.page()?.contains(&format!("{}/{LEASE}", stage.namespace())), "{}", gate.page()?);

    let plain = stage.pod("plain")?.until(seconds(60), "runs", |pod| pod.phase() == "Running")?;
    ensure!(put(&plain, &url, "", "no ticket")?.ends_with("rejected"), "a write without a ticket passed");
    let (status, answer) = holder.ask("app", "GET", "/v1/lease", "")?;
    ensure!(status == 200, "{answer}");
    let answer: Value = serde_json::from_str(&answer)?;
    let ticket = answer["headers"]["FencedLease"].as_str().context("no header for gates")?.to_owned();
    let forged = ticket.replace(&format!(";fence={fence};"), &format!(";fence={};", fence + 1));
    ensure!(forged != ticket, "{ticket}");
    let said = put(&plain, &url, &forged, "forged")?;
    ensure!(said.ends_with("rejected"), "a forged ticket: {said}");
    until_written(&stage, &gate, fence)?;

    gate.in_backend("rm /data/files/reports/go")?;
    let holding = answer["holding"].as_str().context("no holding")?.to_owned();
    redis.set(&holder, Fault::Drop { direction: Direction::Both })?;
    stage.holder_above(LEASE, fence, seconds(60))?;
    let next = stage.fence(LEASE)?;
    let late = gate.ticket(LEASE, fence, &holding)?;
    let said = put(&plain, &url, &late, "late")?;
    ensure!(said == "412 refused", "a late write of fence {fence} after {next}: {said}");
    ensure!(gate.file("line")?.trim() == format!("fence {fence}"), "the new holder was to write nothing yet");
    redis.heal()?;

    gate.restart()?;
    let said = stage.eventually(seconds(30), "the gate's Service leads to its new pod", |_| {
        let late = gate.ticket(LEASE, fence, &holding)?;
        Ok(put(&plain, &url, &late, "later").ok())
    })?;
    ensure!(said == "412 refused", "a gate that was restarted has forgotten fence {next}: {said}");
    gate.in_backend(": >/data/files/reports/go")?;
    until_written(&stage, &gate, stage.fence(LEASE)?)?;

    let known = stage.fence(LEASE)?;
    gate.scale(0)?;
    stage.kubectl(&["delete", "pods", "--selector=app=report", "--wait=false"])?;
    until_in_the_way(&stage)?;
    gate.scale(1)?;
    stage.holder_above(LEASE, known, seconds(120))?;
    until_written(&stage, &gate, stage.fence(LEASE)?)
}

#[test]
fn the_operator_makes_keys_that_come_back_and_nothing_else() -> Result<()> {
    let stage = Stage::open("gate-keys")?;
    let gate = json!({"name": "reports", "url": "https://gate:8443"});
    let refused = stage.apply_refused(&json!({
        "apiVersion": "fencedlease.dev/v1alpha1", "kind": "FencedLease", "metadata": {"name": LEASE},
        "spec": {"gates": [gate, {"name": "bad", "url": "https://gate/path"}]},
    }))?;
    ensure!(
        refused.contains("spec.gates (bad).url is \"https://gate/path\": write https://host"),
        "{refused}"
    );
    stage.lease_of_installation(LEASE, &json!({"gates": [gate]}))?;
    let key = |stage: &Stage| stage.get::<Value>(&["secret", "report-gate-key"]);
    let first = stage.eventually(seconds(30), "the key is made", |stage| Ok(Some(key(stage)?)))?;
    ensure!(first["type"] == "fencedlease.dev/gate-key", "{}", first["type"]);
    ensure!(first["metadata"]["ownerReferences"][0]["name"] == LEASE, "{first}");

    let operator = format!("--as=system:serviceaccount:{}:fencedlease-operator", chart::NAMESPACE);
    let refused =
        stage.refused(&["create", "secret", "generic", "other", &operator, "--from-literal=key=x"])?;
    ensure!(refused.contains("may make only Secrets of type fencedlease.dev/gate-key"), "{refused}");
    for verb in ["get", "list", "watch", "update", "patch", "delete"] {
        let answer = stage.refused(&["auth", "can-i", verb, "secrets", &operator])?;
        ensure!(answer.contains("no"), "the operator may {verb} Secrets: {answer}");
    }

    stage.kubectl(&["delete", "secret", "report-gate-key"])?;
    let second =
        stage.eventually(seconds(180), "a deleted key is made anew", |stage| Ok(Some(key(stage)?)))?;
    ensure!(second["data"]["key"] != first["data"]["key"], "the same key came back");
    stage.kubectl(&["delete", "fencedlease", LEASE])?;
    stage.eventually(seconds(60), "the key goes with its FencedLease", |stage| {
        let left = stage.kubectl(&["get", "secret", "report-gate-key", "--ignore-not-found"])?;
        Ok(left.is_empty().then_some(()))
    })
}
