use serde_json::{Value, json};

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn one(workload: &str, ended: i64) -> FailedPod {
    FailedPod {
        name: format!("{workload}-{ended}"),
        uid: format!("uid-{ended}"),
        workload: Workload { kind: "Deployment".to_owned(), name: workload.to_owned() },
        ended: at(ended),
    }
}

fn deleted(pods: &[FailedPod], now: i64) -> Vec<String> {
    to_delete(pods.to_vec(), at(now)).into_iter().map(|pod| pod.name).collect()
}

fn pod() -> Value {
    json!({
        "metadata": {
            "name": "report-7c9-x", "uid": "u",
            "creationTimestamp": "2026-12-02T09:00:00Z",
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "report", "uid": "r", "controller": true}],
        },
        "status": {"phase": "Failed", "containerStatuses": [
            {"name": "log", "ready": false, "restartCount": 0, "image": "", "imageID": "",
             "state": {"terminated": {"exitCode": 0, "finishedAt": "2026-12-02T09:30:00Z"}}},
            {"name": "app", "ready": false, "restartCount": 0, "image": "", "imageID": "",
             "state": {"terminated": {"exitCode": 195, "finishedAt": "2026-12-02T09:10:00Z"}}},
        ]},
    })
}

fn read(pod: Value) -> Option<FailedPod> {
    failed(&serde_json::from_value(pod).unwrap())
}

#[test]
fn the_newest_three_of_each_workload_stay_for_an_hour() {
    let pods: Vec<FailedPod> = [1, 2, 3, 4, 5].map(|ended| one("report", ended)).to_vec();
    assert_eq!(deleted(&pods, 10), ["report-1", "report-2"]);
    assert_eq!(deleted(&pods[2..], 10), Vec::<String>::new());
    assert_eq!(deleted(&pods[2..], 3_602), Vec::<String>::new());
    assert_eq!(deleted(&pods[2..], 3_603), ["report-3"]);
    assert_eq!(deleted(&pods, 3_605), ["report-1", "report-2", "report-3", "report-4", "report-5"]);
}

#[test]
fn workloads_are_counted_apart() {
    let pods = [one("a", 1), one("b", 2), one("a", 3), one("b", 4), one("a", 5), one("a", 6)];
    assert_eq!(deleted(&pods, 10), ["a-1"]);
}

#[test]
fn of_pods_that_ended_together_the_same_ones_stay_whatever_the_order() {
    let mut pods: Vec<FailedPod> = ["a", "b", "c", "d"].map(|_| one("report", 1)).to_vec();
    for (pod, name) in pods.iter_mut().zip(["a", "b", "c", "d"]) {
        name.clone_into(&mut pod.name);
    }
    assert_eq!(deleted(&pods, 10), ["a"]);
    pods.reverse();
    assert_eq!(deleted(&pods, 10), ["a"]);
}

#[test]
fn only_pods_that_failed_by_our_codes_and_have_an_owner_count() {
    let found = read(pod()).unwrap();
    assert_eq!(found.workload, Workload { kind: "Job".to_owned(), name: "report".to_owned() });
    assert_eq!(found.ended.to_string(), "2026-12-02T09:10:00Z");
    let changes: [fn(&mut Value); 6] = [
        |pod| pod["status"]["phase"] = "Running".into(),
        |pod| pod["status"]["containerStatuses"][1]["state"]["terminated"]["exitCode"] = 1.into(),
        |pod| pod["metadata"]["ownerReferences"] = json!([]),
        |pod| pod["metadata"]["finalizers"] = json!(["batch.kubernetes.io/job-tracking"]),
        |pod| pod["metadata"]["deletionTimestamp"] = "2026-12-02T09:11:00Z".into(),
        |pod| pod["status"] = json!({"phase": "Failed", "reason": "Evicted"}),
    ];
    for change in changes {
        let mut pod = pod();
        change(&mut pod);
        assert_eq!(read(pod.clone()), None, "{pod}");
    }
    let mut planned = pod();
    planned["status"]["containerStatuses"][1]["state"]["terminated"]["exitCode"] = 196.into();
    assert!(read(planned).is_some());
}
