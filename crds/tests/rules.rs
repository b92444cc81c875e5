//! What the API server accepts and refuses, and in which words.
#![allow(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use fencedlease_crds::FencedLease;
use kube::CustomResourceExt as _;
use kube::core::cel::Validator;
use serde_json::{Value, json};

/// The messages about this spec, defaults filled in first as the API server does.
fn messages(spec: &Value) -> Vec<String> {
    messages_about("ledger", spec)
}

fn messages_about(name: &str, spec: &Value) -> Vec<String> {
    let crd = FencedLease::crd();
    let schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap()["openAPIV3Schema"].clone();
    let object = json!({
        "apiVersion": "fencedlease.dev/v1alpha1",
        "kind": "FencedLease",
        "metadata": { "name": name, "namespace": "shop" },
        "spec": spec,
    });
    match Validator::new().validate_with_defaults(&schema, &object, None) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.into_iter().map(|error| error.message.clone()).collect(),
    }
}

#[test]
fn an_empty_spec_is_accepted_and_gets_every_static_default() {
    assert_eq!(messages(&json!({})), Vec::<String>::new());
    let crd = FencedLease::crd();
    let schema = serde_json::to_value(&crd.spec.versions[0].schema).unwrap()["openAPIV3Schema"].clone();
    let filled = kube::core::cel::apply_defaults(&schema["properties"]["spec"], &json!({}));
    assert_eq!(
        filled,
        json!({
            "ttl": "15s", "renewTimeout": "1s", "gracePeriod": "2s", "killBudget": "2s", "commitMargin": "2s",
            "maxHold": "24h", "maxHoldWarning": "1m", "standby": { "mode": "Auto", "readiness": "Auto" },
        })
    );
    assert_eq!(
        filled,
        serde_json::to_value(fencedlease_crds::FencedLeaseSpec::default()).unwrap(),
        "the schema's defaults are the Rust type's"
    );
}

#[test]
fn a_ttl_too_short_to_kill_in_time_is_refused_with_the_sum_and_the_remedies() {
    assert_eq!(
        messages(&json!({ "ttl": "8s" })),
        [
            "spec.ttl 8s is too short: renewInterval 2.666s + renewTimeout 1s + 3 × stall 0.5s + gracePeriod 2s + \
          killBudget 2s = 9.166s must be below ttl/1.2 − 0.5s = 6.166s. Set ttl to 14s or more."
        ]
    );
    assert_eq!(
        messages(&json!({ "ttl": "20s", "gracePeriod": "10s" })),
        [
            "spec.ttl 20s is too short: renewInterval 6.666s + renewTimeout 1s + 3 × stall 0.5s + gracePeriod 10s + \
          killBudget 2s = 21.166s must be below ttl/1.2 − 0.5s = 16.166s. Set ttl to 30.001s or more, or shorten \
          gracePeriod to 5s or less."
        ]
    );
}

#[test]
fn a_commit_margin_too_long_is_refused_with_the_sum_and_the_remedies() {
    assert_eq!(
        messages(&json!({ "commitMargin": "5s" })),
        [
            "spec.commitMargin 5s is too long: renewInterval 5s + renewTimeout 1s + stall 0.5s + commitMargin 5s = \
          11.5s must be below the 9.5s from a renewal to the kill instant. Set ttl to 19s or more, or shorten \
          commitMargin to 2.999s or less."
        ]
    );
}

#[test]
fn the_ttl_and_the_other_fields_that_a_message_names_are_accepted() {
    for spec in [
        json!({ "ttl": "14s" }),
        json!({ "ttl": "20s", "gracePeriod": "5s" }),
        json!({ "ttl": "30s1ms", "gracePeriod": "10s" }),
        json!({ "commitMargin": "2s999ms" }),
        json!({ "ttl": "19s", "commitMargin": "5s" }),
        json!({ "ttl": "1m", "renewInterval": "5s", "gracePeriod": "30s" }),
    ] {
        assert_eq!(messages(&spec), Vec::<String>::new(), "{spec}");
    }
    for spec in [
        json!({ "ttl": "13s999ms" }),
        json!({ "ttl": "20s", "gracePeriod": "5s1ms" }),
        json!({ "commitMargin": "3s" }),
        json!({ "ttl": "18s999ms", "commitMargin": "5s" }),
    ] {
        assert_eq!(messages(&spec).len(), 1, "{spec}");
    }
}

#[test]
fn a_set_renew_interval_changes_the_ttl_that_is_asked_for() {
    assert_eq!(
        messages(&json!({ "ttl": "15s", "renewInterval": "5s900ms", "gracePeriod": "3s" })),
        [
            "spec.ttl 15s is too short: renewInterval 5.9s + renewTimeout 1s + 3 × stall 0.5s + gracePeriod 3s + \
          killBudget 2s = 13.4s must be below ttl/1.2 − 0.5s = 12s. Set ttl to 16.681s or more, or shorten \
          gracePeriod to 1.599s or less."
        ]
    );
    assert_eq!(
        messages(&json!({ "ttl": "15s", "renewInterval": "6s" })),
        [
            "spec.ttl 15s is too short: renewInterval 6s + renewTimeout 1s + 3 × stall 0.5s + gracePeriod 2s + \
          killBudget 2s = 12.5s must be below ttl/1.2 − 0.5s = 12s. Set ttl to 15.601s or more."
        ],
        "a shorter gracePeriod alone would leave rule (C) broken"
    );
}

#[test]
fn a_text_that_is_no_duration_gets_one_message_with_examples() {
    for text in ["15", "15 s", "-5s", "3d", "1.5s", "", "100000s", "1s1s1s1s1s"] {
        assert_eq!(
            messages(&json!({ "ttl": text })),
            [format!(
                "spec.ttl \"{text}\" is not a duration: write one to four numbers of at most five digits, each \
                 with h, m, s or ms, such as 15s, 500ms or 1m30s"
            )]
        );
    }
}

#[test]
fn each_duration_is_held_to_its_range() {
    for (field, too_little, too_much, range) in [
        ("ttl", "4s999ms", "10m1ms", "5s and 600s"),
        ("renewInterval", "99ms", "5m1ms", "0.1s and 300s"),
        ("renewTimeout", "49ms", "1m1ms", "0.05s and 60s"),
        ("killBudget", "199ms", "5m1ms", "0.2s and 300s"),
        ("maxHold", "59s999ms", "720h1ms", "1m and 720h"),
    ] {
        let range = format!("it must lie between {range}");
        for text in [too_little, too_much] {
            let all = messages(&json!({ field: text }));
            let about_range = all.iter().filter(|message| {
                message.starts_with(&format!("spec.{field} is")) && message.ends_with(&range)
            });
            assert_eq!(about_range.count(), 1, "{field}: {text}: {all:?}");
        }
    }
    for (field, too_much, most) in [
        ("gracePeriod", "5m1ms", "300s"),
        ("commitMargin", "5m1ms", "300s"),
        ("maxHoldWarning", "1h1ms", "1h"),
    ] {
        let all = messages(&json!({ field: too_much }));
        let range = format!("it must lie between 0s and {most}");
        assert!(all.iter().any(|message| message.ends_with(&range)), "{field}: {all:?}");
    }
}

#[test]
fn a_warning_that_takes_more_than_half_of_max_hold_is_refused() {
    assert_eq!(
        messages(&json!({ "maxHold": "10m", "maxHoldWarning": "6m" })),
        [
            "spec.maxHoldWarning 360s is too long: it must be at most half of maxHold 600s. Set it to 300s or less, or \
          raise maxHold."
        ]
    );
    assert_eq!(messages(&json!({ "maxHold": "10m", "maxHoldWarning": "5m" })), Vec::<String>::new());
}

#[test]
fn a_cold_standby_cannot_be_asked_to_be_ready() {
    let refused = messages(&json!({ "standby": { "mode": "Cold", "readiness": "Ready" } }));
    assert_eq!(refused.len(), 1);
    assert!(refused[0].starts_with("spec.standby.readiness is Ready with mode Cold:"), "{refused:?}");
    for (mode, readiness) in [("Cold", "NotReady"), ("Cold", "Auto"), ("Auto", "Ready"), ("Warm", "Ready")] {
        let standby = json!({ "standby": { "mode": mode, "readiness": readiness } });
        assert_eq!(messages(&standby), Vec::<String>::new(), "{standby}");
    }
}

#[test]
fn an_address_is_host_and_port() {
    for address in ["redis.shop.svc:6379", "10.0.0.7:1", "r:65535", "[fd00::7]:6379", "Redis-0.redis:6379"] {
        assert_eq!(
            messages(&json!({ "redis": { "addresses": [address] } })),
            Vec::<String>::new(),
            "{address}"
        );
    }
    for address in [
        "redis",
        "redis:",
        ":6379",
        "redis:0",
        "redis:65536",
        "redis:6379/0",
        "redis://redis:6379",
        "a b:1",
        "a:1\n",
    ] {
        let all = messages(&json!({ "redis": { "addresses": [address] } }));
        assert_eq!(
            all,
            [format!(
                "spec.redis.addresses[0] is \"{address}\": write host:port with a port between 1 and 65535, without \
                 a scheme, such as redis.shop.svc:6379"
            )]
        );
    }
}

#[test]
fn a_secret_reference_names_something_that_can_exist() {
    let spec =
        |name: &str| json!({ "redis": { "addresses": ["r:1"], "auth": { "secretRef": { "name": name } } } });
    assert_eq!(messages(&spec("redis-shop.v2")), Vec::<String>::new());
    let refused = messages(&spec("Redis_Shop"));
    assert_eq!(refused.len(), 1);
    assert!(refused[0].starts_with("spec.redis.auth.secretRef.name is \"Redis_Shop\": write"), "{refused:?}");
}

#[test]
fn references_of_tls_name_something_that_can_exist() {
    let spec = |tls: Value| json!({ "redis": { "addresses": ["r:1"], "tls": tls } });
    assert_eq!(messages(&spec(json!({}))), Vec::<String>::new());
    let good = json!({ "caRef": { "kind": "ConfigMap", "name": "ca", "key": "ca.crt" } });
    assert_eq!(messages(&spec(good)), Vec::<String>::new());
    let refused =
        messages(&spec(json!({ "caRef": { "kind": "Secret", "name": "CA", "key": "ca.crt" } }))).join("; ");
    assert!(refused.contains("spec.redis.tls.caRef.name is \"CA\""), "{refused}");
    let refused = messages(&spec(json!({ "clientCertSecretRef": { "name": "a/b" } }))).join("; ");
    assert!(refused.contains("spec.redis.tls.clientCertSecretRef.name is \"a/b\""), "{refused}");
}

fn gates(all: &Value) -> Vec<String> {
    messages(&json!({ "gates": all }))
}

#[test]
fn a_gate_is_a_name_and_a_url_of_scheme_host_and_port() {
    for url in
        ["https://gate.shop.svc:8443", "http://10.0.0.7", "https://[fd00::7]:1", "https://Gate-0.gate:65535"]
    {
        assert_eq!(gates(&json!([{ "name": "reports", "url": url }])), Vec::<String>::new(), "{url}");
    }
    for url in [
        "gate.shop.svc:8443",
        "https://",
        "https://gate/",
        "https://gate/reports",
        "https://gate?x=1",
        "https://me@gate",
        "https://gate:0",
        "https://gate:65536",
        "ftp://gate",
        "HTTPS://gate",
        "https://gate:8443\n",
        "",
    ] {
        assert_eq!(
            gates(&json!([{ "name": "reports", "url": url }])),
            [format!(
                "spec.gates (reports).url is \"{url}\": write https://host or https://host:port, without user, path \
                 or query, such as https://gate.shop.svc:8443"
            )]
        );
    }
    for name in ["Reports", "a.b", "-a", "a_b", "a/b"] {
        let refused = gates(&json!([{ "name": name, "url": "https://gate" }]));
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert!(
            refused[0].starts_with(&format!("spec.gates.name is \"{name}\": write a-z, 0-9")),
            "{refused:?}"
        );
    }
}

#[test]
fn gates_have_names_of_their_own() {
    let gate = |name: &str| json!({ "name": name, "url": "https://gate" });
    assert_eq!(gates(&json!([gate("a"), gate("b")])), Vec::<String>::new());
    assert_eq!(
        gates(&json!([gate("a"), gate("b"), gate("b")])),
        ["spec.gates has two gates with the name \"b\": give each a name of its own"]
    );
}

#[test]
fn authorities_of_a_gate_are_an_object_that_can_exist_and_need_tls() {
    let gate = |url: &str, name: &str| json!([{ "name": "reports", "url": url, "caRef": { "name": name } }]);
    assert_eq!(gates(&gate("https://gate", "gate-ca")), Vec::<String>::new());
    assert_eq!(
        gates(&gate("https://gate", "CA")),
        [
            "spec.gates (reports).caRef.name is \"CA\": write the name of a ConfigMap or Secret of this namespace: a-z, \
          0-9, \"-\" and \".\", with a letter or digit at both ends"
        ]
    );
    assert_eq!(
        gates(&gate("http://gate", "gate-ca")),
        [
            "spec.gates (reports).caRef is set with the url \"http://gate\", which is without TLS: write https://, or \
          remove caRef"
        ]
    );
}

#[test]
fn a_name_too_long_for_a_label_is_refused() {
    assert_eq!(messages_about(&"a".repeat(63), &json!({})), Vec::<String>::new());
    assert_eq!(
        messages_about(&"a".repeat(64), &json!({})),
        ["metadata.name has 64 characters: use at most 63, since pods carry the name as a label"]
    );
}
