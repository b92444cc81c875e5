use super::*;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn two_kubelets_share_neither_cgroups_nor_addresses() {
    let text = |node| parsed(&kubelet(Machine::Node(node), "/pki", "/resolv", "/plugins"));
    let (one, two) = (text(1), text(2));
    assert_eq!(one["cgroupRoot"], "/fencedlease/node-1");
    assert_eq!(two["cgroupRoot"], "/fencedlease/node-2");
    assert_eq!(two["address"], "198.51.100.12");
    assert_eq!(two["tlsCertFile"], "/pki/node-2.crt");
    assert_eq!(one["failCgroupV1"], false);
}

#[test]
fn a_kubeconfig_needs_no_other_file() {
    let identity = Identity { certificate: "CERT".to_owned(), key: "KEY".to_owned() };
    let config = parsed(&kubeconfig("AUTHORITY", &identity));
    assert_eq!(config["clusters"][0]["cluster"]["certificate-authority-data"], "QVVUSE9SSVRZ");
    assert_eq!(config["users"][0]["user"]["client-key-data"], "S0VZ");
    assert_eq!(config["clusters"][0]["cluster"]["server"], "https://198.51.100.10:6443");
    assert_eq!(config["current-context"], config["contexts"][0]["name"]);
}

#[test]
fn each_node_has_a_pod_subnet_of_its_own() {
    for node in [1, 4] {
        let network = parsed(&cni(Machine::Node(node)));
        let subnet = &network["plugins"][0]["ipam"]["ranges"][0][0]["subnet"];
        assert_eq!(*subnet, format!("198.18.{node}.0/24"));
    }
}

#[test]
fn containerd_takes_the_pause_image_that_is_made_here_and_asks_for_no_right_that_root_lacks() {
    let text = containerd("/cni");
    assert!(text.contains("sandbox = \"fencedlease.dev/pause:local\""), "{text}");
    assert!(text.contains("restrict_oom_score_adj = true"), "{text}");
    assert!(text.contains("conf_dir = \"/cni\""), "{text}");
}

#[test]
fn dns_serves_the_cluster_and_says_at_once_that_other_names_do_not_exist() {
    let text = coredns("/admin.kubeconfig");
    assert!(text.contains("bind 198.51.100.10\n"), "{text}");
    assert!(text.contains("kubernetes cluster.local 19.198.in-addr.arpa"), "{text}");
    assert!(text.contains("rcode NXDOMAIN"), "{text}");
    assert_eq!(text.matches('{').count(), text.matches('}').count());
}
