//! The patches of whole pods, as files that a person can read: `tests/golden`. To accept a change on purpose,
//! run the tests with `UPDATE_GOLDEN=1` and read the difference.

use std::path::PathBuf;

use serde_json::Value;

use super::{installation, lease};
use crate::inject::inject;

fn check(name: &str) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let pod = std::fs::read_to_string(folder.join(format!("{name}.pod.json"))).unwrap();
    let pod: Value = serde_json::from_str(&pod).unwrap();
    let injected = inject(&pod, &lease(), "shop", &installation()).unwrap();
    let rendered = serde_json::to_string_pretty(&injected.patch).unwrap() + "\n";
    let file = folder.join(format!("{name}.patch.json"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, &rendered).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap();
    assert!(rendered == expected, "{} differs; the patch is now:\n{rendered}", file.display());
}

#[test]
fn a_pod_of_a_deployment_waits_warm() {
    check("warm-deployment");
}

#[test]
fn a_pod_with_a_liveness_probe_waits_cold() {
    check("cold-liveness-probe");
}

#[test]
fn a_pod_of_a_job_completes() {
    check("job");
}

#[test]
fn one_of_two_containers_is_guarded() {
    check("one-of-two-containers");
}

#[test]
fn probes_hooks_and_an_init_container_run_under_the_lease_alone() {
    check("probes-hooks-init");
}
