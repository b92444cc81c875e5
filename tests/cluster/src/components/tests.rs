use std::path::PathBuf;

use super::*;

fn paths() -> Paths {
    Paths::new(PathBuf::from("/cache")).unwrap()
}

#[test]
fn what_ends_without_an_api_server_is_started_after_it() {
    let early: Vec<&str> = of(&paths(), Machine::Control)
        .into_iter()
        .filter(|component| component.phase == Phase::First)
        .map(|component| component.name)
        .collect();
    assert_eq!(early, ["etcd", "kube-apiserver"]);
}

#[test]
fn programs_come_from_the_cache_and_logs_have_the_machine_in_their_names() {
    for machine in [Machine::Control, Machine::Node(2)] {
        for component in of(&paths(), machine) {
            let start = component.start(&paths(), machine);
            assert_eq!(start.argv[0], format!("/cache/bin/{}", component.name));
            let log = format!("/cache/run/logs/{}-{}.log", machine.name(), component.name);
            assert_eq!(start.log, PathBuf::from(log));
        }
    }
}

#[test]
fn a_node_is_who_the_node_authorizer_expects() {
    let mut seen = Vec::new();
    subjects(Machine::Node(2), "node-2", |file, subject| {
        seen.push((file.to_owned(), subject.name.to_owned(), subject.group.map(str::to_owned)));
    });
    let expected = ("node-2".to_owned(), "system:node:node-2".to_owned(), Some("system:nodes".to_owned()));
    assert_eq!(seen, [expected]);
}

#[test]
fn the_api_server_serves_under_every_address_at_which_it_is_called() {
    let mut addresses = Vec::new();
    subjects(Machine::Control, "control", |file, subject| {
        if file == "api-server" {
            addresses.extend(subject.addresses.to_vec());
        }
    });
    for wanted in [IpAddr::V4(API_SERVICE), IpAddr::V4(Machine::Control.address())] {
        assert!(addresses.contains(&wanted), "{wanted} is not among {addresses:?}");
    }
}
