use fencedlease_crds::{
    FencedLease, FencedLeaseSpec, FencedLeaseStatus, Phase, RedisAuth, RedisSpec, SecretReference,
    StandbyMode, StandbyReadiness,
};
use proptest::prelude::*;

use super::{is_address, resolve, review};

fn problems(change: impl FnOnce(&mut FencedLeaseSpec)) -> String {
    let mut spec = FencedLeaseSpec::default();
    change(&mut spec);
    let problems = resolve(&spec).expect_err("this spec must be refused");
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

fn redis(address: &str) -> RedisSpec {
    RedisSpec { addresses: vec![address.to_owned()], database: 0, auth: None, tls: None }
}

fn lease(redis: Option<RedisSpec>) -> FencedLease {
    let mut lease = FencedLease::new("report", FencedLeaseSpec { redis, ..FencedLeaseSpec::default() });
    lease.metadata.namespace = Some("shop".to_owned());
    lease
}

#[test]
fn the_defaults_can_be_used() {
    let resolved = resolve(&FencedLeaseSpec::default()).unwrap();
    assert_eq!(resolved.settings.ttl_ms, 15_000);
    assert_eq!(resolved.settings.renew_interval_ms, None);
    assert_eq!(resolved.timing.renew_interval().as_millis(), 5_000);
    assert_eq!((resolved.max_hold_ms, resolved.max_hold_warning_ms), (86_400_000, 60_000));
}

#[test]
fn each_wrong_field_is_named_with_its_value_and_what_is_accepted() {
    let text = problems(|spec| spec.ttl = "8s".to_owned());
    assert!(text.contains("spec.ttl 8s is too short") && text.contains("Set ttl to 14s or more"), "{text}");
    let text = problems(|spec| spec.renew_timeout = "soon".to_owned());
    assert!(text.contains("spec.renewTimeout: \"soon\" is not a duration"), "{text}");
    let text = problems(|spec| spec.max_hold = "721h".to_owned());
    assert!(text.contains("spec.maxHold is 721h; accepted: 1m to 720h"), "{text}");
    let text = problems(|spec| spec.max_hold = "1m".to_owned());
    assert!(text.contains("spec.maxHoldWarning is 1m; accepted: 0s to 30s"), "{text}");
    let text = problems(|spec| {
        spec.standby.mode = StandbyMode::Cold;
        spec.standby.readiness = StandbyReadiness::Ready;
    });
    assert!(text.contains("spec.standby.readiness is Ready with spec.standby.mode Cold"), "{text}");
    let text = problems(|spec| spec.redis = Some(RedisSpec { database: 70_000, ..redis("r:1") }));
    assert!(text.contains("spec.redis.database is 70000; accepted: 0 to 65535"), "{text}");
    let text = problems(|spec| spec.redis = Some(RedisSpec { addresses: Vec::new(), ..redis("") }));
    assert!(text.contains("spec.redis.addresses is a list of 0; accepted: exactly one host:port"), "{text}");
    let secret_ref = SecretReference { name: "../token".to_owned() };
    let text = problems(|spec| {
        spec.redis = Some(RedisSpec { auth: Some(RedisAuth { secret_ref }), ..redis("r:1") });
    });
    assert!(text.contains("spec.redis.auth.secretRef.name is \"../token\""), "{text}");
    let text = problems(|spec| {
        let tls = serde_json::json!({"caRef": {"name": "CA"}, "clientCertSecretRef": {"name": "a/b"}});
        spec.redis = Some(RedisSpec { tls: serde_json::from_value(tls).unwrap(), ..redis("r:1") });
    });
    assert!(text.contains("spec.redis.tls.caRef.name is \"CA\""), "{text}");
    assert!(text.contains("spec.redis.tls.clientCertSecretRef.name is \"a/b\""), "{text}");
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let text = problems(|spec| {
        spec.ttl = "x".to_owned();
        spec.kill_budget = "y".to_owned();
        spec.max_hold = "z".to_owned();
        spec.redis = Some(redis("redis://r:6379"));
    });
    assert_eq!(text.lines().count(), 4, "{text}");
}

#[test]
fn an_address_is_host_and_port_and_nothing_else() {
    for address in ["redis:6379", "redis.shop.svc:6379", "10.0.0.1:1", "[::1]:6379", "Redis.Shop:65535"] {
        assert!(is_address(address), "{address}");
    }
    for address in [
        "",
        "redis",
        "redis:",
        ":6379",
        "redis:0",
        "redis:65536",
        "redis://r:6379",
        "u:p@r:6379",
        "r:6379/0",
        "::1:6379",
        "[x]:1",
        "r:+1",
        "a b:1",
        "$(X):1",
    ] {
        assert!(!is_address(address), "{address}");
    }
}

#[test]
fn without_any_redis_both_ways_to_mend_it_are_named() {
    let text = review(&lease(None), None, false).unwrap_err().to_string();
    assert!(text.starts_with("FencedLease shop/report cannot be used: spec.redis is unset"), "{text}");
    assert!(text.contains("Either set spec.redis.addresses") && text.contains("helm upgrade"), "{text}");
    assert_eq!(review(&lease(None), None, true), Ok(vec![]));
    assert_eq!(review(&lease(Some(redis("r:1"))), None, false), Ok(vec![]));
}

#[test]
fn an_object_that_goes_or_whose_spec_stays_is_never_held_up() {
    let mut bad = lease(None);
    bad.spec.ttl = "1s".to_owned();
    assert!(review(&bad, None, true).is_err());
    assert_eq!(review(&bad, Some(&bad.clone()), false), Ok(vec![]));
    bad.metadata.deletion_timestamp = Some(serde_json::from_str("\"2026-01-01T00:00:00Z\"").unwrap());
    assert_eq!(review(&bad, Some(&lease(None)), false), Ok(vec![]));
}

#[test]
fn redis_moves_only_while_no_pod_uses_the_lease() {
    let new = lease(Some(redis("new:1")));
    let mut old = lease(Some(redis("old:1")));
    let status = |phase, standbys| {
        Some(FencedLeaseStatus { phase: Some(phase), standbys, ..FencedLeaseStatus::default() })
    };
    old.status = status(Phase::Waiting, 2);
    let text = review(&new, Some(&old), true).unwrap_err().to_string();
    assert!(text.contains("changed while 2 pods wait for the lease"), "{text}");
    assert!(text.contains("Scale the workloads that use it to 0"), "{text}");
    old.status = status(Phase::Idle, 0);
    assert_eq!(review(&new, Some(&old), true).unwrap().len(), 1);
    old.status = None;
    assert!(review(&new, Some(&old), true).is_ok());
}

proptest! {
    #[test]
    fn any_text_in_any_field_is_answered_without_a_panic(
        texts in prop::collection::vec("[0-9hms.-]{0,8}|.{0,30}", 9), database in any::<i64>()
    ) {
        let text = |index: usize| texts[index].clone();
        let spec = FencedLeaseSpec {
            ttl: text(0),
            renew_interval: Some(text(1)),
            renew_timeout: text(2),
            grace_period: text(3),
            kill_budget: text(4),
            commit_margin: text(5),
            max_hold: text(6),
            max_hold_warning: text(7),
            redis: Some(RedisSpec { database, ..redis(&text(8)) }),
            ..FencedLeaseSpec::default()
        };
        if let Err(problems) = resolve(&spec) {
            prop_assert!(!problems.is_empty());
        }
    }
}
