use super::*;

fn parse(more: &[&str]) -> Result<Args, clap::Error> {
    let all = ["fencedlease-operator", "--namespace", "system", "--sidecar-image", "sidecar:1"];
    Args::try_parse_from(all.iter().chain(more))
}

#[test]
fn the_endpoint_is_the_service_unless_it_is_said_otherwise() {
    let args = parse(&[]).unwrap();
    assert_eq!(args.endpoint_url(), "https://fencedlease-operator.system.svc:8443");
    let names = args.certificate_names();
    assert_eq!(names[0], "fencedlease-operator.system.svc");
    let args = parse(&["--endpoint-url", "https://[::1]:18443"]).unwrap();
    assert_eq!(args.certificate_names().last().unwrap(), "::1");
    let args = parse(&["--endpoint-url", "https://fencedlease-operator.system.svc:8443"]).unwrap();
    assert_eq!(args.certificate_names(), names, "no name twice");
}

#[test]
fn the_installation_has_what_the_flags_say() {
    let args = parse(&[
        "--redis-addresses",
        "redis.system.svc:6379",
        "--redis-secret",
        "redis",
        "--sidecar-pull-policy",
        "Never",
        "--sidecar-resources",
        r#"{"limits":{"memory":"64Mi"}}"#,
    ]);
    let installation = args.unwrap().installation().unwrap();
    let redis = installation.redis.unwrap();
    assert_eq!(redis.addresses, ["redis.system.svc:6379"]);
    assert!(redis.has_credentials);
    assert_eq!(installation.sidecar.pull_policy, "Never");
    assert_eq!(installation.sidecar.resources.limits["memory"], "64Mi");
}

#[test]
fn an_empty_redis_is_none() {
    let args = parse(&["--redis-addresses", "", "--redis-secret", ""]).unwrap();
    assert_eq!(args.installation().unwrap().redis, None);
    assert_eq!(args.redis_secret(), None);
}

#[test]
fn wrong_values_are_named_with_what_is_accepted() {
    for address in ["redis://redis:6379", "redis", "a:1,b:2"] {
        let error = parse(&["--redis-addresses", address]).unwrap().installation().unwrap_err();
        assert!(error.to_string().contains("exactly one host:port"), "{error}");
    }
    let error = parse(&["--sidecar-resources", "much"]).unwrap().installation().unwrap_err();
    assert!(error.to_string().contains("\"much\""), "{error}");
    let error = parse(&["--sidecar-pull-policy", "Sometimes"]).unwrap_err();
    assert!(error.to_string().contains("IfNotPresent"), "{error}");
}
