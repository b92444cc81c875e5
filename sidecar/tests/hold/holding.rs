//! A pod gets the lease, and everybody in it knows.

use fencedlease_faults::RedisServer;

use crate::support::eventually;
use crate::support::pod::Pod;
use crate::support::world::World;

const WORK: &str =
    "echo $FENCEDLEASE_FENCE $FENCEDLEASE_HOLDING $FENCEDLEASE_RESOURCE > $DIR/env; exec sleep 1000";

#[test]
fn a_pod_acquires_and_its_fence_is_in_environment_file_and_socket() {
    let world = World::new();
    let pod = Pod::start("one", world.redis.address(), |_| {});
    assert_eq!(pod.lease()["state"], "WAITING");
    assert!(!pod.has("fence"));
    assert!(!world.has_lease(), "without its guard a warm pod takes no lease");
    let mut container = pod.run("app", WORK);
    let lease = pod.until("ACTIVE");
    assert_eq!((lease["fence"].as_u64(), lease["resource"].as_str()), (Some(1), Some("shop/report")));
    assert_eq!(pod.read("env"), format!("1 {} shop/report\n", lease["holding"].as_str().unwrap()));
    assert_eq!(pod.read("fence"), "1\n");
    assert!(!pod.has("lost"));
    assert_eq!(pod.probe("/startup").status, 200);
    assert_eq!(pod.probe("/ready").status, 200);
    assert!((pod.metric("fencedlease_lease_active") - 1.0).abs() < f64::EPSILON);
    let check = pod.ask("POST", "/v1/commit-check", r#"{"fence":1}"#).unwrap();
    assert_eq!((check.status, check.json()["allowed"].as_bool()), (200, Some(true)));
    assert_eq!(pod.ask("POST", "/v1/commit-check", r#"{"fence":2}"#).unwrap().status, 409);
    assert!(container.is_running());
}

#[test]
fn the_password_comes_from_the_mounted_secret() {
    let redis = RedisServer::with_args(&["--requirepass", "from a Secret"]).unwrap();
    let pod =
        Pod::start("one", redis.address(), |settings| settings["redis"]["credentials"] = "mounted".into());
    let _container = pod.run("app", WORK);
    assert_eq!(pod.until("ACTIVE")["fence"], 1);
}

#[test]
fn a_wrong_password_is_told_where_people_look() {
    let redis = RedisServer::with_args(&["--requirepass", "another"]).unwrap();
    let pod =
        Pod::start("one", redis.address(), |settings| settings["redis"]["credentials"] = "mounted".into());
    let _container = pod.run("app", WORK);
    let told = |text: &str| text.contains("WRONGPASS");
    eventually("the reason in /v1/lease", || told(pod.lease()["message"].as_str()?).then_some(()));
    let ready = pod.probe("/ready");
    assert_eq!((ready.status, told(&ready.body)), (503, true));
    assert!(pod.metric("fencedlease_acquisitions_total{result=\"failed\"}") >= 1.0);
}
