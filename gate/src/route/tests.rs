use super::*;

fn guard(resource: &str, prefix: &str) -> Guard {
    Guard { resource: resource.parse().unwrap(), prefix: prefix.to_owned() }
}

fn rules(reads: Reads) -> Rules {
    Rules::new(vec![guard("shop/report", "/reports/"), guard("shop/old", "/reports/old/")], reads)
}

fn routed(rules: &Rules, method: &Method, path: &str) -> Result<Option<String>, Unroutable> {
    match rules.route(method, &path.parse().unwrap(), &HeaderMap::new(), false) {
        Route::Checked(resource) => Ok(Some(resource.to_string())),
        Route::Open => Ok(None),
        Route::Raise => Ok(Some("raise".to_owned())),
        Route::Unroutable(problem) => Err(problem),
    }
}

#[test]
fn the_longest_prefix_names_the_resource() {
    let rules = rules(Reads::Open);
    for (path, resource) in [
        ("/reports/a", "shop/report"),
        ("/reports/old/a", "shop/old"),
        ("/reports/older", "shop/report"),
        ("/reports", "shop/report"),
        ("/rep%6Frts/a?b=../c", "shop/report"),
        ("/reports/%6fld/a", "shop/old"),
    ] {
        assert_eq!(routed(&rules, &Method::PUT, path), Ok(Some(resource.to_owned())), "{path}");
    }
}

#[test]
fn what_can_be_read_in_two_ways_is_not_passed_on() {
    let rules = rules(Reads::Open);
    for path in [
        "/reports/../x",
        "/reports/%2e%2e/x",
        "/reports/.%2E/x",
        "/reports/..;a=b/x",
        "/reports//x",
        "/reports/%2f../x",
        "/reports/%5c..%5cx",
        "/reports/%252e%252e/x",
        "/reports/%zz",
        "/reports/%2",
        "/reports/%ff",
        "/reports/%00",
        "/./reports/x",
    ] {
        assert_eq!(routed(&rules, &Method::PUT, path), Err(Unroutable::UnclearPath), "{path}");
    }
    assert_eq!(routed(&rules, &Method::PUT, "/elsewhere"), Err(Unroutable::NotGuarded));
    assert_eq!(routed(&rules, &Method::GET, "/elsewhere"), Err(Unroutable::NotGuarded));
    let whole = Rules::new(vec![guard("shop/report", "/")], Reads::Open);
    assert_eq!(routed(&whole, &Method::PUT, "/a/../b//c"), Ok(Some("shop/report".to_owned())));
}

#[test]
fn reads_are_open_or_fresh_by_rule_and_writes_are_always_checked() {
    for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
        assert_eq!(routed(&rules(Reads::Open), &method, "/reports/a"), Ok(None));
        assert!(matches!(routed(&rules(Reads::Fresh), &method, "/reports/a"), Ok(Some(_))));
    }
    for name in ["PUT", "POST", "DELETE", "PATCH", "MKCOL", "MOVE", "PROPPATCH", "BREW"] {
        let method = Method::from_bytes(name.as_bytes()).unwrap();
        assert!(matches!(routed(&rules(Reads::Open), &method, "/reports/a"), Ok(Some(_))), "{name}");
    }
    assert_eq!(routed(&rules(Reads::Open), &Method::TRACE, "/reports/a"), Err(Unroutable::Method));
}

#[test]
fn a_segments_parameters_lead_into_no_other_resource() {
    let rules = rules(Reads::Open);
    for path in
        ["/reports/old;x=1/a", "/reports/old%3bx/a", "/reports/;x/old/a", "/;/reports/a", "/reports;x/a"]
    {
        assert_eq!(routed(&rules, &Method::PUT, path), Err(Unroutable::UnclearPath), "{path}");
    }
    for (path, resource) in [("/reports/a;x=1", "shop/report"), ("/reports/old/a;x/b;y", "shop/old")] {
        assert_eq!(routed(&rules, &Method::PUT, path), Ok(Some(resource.to_owned())), "{path}");
    }
}

#[test]
fn a_read_that_shows_a_ticket_or_may_mean_a_write_is_checked() {
    let rules = rules(Reads::Open);
    let uri: Uri = "/reports/a".parse().unwrap();
    assert!(matches!(rules.route(&Method::GET, &uri, &HeaderMap::new(), true), Route::Checked(_)));
    let underscores = HeaderName::from_static("x_http_method_override");
    for name in OVERRIDES.into_iter().chain([underscores]) {
        let headers = HeaderMap::from_iter([(name, HeaderValue::from_static("DELETE"))]);
        assert!(matches!(rules.route(&Method::GET, &uri, &headers, false), Route::Checked(_)));
    }
}

#[test]
fn nothing_is_moved_out_of_its_resource() {
    let rules = rules(Reads::Open);
    let method = Method::from_bytes(b"MOVE").unwrap();
    let uri: Uri = "/reports/a".parse().unwrap();
    for (destination, is_right) in [
        ("/reports/b", true),
        ("http://gate:8080/reports/b", true),
        ("/reports/old/b", false),
        ("http://gate:8080/elsewhere", false),
        ("http://gate:8080/reports/../x", false),
        ("not a uri", false),
    ] {
        let headers = HeaderMap::from_iter([(DESTINATION, HeaderValue::from_str(destination).unwrap())]);
        let route = rules.route(&method, &uri, &headers, true);
        assert_eq!(matches!(route, Route::Checked(_)), is_right, "{destination}: {route:?}");
    }
}

#[test]
fn no_header_gives_a_request_a_path_of_another_resource() {
    let rules = rules(Reads::Open);
    let uri: Uri = "/reports/a".parse().unwrap();
    let underscores = HeaderName::from_static("x_rewrite_url");
    for name in PATHS.into_iter().chain([underscores]) {
        for (path, is_right) in [
            ("/reports/a?b=c", true),
            ("https://gate:8443/reports/a", true),
            ("/reports/old/a", false),
            ("/elsewhere", false),
            ("/reports/%2e%2e/x", false),
            ("reports", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(name.clone(), HeaderValue::from_str(path).unwrap())]);
            for (method, has_ticket) in [(Method::PUT, true), (Method::GET, false)] {
                let route = rules.route(&method, &uri, &headers, has_ticket);
                let is_passed = route != Route::Unroutable(Unroutable::OtherPath);
                assert_eq!(is_passed, is_right, "{method} {name}: {path}: {route:?}");
            }
        }
        let mut twice = HeaderMap::from_iter([(name.clone(), HeaderValue::from_static("/reports/a"))]);
        twice.append(name, HeaderValue::from_static("/reports/old/a"));
        assert_eq!(rules.route(&Method::PUT, &uri, &twice, true), Route::Unroutable(Unroutable::OtherPath));
    }
}

#[test]
fn our_own_paths_never_reach_the_backend() {
    let rules = Rules::new(vec![guard("shop/report", "/")], Reads::Open);
    assert_eq!(routed(&rules, &Method::POST, RAISE_PATH), Ok(Some("raise".to_owned())));
    assert_eq!(routed(&rules, &Method::GET, RAISE_PATH), Err(Unroutable::NotFound));
    assert_eq!(routed(&rules, &Method::POST, "/.fencedlease/other"), Err(Unroutable::NotFound));
}
