//! How does the operator hear what happened? By reports, sent in order and again until it answers. Nothing
//! waits for them, and no promise rests on them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use fencedlease_core::backoff::Backoff;
use fencedlease_wire::HoldingId;
use fencedlease_wire::endpoint::{Fact, Report, STANDING_INTERVAL_SECONDS};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};

use super::news::Latest;
use super::operator::{Operator, OperatorError};

/// Reports that wait at most.
const MAX_QUEUE: usize = 256;
/// How long facts that the operator has not heard of hold up the end of the sidecar: a loss that is not reported is
/// one that nobody is told of. Nobody else waits for it: the lease is given back, or lost, before.
const LAST_FACTS: Duration = Duration::from_secs(5);
/// How long the farewell holds it up.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long [`report`] goes on when the sender of facts is gone.
pub const LAST_REPORTS: Duration = LAST_FACTS.saturating_add(FAREWELL);
const LEAST_PAUSE: Duration = Duration::from_millis(200);
const MOST_PAUSE: Duration = Duration::from_secs(15);

/// Whom the reports are about.
#[derive(Clone, Debug)]
pub struct About {
    /// Namespace of pod and FencedLease.
    pub namespace: String,
    /// The FencedLease's name.
    pub lease: String,
    /// The pod's name.
    pub pod_name: String,
    /// The node's name.
    pub node_name: String,
    /// The FencedLease's generation that the pod was injected with.
    pub lease_generation: i64,
    /// Random for this run of the sidecar.
    pub run: HoldingId,
}

/// Reports facts, and every ten seconds how the pod stands, until the sender of facts is gone; then reports what is
/// left and says farewell, within [`LAST_REPORTS`]. `random` gives uniform bits for the pauses after failures.
pub async fn report(
    operator: Arc<Operator>,
    about: About,
    mut facts: mpsc::UnboundedReceiver<Fact>,
    latest: Latest,
    random: impl Fn() -> u64,
) {
    let mut queue = Queue::new(about);
    let mut backoff = Backoff::new(LEAST_PAUSE, MOST_PAUSE);
    let mut standing = tokio::time::interval(Duration::from_secs(STANDING_INTERVAL_SECONDS));
    standing.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut not_before = Instant::now();
    loop {
        let next = async {
            tokio::time::sleep_until(not_before).await;
            match queue.front() {
                Some(report) => operator.report(report).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // A report that is broken off by a new fact is sent again; the operator knows it by its sequence.
            biased;
            sent = next => {
                if let Some(pause) = after(&sent, &mut backoff, random()) {
                    not_before = Instant::now() + pause;
                } else {
                    queue.pop();
                }
            }
            fact = facts.recv() => match fact {
                Some(fact) => queue.push(fact),
                None => break,
            },
            _ = standing.tick() => queue.push(standing_of(&latest)),
        }
    }
    let _ = tokio::time::timeout(LAST_FACTS, flush(&operator, &mut queue, Queue::has_facts)).await;
    queue.push(Fact::Gone);
    // What the operator does not hear now it finds out from the pod's end.
    let _ = tokio::time::timeout(FAREWELL, flush(&operator, &mut queue, |_| true)).await;
}

/// Sends what waits, as long as `goes_on`.
async fn flush(operator: &Operator, queue: &mut Queue, goes_on: impl Fn(&Queue) -> bool) {
    while let Some(report) = queue.front().filter(|_| goes_on(queue)) {
        match operator.report(report).await {
            Ok(()) => queue.pop(),
            Err(error) if is_final(&error) => queue.pop(),
            Err(_) => tokio::time::sleep(LEAST_PAUSE).await,
        }
    }
}

/// How long to wait before the same report is sent again; `None` if it is done with.
fn after(sent: &Result<(), OperatorError>, backoff: &mut Backoff, random: u64) -> Option<Duration> {
    match sent {
        Ok(()) => {
            backoff.succeeded();
            None
        }
        Err(error) if is_final(error) => {
            tracing::warn!(error = %error, "the operator does not take a report");
            None
        }
        Err(error) => {
            let pause = backoff.failed(random);
            // One line for each outage, not for each attempt.
            if backoff.failures() == 1 {
                tracing::warn!(error = %error, "the operator cannot be reached; reports wait");
            }
            Some(pause)
        }
    }
}

/// The operator will never take this report, however often it is sent.
fn is_final(error: &OperatorError) -> bool {
    matches!(error, OperatorError::Refused { status: 400 | 403 | 404 | 413, .. })
}

fn standing_of(latest: &Latest) -> Fact {
    let published = latest.last();
    Fact::Standing {
        standing: published.standing(),
        highest_fence: published.highest_fence,
        redis: published.redis.clone(),
        gates: published.gates.clone(),
    }
}

/// Reports that wait, oldest first.
struct Queue {
    about: About,
    sequence: u64,
    reports: VecDeque<Report>,
}

impl Queue {
    fn new(about: About) -> Self {
        Self { about, sequence: 0, reports: VecDeque::new() }
    }

    fn front(&self) -> Option<&Report> {
        self.reports.front()
    }

    fn pop(&mut self) {
        self.reports.pop_front();
    }

    /// Whether something waits that the next report of the pod's standing would not make up for.
    fn has_facts(&self) -> bool {
        self.reports.iter().any(|report| !matches!(report.fact, Fact::Standing { .. }))
    }

    /// Adds a fact. A standing replaces one that still waits; at the limit the oldest goes.
    fn push(&mut self, fact: Fact) {
        if matches!(fact, Fact::Standing { .. }) {
            self.reports.retain(|report| !matches!(report.fact, Fact::Standing { .. }));
        }
        if self.reports.len() >= MAX_QUEUE {
            self.reports.pop_front();
        }
        self.sequence += 1;
        let About { namespace, lease, pod_name, node_name, lease_generation, run } = self.about.clone();
        self.reports.push_back(Report {
            namespace,
            lease,
            pod_name,
            node_name,
            lease_generation,
            run,
            sequence: self.sequence,
            fact,
        });
    }
}

#[cfg(test)]
mod tests;
