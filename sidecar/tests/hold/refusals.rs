//! What *hold* refuses, with which exit code, and what it tells people.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::pod::{command, settings};

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
