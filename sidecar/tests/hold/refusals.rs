//! What *hold* refuses, with which exit code, and what it tells people.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::eventually;
use crate::support::pod::{Pod, command, settings};

fn refused(change: impl FnOnce(&mut Value)) -> (Option<i32>, String) {
    let mut settings = settings(([127, 0, 0, 1], 1).into());
    change(&mut settings);
    let (dir, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for volume in [dir.path(), state.path()] {
        fs::set_permissions(volume, Permissions::from_mode(0o777)).unwrap();
    }
    let output = command(dir.path(), state.path(), &settings, "one").output().unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is put into the shared volume");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn bad_settings_are_refused_with_the_field_and_the_remedy() {
    let (code, text) = refused(|settings| settings["timing"]["gracePeriodMs"] = 4000.into());
    assert_eq!(code, Some(125));
    assert!(text.contains("spec.ttl 5s is too short") && text.contains("Set ttl to"), "{text}");
    let (code, text) = refused(|settings| settings["containers"] = json!([]));
    assert_eq!(code, Some(125));
    assert!(text.contains("containers"), "{text}");
    let (code, text) = refused(|settings| settings["redis"]["credentials"] = "endpoint".into());
    assert_eq!(code, Some(125));
    assert!(text.contains("redis.credentials") && text.contains("delete the pod"), "{text}");
    let (code, text) = refused(|settings| *settings = json!("garbage"));
    assert_eq!(code, Some(125));
    assert!(text.contains("FENCEDLEASE_SETTINGS"), "{text}");
}

#[test]
fn a_redis_that_is_away_is_logged_once_and_not_at_every_attempt() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let pod = Pod::start("one", nobody, |_| {});
    let _container = pod.run("app", "exec sleep 1000");
    let failed = "fencedlease_acquisitions_total{result=\"failed\"}";
    eventually("failures", || (pod.metric(failed) >= 4.0).then_some(()));
    let log = pod.log();
    let lines = log.lines().filter(|line| line.contains("\"not acquired\"")).count();
    assert_eq!(lines, 1, "{log}");
    assert!(log.contains(&nobody.to_string()), "{log}");
}
