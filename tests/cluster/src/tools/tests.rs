use super::build::version_of;
use super::packages::missing_packages;
use super::*;

#[test]
fn kubernetes_carries_its_version_and_others_do_not() {
    let flags = |name: &str| TOOLS.iter().find(|tool| tool.name == name).unwrap().ldflags();
    let kubelet = flags("kubelet");
    for part in ["component-base/version.gitVersion=v1.37.2", "client-go/pkg/version.gitMinor=37"] {
        assert!(kubelet.contains(part), "{kubelet}");
    }
    assert_eq!(flags("helm"), "-s -w");
}

#[test]
fn every_program_has_a_file_name_of_its_own_with_its_version() {
    let names: Vec<String> = TOOLS.iter().map(|tool| tool.file_name().unwrap()).collect();
    for (tool, name) in TOOLS.iter().zip(&names) {
        assert!(name.starts_with(&format!("{}-{}-", tool.name, tool.version)), "{name}");
        assert_eq!(names.iter().filter(|other| *other == name).count(), 1);
    }
}

#[test]
fn modules_ask_for_the_versions_that_the_list_names() {
    for (tool, required) in [
        ("kubelet", "k8s.io/kubernetes v1.37.2"),
        ("etcd", "go.etcd.io/etcd/server/v3 v3.7.0"),
        ("coredns", "github.com/coredns/coredns v1.15.0"),
    ] {
        let tool = TOOLS.iter().find(|it| it.name == tool).unwrap();
        let module = fs::read_to_string(tool.module().unwrap().join("go.mod")).unwrap();
        assert!(module.contains(required), "{} does not ask for {required}", tool.name);
        assert!(required.ends_with(tool.version));
    }
}

#[test]
fn versions_of_go_are_read_and_compared_as_numbers() {
    assert_eq!(version_of("go1.26.8"), Some((1, 26)));
    assert_eq!(version_of("go1.27rc1"), Some((1, 27)));
    assert_eq!(version_of("go1.9"), Some((1, 9)));
    assert!((1, 9) < GO);
    assert_eq!(version_of("devel"), None);
}

#[test]
fn a_missing_file_names_its_package() {
    assert!(missing_packages(|_| true).is_empty());
    let without_runc = missing_packages(|file| !file.ends_with("/runc"));
    assert_eq!(without_runc, ["runc"]);
    let without_cni = missing_packages(|file| !file.starts_with("/usr/lib/cni"));
    assert_eq!(without_cni, ["containernetworking-plugins"]);
}
