//! S3 and Google Cloud Storage under the conformance suite, and what the recipes say of lost answers and ETags.
#![allow(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use fencedlease_fence_checks::objects::{Kind, ObjectCheck, Shape};
use fencedlease_fence_checks::suite;
use serde_json::json;

const KINDS: [Kind; 2] = [Kind::S3, Kind::Gcs];

fn conforms(kind: Kind) {
    let check = ObjectCheck::start(kind, Shape::Manifest).unwrap();
    let report = suite::run(&check, "manifest");
    assert!(report.failed.is_empty() && report.passed > 10, "{kind:?}: {report}");
}

#[test]
fn a_manifest_in_s3_conforms() {
    conforms(Kind::S3);
}

#[test]
fn a_manifest_in_google_cloud_storage_conforms() {
    conforms(Kind::Gcs);
}

#[test]
fn a_manifest_that_is_put_on_no_condition_loses_the_race() {
    let check = ObjectCheck::start(Kind::S3, Shape::Unconditional).unwrap();
    let case = "eight_writers_race";
    let report = suite::run_until_failed(&check, case, "round");
    assert!(report.failed_names().contains(&case), "it passed {case} 20 times: {report}");
}

#[test]
fn a_commit_whose_answer_was_lost_is_found_when_it_is_sent_again() {
    for kind in KINDS {
        let check = ObjectCheck::start(kind, Shape::Manifest).unwrap();
        let lost = json!({ "fence": "7", "holder": "a", "value": 1 });
        let answer = check.ask_and_lose_the_answer("commit", "m", lost).unwrap();
        assert_eq!(answer["error"], "Unknown", "{kind:?}: {answer}");
        assert!(!check.ask("version", "m", json!({})).unwrap()["done"].is_null(), "{kind:?} has done it");
        let next = check.ask("commit", "m", json!({ "fence": "7", "holder": "a", "value": 2 })).unwrap();
        assert_eq!(next["done"], 2, "{kind:?}: {next}");
        let again = json!({ "fence": "7", "holder": "a", "value": 1, "write": answer["write"] });
        // It had been done, before the other one: so it is not done again, and takes nothing back.
        assert_eq!(check.ask("commit", "m", again).unwrap()["done"], 2, "{kind:?}");
    }
}

#[test]
fn a_commit_of_open_fate_that_fails_is_unknown_still() {
    for kind in KINDS {
        let check = ObjectCheck::start(kind, Shape::Manifest).unwrap();
        let commit = |more: serde_json::Value| {
            let mut request = json!({ "fence": "7", "holder": "a", "value": 1 });
            request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            check.ask("commit", "m", request).unwrap()
        };
        assert_eq!(commit(json!({}))["done"], 1, "{kind:?}");
        // Nothing of it has arrived yet, but it may still be on its way.
        let write = json!(["sent-before", null]);
        for failure in [json!({ "unreadable": true }), json!({ "refuse": true })] {
            assert_eq!(commit(failure.clone())["error"], "Failed", "{kind:?}");
            let mut again = failure;
            again["write"] = write.clone();
            let answer = commit(again);
            assert_eq!(
                (&answer["error"], &answer["write"]),
                (&json!("Unknown"), &write),
                "{kind:?}: {answer}"
            );
        }
        let newer = |value: u64| commit(json!({ "fence": "8", "holder": "b", "value": value }));
        assert_eq!(newer(0)["done"], 0);
        assert_eq!(
            commit(json!({ "write": write.clone() }))["error"],
            "Refused",
            "{kind:?} remembers all writes"
        );
        for value in 1..100 {
            assert_eq!(newer(value)["done"], value, "{kind:?}");
        }
        let answer = commit(json!({ "write": write.clone() }));
        assert_eq!((&answer["error"], &answer["write"]), (&json!("Unknown"), &write), "{kind:?}: {answer}");
    }
}

#[test]
fn an_object_that_is_there_and_cannot_be_read_may_be_ones_own() {
    for kind in KINDS {
        let check = ObjectCheck::start(kind, Shape::Manifest).unwrap();
        let part = json!({ "fence": "7", "holder": "a", "part": "part", "value": "x" });
        assert!(check.ask("create", "parts", part.clone()).unwrap().get("done").is_some());
        let mut again = part;
        again["unreadable"] = json!(true);
        assert_eq!(check.ask("create", "parts", again).unwrap()["error"], "Unknown", "{kind:?}");
    }
}

#[test]
fn objects_made_with_an_older_fence_hide_none_of_a_newer() {
    for kind in KINDS {
        let check = ObjectCheck::start(kind, Shape::Manifest).unwrap();
        let create = |fence: &str, holder: &str, value: &str| {
            let more = json!({ "fence": fence, "holder": holder, "part": "part", "value": value });
            check.ask("create", "parts", more).unwrap()
        };
        // As text 9 would come after 10.
        assert_eq!(create("10", "new", "x")["done"], "parts/000000000000010/part");
        assert_eq!(create("9", "old", "late")["done"], "parts/000000000000009/part");
        assert_eq!(create("10", "another", "x")["error"], "Refused");
        // Once more after a lost answer is fine, something else under this name is not.
        assert_eq!(create("10", "new", "x")["done"], "parts/000000000000010/part");
        assert_eq!(create("10", "new", "y")["error"], "Failed");
        let newest = check.ask("newest", "parts", json!({})).unwrap();
        assert_eq!(newest["done"], json!(["parts/000000000000010/part"]), "{kind:?}");
    }
}

#[test]
fn an_etag_comes_back_with_its_content_and_a_manifests_never_does() {
    let check = ObjectCheck::start(Kind::S3, Shape::Manifest).unwrap();
    let put = |value: &str| {
        let version = check.ask("version", "plain", json!({})).unwrap()["done"].clone();
        check.ask("put", "plain", json!({ "value": value, "version": version })).unwrap();
        check.ask("version", "plain", json!({})).unwrap()["done"].clone()
    };
    let (first, other, back) = (put("x"), put("y"), put("x"));
    assert!(first.is_string() && first != other && first == back, "{first} {other} {back}");
    let commit = |name: &str| {
        check.ask("commit", name, json!({ "fence": "7", "holder": "a", "value": 1 })).unwrap();
        check.ask("version", name, json!({})).unwrap()["done"].clone()
    };
    assert_ne!(commit("m"), commit("m"));
}
