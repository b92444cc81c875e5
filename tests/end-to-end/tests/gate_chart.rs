//! What the chart of the gate installs, and what it refuses.

use anyhow::{Result, ensure};
use fencedlease_cluster::command::run;
use fencedlease_cluster::error::Error;
use fencedlease_cluster::kubectl::Kubectl;
use fencedlease_end_to_end::Cluster;

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/fencedlease-gate");
const NEEDED: [&str; 2] =
    ["backend.url=http://files.shop.svc:80", "guards[0].lease=report,guards[0].path=/reports/"];

/// What helm makes of these values, with those that no gate does without.
fn rendered(kubectl: &Kubectl, values: &[&str]) -> fencedlease_cluster::error::Result<String> {
    let mut helm = kubectl.helm(&["template", "gate", CHART, "--namespace", "shop"]);
    for value in NEEDED.iter().chain(values) {
        helm.args(["--set", value]);
    }
    run(&mut helm)
}

#[test]
fn the_chart_passes_helms_own_look() -> Result<()> {
    let kubectl = Cluster::in_use()?.kubectl().clone();
    let mut helm = kubectl.helm(&["lint", CHART, "--strict"]);
    for value in NEEDED {
        helm.args(["--set", value]);
    }
    let printed = run(&mut helm)?;
    ensure!(printed.contains("0 chart(s) failed"), "{printed}");
    Ok(())
}

#[test]
fn keys_are_mounted_once_each_and_fences_in_a_claim_that_stays() -> Result<()> {
    let kubectl = Cluster::in_use()?.kubectl().clone();
    let plain = rendered(&kubectl, &["guards[1].lease=report,guards[1].path=/more/"])?;
    for part in [
        "--guard=shop/report=/reports/",
        "--guard=shop/report=/more/",
        "whenDeleted: Retain",
        "accessModes: [ReadWriteOnce]",
        "port: 8080, targetPort: gate",
    ] {
        ensure!(plain.contains(part), "{part} is not in {plain}");
    }
    ensure!(plain.matches("path: shop_report }").count() == 1, "{plain}");
    ensure!(!plain.contains("NetworkPolicy"), "{plain}");

    let other = [
        "tls.secretName=gate-tls,persistence.existingClaim=mine",
        "floors[0].lease=report,floors[0].fence=999999999999999",
        "networkPolicy.enabled=true,networkPolicy.backend.enabled=true",
        "networkPolicy.backend.podSelector.matchLabels.app=files",
    ];
    let other = rendered(&kubectl, &other)?;
    for part in [
        "port: 8443, targetPort: gate",
        "claimName: mine",
        "--floor=shop/report=999999999999999",
        "app: files",
    ] {
        ensure!(other.contains(part), "{part} is not in {other}");
    }
    ensure!(other.matches("kind: NetworkPolicy").count() == 2, "{other}");
    ensure!(!other.contains("volumeClaimTemplates"), "{other}");
    Ok(())
}

#[test]
fn what_cannot_be_safe_is_refused_with_what_to_do() -> Result<()> {
    let kubectl = Cluster::in_use()?.kubectl().clone();
    for (value, says) in [
        ("backend.url=", "backend.url is empty: set it to"),
        ("backend.url=https://files", "backend.url with https and backend.caRef.name go together"),
        ("guards=null", "guards is empty, so that nothing would be passed on"),
        (
            "persistence.enabled=false",
            "a gate that forgets its fences with its pod lets old holders write again",
        ),
        ("networkPolicy.backend.enabled=true", "networkPolicy.backend.podSelector is empty"),
        ("guards[0].namespace=other", "Copy the Secret report-gate-key to here"),
        ("guards[0].path=reports", "does not match pattern"),
        ("reads=none", "value must be one of"),
    ] {
        match rendered(&kubectl, &[value]) {
            Err(Error::Command { output, .. }) => ensure!(output.contains(says), "{value}: {output}"),
            other => anyhow::bail!("{value} was not refused: {other:?}"),
        }
    }
    Ok(())
}
