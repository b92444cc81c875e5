use fencedlease_crds::{FencedLease, FencedLeaseSpec};
use serde_json::{Value, json};

use super::*;
use crate::admit::lease;

fn spec(gates: &Value) -> FencedLeaseSpec {
    serde_json::from_value(json!({ "gates": gates })).unwrap()
}

fn settings(gates: &Value) -> Vec<GateSettings> {
    lease::resolve(&spec(gates)).unwrap().gates
}

fn problems(gates: &Value) -> Vec<String> {
    lease::resolve(&spec(gates)).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn the_sidecar_gets_each_gate_with_its_port() {
    for (url, expected) in [
        ("https://gate.shop.svc:8443", "https://gate.shop.svc:8443"),
        ("https://gate.shop.svc", "https://gate.shop.svc:443"),
        ("http://10.0.0.7", "http://10.0.0.7:80"),
        ("https://[fd00::7]", "https://[fd00::7]:443"),
        ("http://[fd00::7]:8080", "http://[fd00::7]:8080"),
    ] {
        let gates = settings(&json!([{"name": "reports", "url": url}]));
        let expected =
            GateSettings { name: "reports".to_owned(), url: expected.to_owned(), own_authorities: false };
        assert_eq!(gates, [expected]);
    }
    let own = settings(&json!([{"name": "reports", "url": "https://gate", "caRef": {"name": "gate-ca"}}]));
    assert!(own[0].own_authorities);
    assert_eq!(settings(&json!([])), []);
}

#[test]
fn what_is_no_url_of_scheme_host_and_port_is_refused() {
    for url in [
        "",
        "gate",
        "gate:8443",
        "https://",
        "https://gate/",
        "https://gate?x",
        "https://a@gate",
        "https://gate:0",
        "https://gate:65536",
        "ftp://gate",
        "HTTPS://gate",
        "https://gate#x",
        "https://[x]",
        "https://a b",
    ] {
        let said = problems(&json!([{"name": "reports", "url": url}]));
        assert_eq!(said.len(), 1, "{said:?}");
        let begins =
            format!("spec.gates[0].url is {url:?}; accepted: https://host or https://host:port. Write it");
        assert!(said[0].starts_with(&begins), "{said:?}");
    }
}

#[test]
fn names_are_labels_that_differ_and_there_are_eight_at_most() {
    let gate = |name: &str| json!({"name": name, "url": "https://gate"});
    let said = problems(&json!([gate("a"), gate("a")]));
    assert_eq!(
        said,
        [
            "spec.gates[1].name is \"a\", which another gate has; accepted: names that differ. Give each gate a name of its own."
        ]
    );
    for name in ["", "A", "a.b", "a/b", "..", &"a".repeat(64)] {
        let said = problems(&json!([gate(name)]));
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("spec.gates[0].name is"), "{said:?}");
    }
    let nine: Vec<Value> = (0..9).map(|number| gate(&format!("gate-{number}"))).collect();
    assert!(problems(&json!(nine))[0].starts_with("spec.gates is a list of 9; accepted: at most 8"));
}

#[test]
fn authorities_are_named_and_need_tls() {
    let gate = |url: &str, name: &str| json!([{"name": "a", "url": url, "caRef": {"name": name}}]);
    assert!(problems(&gate("https://gate", "CA"))[0].starts_with("spec.gates[0].caRef.name is \"CA\""));
    let said = problems(&gate("http://gate", "gate-ca"));
    assert!(said[0].starts_with("spec.gates[0].caRef is set with the url http://gate:80, which"), "{said:?}");
}

#[test]
fn a_gate_without_tls_is_warned_about_at_creation_and_at_changes() {
    let lease = |gates: Value| {
        let mut lease = FencedLease::new("report", spec(&gates));
        lease.metadata.namespace = Some("shop".to_owned());
        lease
    };
    let safe = lease(json!([{"name": "safe", "url": "https://gate"}]));
    let plain =
        lease(json!([{"name": "safe", "url": "https://gate"}, {"name": "plain", "url": "http://gate"}]));
    assert_eq!(lease::review(&safe, None, true).unwrap(), Vec::<String>::new());
    for old in [None, Some(&safe)] {
        let warnings = lease::review(&plain, old, true).unwrap();
        let about = warnings.iter().filter(|text| text.starts_with("spec.gates (plain).url is without TLS"));
        assert_eq!(about.count(), 1, "{warnings:?}");
    }
}
