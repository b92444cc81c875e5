use fencedlease_crds::FencedLeaseSpec;
use fencedlease_wire::endpoint::Fact;
use fencedlease_wire::{Fence, HoldingId};
use kube::runtime::events::Recorder;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::*;
use crate::cache::caches;
use crate::events::events;
use crate::fake_api::FakeApi;

const PATH: &str = "/apis/fencedlease.dev/v1alpha1/namespaces/shop/fencedleases/report";

struct World {
    api: FakeApi,
    statuses: Statuses,
    _stop: watch::Sender<bool>,
}

fn world() -> World {
    let api = FakeApi::default();
    let (stop, stopped) = watch::channel(false);
    let (caches, _) = caches();
    let (events, _) = events(Recorder::new(api.client(), "test".into()), stopped);
    let gate_keys = Arc::new(GateKeys::new(api.client()));
    let statuses = Statuses::new(api.client(), caches, events, gate_keys, true);
    let mut lease = FencedLease::new("report", FencedLeaseSpec::default());
    lease.metadata.namespace = Some("shop".to_owned());
    lease.metadata.generation = Some(1);
    api.put(PATH, serde_json::to_value(lease).unwrap());
    World { api, statuses, _stop: stop }
}

impl World {
    fn stored(&self) -> Arc<FencedLease> {
        Arc::new(serde_json::from_value(self.api.get(PATH).unwrap()).unwrap())
    }

    fn writes(&self) -> usize {
        self.api.writes().len()
    }

    async fn acquired(&self, lease: Arc<FencedLease>, pod: &str, fence: u64) {
        let report = Report {
            namespace: "shop".to_owned(),
            lease: "report".to_owned(),
            pod_name: pod.to_owned(),
            node_name: "node-1".to_owned(),
            lease_generation: 1,
            run: HoldingId::from_random([1; 8]),
            sequence: 1,
            fact: Fact::Acquired {
                fence: Fence::new(fence).unwrap(),
                holding: HoldingId::from_random([2; 8]),
                waited_ms: 5,
                previous_holder: None,
                handover_ms: None,
            },
        };
        let from = Reporter { pod_uid: format!("uid-of-{pod}"), workload: None };
        self.statuses.report(lease, &report, &from).await.unwrap();
    }
}

#[tokio::test]
async fn a_status_that_is_right_is_not_written_again() {
    let world = world();
    world.statuses.refresh(world.stored()).await.unwrap();
    assert_eq!(world.writes(), 1);
    world.statuses.refresh(world.stored()).await.unwrap();
    assert_eq!(world.writes(), 1);
}

#[tokio::test]
async fn a_report_is_folded_into_what_another_replica_wrote_meanwhile() {
    let world = world();
    let stale = world.stored();
    world.acquired(world.stored(), "b", 8).await;
    world.acquired(stale, "a", 7).await;
    let status = world.stored().status.clone().unwrap();
    assert_eq!(status.holder.unwrap().pod_name, "b");
    assert_eq!((status.fence, status.transitions), (Some(8), 1));
}

#[tokio::test]
async fn a_write_that_comes_between_is_kept() {
    let world = world();
    let mut theirs: Value = world.api.get(PATH).unwrap();
    theirs["metadata"]["annotations"] = json!({"theirs": "kept"});
    world.api.interfere(PATH, theirs);
    world.acquired(world.stored(), "a", 7).await;
    let stored = world.stored();
    assert_eq!(stored.metadata.annotations.as_ref().unwrap()["theirs"], "kept");
    assert_eq!(stored.status.as_ref().unwrap().fence, Some(7));
}

#[tokio::test]
async fn a_lease_that_was_deleted_needs_no_status() {
    let world = world();
    let mut gone = FencedLease::clone(&world.stored());
    gone.metadata.name = Some("gone".to_owned());
    world.statuses.refresh(Arc::new(gone)).await.unwrap();
}

#[tokio::test]
async fn a_refusal_is_in_the_status() {
    let world = world();
    world.statuses.refused(world.stored(), "Pod x cannot be guarded", Timestamp::now()).await.unwrap();
    let status = world.stored().status.clone().unwrap();
    let condition = standing(&status, ConditionType::AdmissionOk).unwrap();
    assert_eq!(
        (condition.reason.as_str(), condition.message.as_str()),
        ("PodsRefused", "Pod x cannot be guarded")
    );
}

#[test]
fn a_gate_that_fails_is_news_once_and_again_after_it_was_well() {
    let status = |reason: &str| {
        let condition = json!({"type": "GatesReady", "status": "x", "reason": reason, "message": format!("it is {reason}"), "lastTransitionTime": "2026-01-01T00:00:00Z"});
        FencedLeaseStatus {
            conditions: vec![serde_json::from_value(condition).unwrap()],
            ..FencedLeaseStatus::default()
        }
    };
    let news = |old: &str, new: &str| turned(&status(old), &status(new)).collect::<Vec<_>>();
    let words = |message: &str| message.to_owned();
    for (reason, expected) in [
        ("GateUnreachable", News::GateUnreachable { message: words("it is GateUnreachable") }),
        ("GateAhead", News::GateAhead { message: words("it is GateAhead") }),
        ("GateKeyMissing", News::GateKeyMissing { message: words("it is GateKeyMissing") }),
    ] {
        assert_eq!(news("Raised", reason), std::slice::from_ref(&expected));
        assert_eq!(news(reason, reason), []);
        assert_eq!(news(reason, "Raised"), []);
        let shown = expected.words("shop/report", "report-a");
        assert!(
            shown.warning && shown.reason == reason && shown.note == format!("it is {reason}"),
            "{shown:?}"
        );
    }
}
