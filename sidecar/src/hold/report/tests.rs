use fencedlease_wire::Fence;
use fencedlease_wire::endpoint::{RedisStanding, RedisStandingKind, Standing};

use super::*;

fn queue() -> Queue {
    Queue::new(About {
        namespace: "shop".into(),
        lease: "report".into(),
        pod_name: "report-0".into(),
        node_name: "node-1".into(),
        lease_generation: 1,
        run: HoldingId::from_random([1; 8]),
    })
}

fn standing() -> Fact {
    Fact::Standing {
        standing: Standing::Waiting,
        highest_fence: Fence::new(7).ok(),
        redis: RedisStanding { kind: RedisStandingKind::Connected, message: String::new() },
        gates: None,
    }
}

#[test]
fn a_standing_replaces_the_one_that_still_waits_and_nothing_else() {
    let mut queue = queue();
    queue.push(standing());
    queue.push(Fact::Gone);
    queue.push(standing());
    let sequences: Vec<u64> = queue.reports.iter().map(|report| report.sequence).collect();
    assert_eq!(sequences, [2, 3]);
}

#[test]
fn the_queue_is_bounded_and_the_newest_stay() {
    let mut queue = queue();
    for _ in 0..1000 {
        queue.push(Fact::Gone);
    }
    assert_eq!(queue.reports.len(), MAX_QUEUE);
    assert_eq!(queue.reports.back().map(|report| report.sequence), Some(1000));
}

#[test]
fn what_the_operator_refuses_for_good_is_not_sent_again() {
    let mut backoff = Backoff::new(LEAST_PAUSE, MOST_PAUSE);
    let refused = |status| Err(OperatorError::Refused { status, message: String::new() });
    assert_eq!(after(&refused(404), &mut backoff, 0), None);
    assert!(after(&refused(503), &mut backoff, u64::MAX).is_some());
    assert!(
        after(&Err(OperatorError::Timeout), &mut backoff, u64::MAX).is_some_and(|pause| pause <= MOST_PAUSE)
    );
    assert_eq!(after(&Ok(()), &mut backoff, 0), None);
    assert_eq!(backoff.failures(), 0);
}
