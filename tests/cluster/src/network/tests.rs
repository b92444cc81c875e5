use super::*;

#[test]
fn every_machine_knows_the_way_to_the_pods_of_all_others_and_none_to_its_own() {
    let script = node_script(Machine::Node(2));
    assert!(script.contains("route add 198.18.1.0/24 via 198.51.100.11\n"), "{script}");
    assert!(!script.contains("198.18.2.0/24"), "{script}");
    assert!(script.contains("route add default via 198.51.100.10\n"), "{script}");
    for node in (1..=MAX_NODES).map(Machine::Node) {
        assert!(control_script().contains(&node.pod_subnet().unwrap()));
        assert!(host_script(7).contains(&node.pod_subnet().unwrap()));
    }
}

#[test]
fn no_packet_for_a_cluster_leaves_this_host_even_when_the_cluster_is_gone() {
    let script = host_script(7);
    for network in [MACHINE_NETWORK, POD_NETWORK, SERVICE_NETWORK] {
        assert!(script.contains(&format!("route add unreachable {network} metric 4294967294\n")), "{script}");
    }
    assert!(control_script().contains("route add unreachable default\n"));
}

#[test]
fn the_routes_of_a_cluster_are_told_from_those_of_others() {
    let routes = "default via 203.0.113.1 dev eth0\n\
                  198.51.100.0/24 dev fencedlease0 proto kernel scope link src 198.51.100.1\n\
                  unreachable 198.19.0.0/16 metric 4294967294\n\
                  198.180.1.0/24 dev eth0\n";
    let ours = ours(routes);
    assert_eq!(ours.len(), 2, "{ours:?}");
    assert_eq!(foreign(&ours), None);
    let with_other = [ours, vec!["198.18.7.0/24 dev wg0".to_owned()]].concat();
    assert_eq!(foreign(&with_other), Some(&"198.18.7.0/24 dev wg0".to_owned()));
}
