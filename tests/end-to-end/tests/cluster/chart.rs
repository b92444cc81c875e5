//! What the chart installs, and that it works.

use anyhow::{Context as _, Result};
use fencedlease_cluster::command::{run, run_with_input};
use fencedlease_cluster::error::Error;
use fencedlease_cluster::kubectl::Kubectl;
use fencedlease_end_to_end::{Cluster, Stage, chart};
use serde_json::{Value, json};

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../charts/fencedlease");
const EMBEDDED: &str = "redis.embedded=true";
const OTHER: &str = "operator.replicas=1,rbac.aggregate=false,redis.addresses={redis.shop.svc:6379},\
                     redis.auth.secretRef.name=redis-password,installationID=shop-1";

/// Every object of the chart with these values.
fn rendered(kubectl: &Kubectl, values: &str) -> Result<Vec<Value>> {
    let mut helm = kubectl.helm(&["template", "fencedlease", CHART, "--namespace", "somewhere"]);
    let manifests = run(helm.args(["--set", values]))?;
    // kubectl reads YAML; it sends nothing.
    let words = ["create", "--dry-run=client", "--validate=false", "--output=json", "--filename=-"];
    let printed = run_with_input(&mut kubectl.command(&words), &manifests)?;
    let mut objects = Vec::new();
    for document in serde_json::Deserializer::from_str(&printed).into_iter::<Value>() {
        let mut document = document?;
        match document["items"].as_array_mut() {
            Some(items) => objects.append(items),
            None => objects.push(document),
        }
    }
    Ok(objects)
}

fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> Option<&'a Value> {
    objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
}

/// The rules of a Role or ClusterRole, each as `group resources names verbs`.
fn rules(objects: &[Value], kind: &str) -> Result<Vec<String>> {
    let role = find(objects, kind, "fencedlease-operator").with_context(|| format!("no {kind}"))?;
    let words = |list: &Value| {
        let words: Vec<&str> = list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        words.join(",")
    };
    let line = |rule: &Value| {
        let parts = ["apiGroups", "resources", "resourceNames", "verbs"].map(|key| words(&rule[key]));
        parts.join(" ").trim().replace("  ", " ")
    };
    Ok(role["rules"].as_array().into_iter().flatten().map(line).collect())
}

#[test]
fn the_chart_passes_helms_own_look() -> Result<()> {
    let kubectl = Cluster::in_use()?.kubectl().clone();
    for values in [EMBEDDED, OTHER] {
        let printed = run(&mut kubectl.helm(&["lint", CHART, "--strict", "--set", values]))?;
        assert!(printed.contains("0 chart(s) failed"), "{printed}");
    }
    Ok(())
}

#[test]
fn the_operator_may_do_what_it_does_and_nothing_else() -> Result<()> {
    let kubectl = Cluster::in_use()?.kubectl().clone();
    let embedded = rendered(&kubectl, EMBEDDED)?;
    let everywhere = [
        "fencedlease.dev fencedleases get,list,watch",
        "fencedlease.dev fencedleases/status update",
        "pods get,list,watch,delete",
        "policy poddisruptionbudgets list",
        "secrets create",
        "authentication.k8s.io tokenreviews create",
        "events.k8s.io events create,patch",
        "admissionregistration.k8s.io mutatingwebhookconfigurations,validatingwebhookconfigurations \
         fencedlease-operator get,list,watch,patch",
    ];
    assert_eq!(rules(&embedded, "ClusterRole")?, everywhere);
    let at_home = |redis| {
        vec![
            "secrets create",
            "secrets fencedlease-operator-certificates get,list,watch,update",
            redis,
            "configmaps create",
            "configmaps fencedlease-installation get",
            "pods create",
        ]
    };
    assert_eq!(rules(&embedded, "Role")?, at_home("secrets fencedlease-redis get,update"));
    let other = rendered(&kubectl, OTHER)?;
    assert_eq!(rules(&other, "ClusterRole")?, everywhere);
    assert_eq!(rules(&other, "Role")?, at_home("secrets redis-password get"));
    let without = rendered(&kubectl, "operator.replicas=2")?;
    let rules = rules(&without, "Role")?;
    assert!(!rules.iter().any(|rule| rule.contains("redis")), "{rules:?}");
    Ok(())
}

#[test]
fn other_values_give_other_objects() -> Result<()> {
    let kubectl = Cluster::in_use()?.kubectl().clone();
    let objects = rendered(&kubectl, OTHER)?;
    let operator = find(&objects, "Deployment", "fencedlease-operator").context("no operator")?;
    assert_eq!(operator["spec"]["replicas"], 1);
    let environment = &operator["spec"]["template"]["spec"]["containers"][0]["env"];
    for (name, value) in [
        ("FENCEDLEASE_REDIS_ADDRESSES", "redis.shop.svc:6379"),
        ("FENCEDLEASE_REDIS_SECRET", "redis-password"),
        ("FENCEDLEASE_INSTALLATION_ID", "shop-1"),
    ] {
        let expected = json!({"name": name, "value": value});
        assert!(environment.as_array().is_some_and(|all| all.contains(&expected)), "{name}: {environment}");
    }
    for (kind, name) in [
        ("ClusterRole", "fencedlease-view"),
        ("ClusterRole", "fencedlease-edit"),
        ("Deployment", "fencedlease-redis"),
        ("Secret", "fencedlease-redis"),
        ("Secret", "redis-password"),
    ] {
        assert!(find(&objects, kind, name).is_none(), "{kind} {name} is there");
    }
    assert!(find(&objects, "FencedLease", "fencedlease-test").is_some(), "helm test has nothing to run");

    let usual = rendered(&kubectl, EMBEDDED)?;
    assert!(find(&usual, "ClusterRole", "fencedlease-view").is_some());
    assert!(find(&usual, "Deployment", "fencedlease-redis").is_some());

    for (values, says) in [
        (
            "redis.embedded=true,redis.addresses={redis.shop.svc:6379}",
            "redis.addresses and redis.embedded exclude each other",
        ),
        // A word that is no level is a target's name to the filter, and nothing is logged.
        (
            "redis.embedded=true,operator.logLevel=loud",
            "at '/operator/logLevel': 'loud' does not match pattern",
        ),
    ] {
        match run(&mut kubectl.helm(&["template", "fencedlease", CHART, "--set", values])) {
            Err(Error::Command { output, .. }) => assert!(output.contains(says), "{output}"),
            other => anyhow::bail!("{values} was not refused: {other:?}"),
        }
    }
    Ok(())
}

#[test]
fn helm_test_runs_a_guarded_pod() -> Result<()> {
    let stage = Stage::open("helm-test")?;
    let kubectl = stage.cluster().kubectl();
    let words = ["test", chart::RELEASE, "--namespace", chart::NAMESPACE, "--timeout=180s"];
    let printed = run(&mut kubectl.helm(&words))?;
    let suites = printed.matches("Phase:").count();
    assert!(suites > 0 && printed.matches("Succeeded").count() == suites, "{printed}");
    let left =
        kubectl.run(&["get", "pods,fencedleases", "--namespace", chart::NAMESPACE, "--output=name"])?;
    assert!(!left.contains("fencedlease-test"), "{left}");
    Ok(())
}
