use super::*;

fn pod_spec(manifest: &Value) -> &Value {
    &manifest["spec"]["template"]["spec"]
}

#[test]
fn a_guarded_deployment_asks_in_its_template_and_is_recreated() {
    let manifest = Workload::deployment("report").guarded_by("ledger").replicas(2).manifest();
    assert_eq!(manifest["spec"]["template"]["metadata"]["annotations"]["fencedlease.dev/lease"], "ledger");
    assert_eq!(manifest["spec"]["replicas"], 2);
    assert_eq!(manifest["spec"]["strategy"]["type"], "Recreate");
    assert_eq!(pod_spec(&manifest)["securityContext"]["runAsNonRoot"], true);
}

#[test]
fn an_unguarded_rolling_one_has_neither_annotation_nor_strategy() {
    let manifest = Workload::deployment("report").rolling().manifest();
    assert_eq!(manifest["spec"]["template"]["metadata"]["annotations"], json!({}));
    assert!(manifest["spec"].get("strategy").is_none());
}

#[test]
fn a_job_is_not_restarted_and_a_pod_has_its_name() {
    assert_eq!(pod_spec(&Workload::job("once").manifest())["restartPolicy"], "Never");
    let pod = Workload::pod("alone").as_root().manifest();
    assert_eq!((pod["metadata"]["name"].as_str(), pod["kind"].as_str()), (Some("alone"), Some("Pod")));
    assert!(pod["spec"].get("securityContext").is_none());
}

#[test]
fn a_change_of_the_pod_spec_reaches_what_has_no_method() {
    let changes = json!({"hostPID": true, "automountServiceAccountToken": null});
    let pod = Workload::pod("alone").with_pod_spec(changes).manifest();
    assert_eq!(pod["spec"]["hostPID"], true);
    assert!(pod["spec"].get("automountServiceAccountToken").is_none());
    assert_eq!(pod["spec"]["containers"][0]["name"], "app");
}
