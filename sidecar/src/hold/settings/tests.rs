use serde_json::{Value, json};

use super::*;

fn document() -> Value {
    json!({
        "resource": {"installation": "i", "namespace": "shop", "name": "ledger"},
        "timing": {"ttlMs": 15000, "renewTimeoutMs": 1000, "gracePeriodMs": 2000, "killBudgetMs": 2000, "commitMarginMs": 2000},
        "maxHoldMs": 86_400_000,
        "maxHoldWarningMs": 60000,
        "redis": {"addresses": ["redis:6379"], "database": 0, "credentials": "none"},
        "containers": ["app"],
        "gates": [],
        "restartPolicy": "Always",
        "standby": {"mode": "warm", "ready": true},
        "afterLoss": "wait",
        "terminationGracePeriodMs": 30000,
        "leaseGeneration": 1,
        "adminPort": 7475,
        "logLevel": "info"
    })
}

fn error_with(field: &str, value: Value) -> String {
    let mut document = document();
    *document.pointer_mut(field).unwrap() = value;
    parse(&document.to_string()).unwrap_err().to_string()
}

#[test]
fn a_good_document_is_taken_whole() {
    let (settings, config) = parse(&document().to_string()).unwrap();
    assert_eq!(config.resource.to_string(), "shop/ledger");
    assert_eq!(config.termination_grace, Duration::from_secs(30));
    assert_eq!(settings.admin_port, 7475);
}

#[test]
fn each_error_names_its_field_and_what_to_do() {
    let cases = [
        ("/timing/ttlMs", json!(8000), "spec.ttl 8s is too short", "Set ttl to"),
        ("/containers", json!([]), "containers", "delete the pod"),
        ("/containers", json!(["a", "b", "a"]), "\"a\" twice", "delete the pod"),
        ("/redis/addresses", json!([]), "redis.addresses", "delete the pod"),
        ("/redis/addresses", json!(["a:1", "b:2"]), "2 entries", "single Redis"),
        ("/redis/addresses", json!(["redis"]), "\"redis\"", "host:port"),
        ("/redis/addresses", json!([":6379"]), "\":6379\"", "host:port"),
        ("/maxHoldWarningMs", json!(86_400_000), "maxHoldWarningMs", "spec.maxHoldWarning"),
        ("/gates", json!([{"name": "../x", "url": "https://gate:8443"}]), "\"../x\"", "such as reports"),
        ("/gates", json!([{"name": "", "url": "https://gate:8443"}]), "\"\"", "such as reports"),
        ("/gates", json!([{"name": "one", "url": "gate:8443"}]), "gate one", "https://HOST:PORT"),
        (
            "/gates",
            json!([{"name": "one", "url": "http://a"}, {"name": "one", "url": "http://b"}]),
            "two gates",
            "give each its own",
        ),
        ("/restartPolicy", json!("Sometimes"), "Sometimes", "delete the pod"),
    ];
    for (field, value, found, remedy) in cases {
        let text = error_with(field, value);
        assert!(text.contains(found) && text.contains(remedy), "{field}: {text}");
    }
}

#[test]
fn a_field_that_this_version_does_not_know_is_refused() {
    let mut document = document();
    document["sentinel"] = json!({});
    let text = parse(&document.to_string()).unwrap_err().to_string();
    assert!(text.contains("sentinel"), "{text}");
}
