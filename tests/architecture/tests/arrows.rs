//! Which part of the workspace may know which. ARCHITECTURE.md draws the same arrows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use fencedlease_architecture::{packages, root, tree};

/// What each part may depend on. Parts below `tests/` see everything.
const ARROWS: [(&str, &[&str]); 8] = [
    ("fencedlease-wire", &[]),
    ("fencedlease-core", &["fencedlease-wire"]),
    ("fencedlease-redis", &["fencedlease-core", "fencedlease-wire"]),
    ("fencedlease-sidecar", &["fencedlease-core", "fencedlease-redis", "fencedlease-wire"]),
    ("fencedlease-gate", &["fencedlease-wire"]),
    ("fencedlease-client", &["fencedlease-wire"]),
    ("fencedlease-crds", &[]),
    (
        "fencedlease-operator",
        &["fencedlease-core", "fencedlease-crds", "fencedlease-redis", "fencedlease-wire"],
    ),
];

/// What the tests of a part may use besides.
const TEST_HELPERS: [&str; 2] = ["fencedlease-faults", "fencedlease-fence-checks"];

/// Crates that must not be found in a part's programs, with the reason. A name ending in `*` is a prefix.
const KEPT_OUT: [(&str, &[&str], &str); 7] = [
    (
        "fencedlease-wire",
        &["tokio", "redis", "kube*", "k8s-openapi", "hyper*", "rustix"],
        "names and JSON alone",
    ),
    (
        "fencedlease-core",
        &["tokio", "redis", "kube*", "k8s-openapi", "hyper*", "rustix"],
        "decisions are pure",
    ),
    (
        "fencedlease-redis",
        &["kube*", "k8s-openapi", "hyper*", "axum*"],
        "a lease knows Redis and nothing above it",
    ),
    (
        "fencedlease-sidecar",
        &["kube*", "k8s-openapi", "serde_yaml", "proptest", "stateright"],
        "it runs in every guarded pod",
    ),
    (
        "fencedlease-gate",
        &["kube*", "k8s-openapi", "redis", "serde_yaml", "stateright"],
        "it stands in the way of every write and knows nothing of where leases come from",
    ),
    (
        "fencedlease-client",
        &["redis", "kube*", "k8s-openapi", "axum*", "rustls*"],
        "it goes into other people's programs",
    ),
    (
        "fencedlease-operator",
        &["serde_yaml", "kube-cel", "proptest"],
        "YAML and CEL are for generator and tests",
    ),
];

#[test]
fn no_part_knows_a_part_that_the_design_keeps_from_it() {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.into_iter().collect();
    let tests_folder = root().unwrap().join("tests");
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for package in packages().unwrap() {
        if package.manifest_path.starts_with(&tests_folder) {
            continue;
        }
        let Some(targets) = allowed.get(package.name.as_str()) else {
            wrong.push(format!("{} has no arrows: add it to the table", package.name));
            continue;
        };
        for dependency in package.dependencies.iter().filter(|it| it.name.starts_with("fencedlease-")) {
            let name = dependency.name.as_str();
            let is_test_helper = dependency.kind.as_deref() == Some("dev")
                && (TEST_HELPERS.contains(&name) || name == package.name);
            if !targets.contains(&name) && !is_test_helper {
                wrong.push(format!("{} -> {name}", package.name));
            }
        }
        seen.insert(package.name);
    }
    assert!(wrong.is_empty(), "arrows that the design does not have: {wrong:#?}");
    assert_eq!(seen.len(), ARROWS.len(), "a part of the table is not in the workspace: {seen:?}");
}

#[test]
fn no_program_carries_what_its_part_keeps_out() {
    let mut wrong = Vec::new();
    for (package, kept_out, why) in KEPT_OUT {
        let tree = tree(package).unwrap();
        assert!(tree.contains(package), "cargo's tree of {package} has another form: {tree:?}");
        for name in tree {
            let is_kept_out = kept_out.iter().any(|pattern| {
                pattern.strip_suffix('*').map_or(name == *pattern, |prefix| name.starts_with(prefix))
            });
            if is_kept_out {
                wrong.push(format!("{package} contains {name}, but {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_crate_is_held_to_the_workspaces_lints() {
    for package in packages().unwrap() {
        let manifest = fs::read_to_string(&package.manifest_path).unwrap();
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{} has no `[lints] workspace = true`",
            package.manifest_path.display()
        );
    }
}
