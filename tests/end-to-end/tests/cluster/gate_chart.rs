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
    let flags: Vec<_> = values.iter().map(|value| ["--set", *value]).collect();
    rendered_by(kubectl, &flags)
}

/// The same, with flags that say how a value is to be read.
fn rendered_by(kubectl: &Kubectl, flags: &[[&str; 2]]) -> fencedlease_cluster::error::Result<String> {
    let mut helm = kubectl.helm(&["template", "gate", CHART, "--namespace", "shop"]);
    for value in NEEDED {
        helm.args(["--set", value]);
    }
    helm.args(flags.as_flattened());
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
    ensure!(plain.matches(r#"path: "shop_report" }"#).count() == 1, "{plain}");
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
        r#"claimName: "mine""#,
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
fn names_that_yaml_takes_for_numbers_stay_names() -> Result<()> {
    let kubectl = Cluster::in_use()?.kubectl().clone();
    let mut helm = kubectl.helm(&["template", "1", CHART, "--namespace", "123"]);
    for value in [
        "backend.url=http://files.shop.svc:80,tls.secretName=1e3",
        "guards[0].lease=456,guards[0].path=/reports/,guards[0].keySecret=7",
        "floors[0].lease=456,floors[0].namespace=true",
    ] {
        helm.args(["--set-string", value]);
    }
    helm.args(["--set", "floors[0].fence=42", "--set", "networkPolicy.enabled=true"]);
    let printed = run(&mut helm)?;
    ensure!(printed.matches("namespace: \"123\"\n").count() == 3, "{printed}");
    ensure!(!printed.contains("namespace: 123") && !printed.contains("instance: 1\n"), "{printed}");
    for part in [
        r#"- "--floor=true/456=42""#,
        r#"secret: { name: "7", items: [{ key: key, path: "123_456" }] }"#,
        r#"secretName: "1e3""#,
    ] {
        ensure!(printed.contains(part), "{part} is not in {printed}");
    }
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
        // A word that is no level is a target's name to the filter, and nothing is logged.
        ("logLevel=loud", "at '/logLevel': 'loud' does not match pattern"),
    ] {
        match rendered(&kubectl, &[value]) {
            Err(Error::Command { output, .. }) => ensure!(output.contains(says), "{value}: {output}"),
            other => anyhow::bail!("{value} was not refused: {other:?}"),
        }
    }
    for selector in [r#"{"matchLabels":{}}"#, r#"{"matchExpressions":[]}"#] {
        let value = format!("networkPolicy.backend.podSelector={selector}");
        let flags = [["--set", "networkPolicy.backend.enabled=true"], ["--set-json", value.as_str()]];
        match rendered_by(&kubectl, &flags) {
            Err(Error::Command { output, .. }) => {
                ensure!(
                    output.contains("networkPolicy.backend.podSelector is empty"),
                    "{selector}: {output}"
                );
            }
            other => anyhow::bail!("{selector} was not refused: {other:?}"),
        }
    }
    Ok(())
}
