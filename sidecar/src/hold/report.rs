//! How does the operator hear what happened? By reports, sent in order and again until it answers. Nothing
//! waits for them, and no promise rests on them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use fencedlease_core::backoff::Backoff;
use fencedlease_wire::HoldingId;
use fencedlease_wire::endpoint::{Fact, Report, STANDING_INTERVAL_SECONDS};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior};

use super::operator::{Operator, OperatorError};
use super::pod::Published;

/// Reports that wait at most.
const MAX_QUEUE: usize = 256;
/// How long the last reports may take when the sidecar ends.
const FAREWELL: Duration = Duration::from_secs(1);
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

/// Reports facts, and every ten seconds how the pod stands, until the sender of facts is gone; then says
/// farewell within a second. `random` gives uniform bits for the pauses after failures.
pub async fn report(
    operator: Arc<Operator>,
    about: About,
    mut facts: mpsc::UnboundedReceiver<Fact>,
    published: watch::Receiver<Arc<Published>>,
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
            _ = standing.tick() => queue.push(standing_of(&published)),
        }
    }
    queue.push(Fact::Gone);
    let flush = async {
        while let Some(report) = queue.front() {
            match operator.report(report).await {
                Ok(()) => queue.pop(),
                Err(error) if is_final(&error) => queue.pop(),
                Err(_) => tokio::time::sleep(LEAST_PAUSE).await,
            }
        }
    };
    // What the operator does not hear now it finds out from the pod's end.
    let _ = tokio::time::timeout(FAREWELL, flush).await;
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

fn standing_of(published: &watch::Receiver<Arc<Published>>) -> Fact {
    let published = Arc::clone(&published.borrow());
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
