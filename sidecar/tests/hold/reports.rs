//! The operator hears what happened, gives the credentials, and is not needed to keep a lease.

use std::time::Duration;

use fencedlease_faults::RedisServer;
use rustix::process::Signal;
use serde_json::json;

use crate::support::eventually;
use crate::support::operator::Operator;
use crate::support::pod::{Pod, pass};

const PASSWORD: &str = "correct horse";
const WORK: &str = "exec sleep 1000";

#[test]
fn the_operator_gives_the_credentials_and_hears_of_acquisition_standing_and_end() {
    let redis = RedisServer::with_args(&["--requirepass", PASSWORD]).unwrap();
    let operator = Operator::start(PASSWORD);
    let mut pod = Pod::start("one", redis.address(), |settings| {
        settings["redis"]["credentials"] = "endpoint".into();
        settings["endpoint"] = json!({"url": operator.url, "caPem": operator.ca_pem});
    });
    let _container = pod.run("app", WORK);
    let lease = pod.until("ACTIVE");
    let acquired = operator.report("acquired");
    assert_eq!(acquired.token, "Bearer a token for the endpoint");
    assert_eq!((&acquired.body["namespace"], &acquired.body["podName"]), (&"shop".into(), &"one".into()));
    assert_eq!(
        (&acquired.body["fact"]["fence"], &acquired.body["fact"]["holding"]),
        (&1.into(), &lease["holding"])
    );
    operator.report("standing");
    let asked = |request: &crate::support::operator::Request| request.line.starts_with("GET /v1/credentials");
    let line = operator.requests().into_iter().find(asked).unwrap().line;
    assert_eq!(line, "GET /v1/credentials?namespace=shop&lease=report HTTP/1.1");
    pod.signal(Signal::TERM);
    assert_eq!(pod.exit_code(), Some(0));
    let released = operator.report("released");
    assert_eq!(released.body["fact"]["reason"], "PodDeleted");
    operator.report("gone");
    let sequences: Vec<u64> =
        operator.requests().iter().filter_map(|request| request.body["sequence"].as_u64()).collect();
    assert!(sequences.is_sorted(), "reports come in order: {sequences:?}");
}

#[test]
fn an_operator_that_is_away_costs_nothing_but_reports() {
    let redis = RedisServer::start().unwrap();
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = nowhere.local_addr().unwrap().port();
    drop(nowhere);
    let authority = Operator::start(PASSWORD);
    let mut pod = Pod::start("one", redis.address(), |settings| {
        settings["endpoint"] = json!({"url": format!("https://localhost:{port}"), "caPem": authority.ca_pem});
    });
    let _container = pod.run("app", WORK);
    pod.until("ACTIVE");
    pass(Duration::from_secs(2));
    assert_eq!(pod.lease()["state"], "ACTIVE", "it is renewed all the while");
    assert!(pod.metric("fencedlease_renewals_total{result=\"confirmed\"}") > 3.0);
    pod.signal(Signal::TERM);
    assert_eq!(pod.exit_code(), Some(0));
}

#[test]
fn a_password_that_redis_refuses_is_asked_for_again() {
    let redis = RedisServer::with_args(&["--requirepass", PASSWORD]).unwrap();
    let operator = Operator::start("outdated");
    let pod = Pod::start("one", redis.address(), |settings| {
        settings["redis"]["credentials"] = "endpoint".into();
        settings["endpoint"] = json!({"url": operator.url, "caPem": operator.ca_pem});
    });
    let _container = pod.run("app", WORK);
    eventually("a refusal", || pod.lease()["message"].as_str()?.contains("WRONGPASS").then_some(()));
    operator.set_password(PASSWORD);
    assert_eq!(pod.until("ACTIVE")["fence"], 1);
}

#[test]
fn a_sidecar_that_restarts_while_the_operator_is_away_knows_the_password() {
    let redis = RedisServer::with_args(&["--requirepass", PASSWORD]).unwrap();
    let operator = Operator::start(PASSWORD);
    let mut pod = Pod::start("one", redis.address(), |settings| {
        settings["redis"]["credentials"] = "endpoint".into();
        settings["endpoint"] = json!({"url": operator.url, "caPem": operator.ca_pem});
    });
    let mut container = pod.run("app", WORK);
    pod.until("ACTIVE");
    pod.kill_sidecar();
    pod.settings["endpoint"]["url"] = "https://localhost:1".into();
    pod.start_sidecar();
    assert_eq!(container.exit_code(), 195);
    let _again = pod.run("app", WORK);
    assert_eq!(pod.until("ACTIVE")["fence"], 2);
}
