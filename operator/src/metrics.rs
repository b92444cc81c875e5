//! What does the operator measure? Counters as they happen; what is known of leases, at each scrape.

use std::time::Duration;

use fencedlease_crds::{ConditionType, FencedLease, Phase};
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt as _;
use prometheus::core::Collector;
use prometheus::{Gauge, GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, Opts, Registry, TextEncoder};

/// The operator's metrics, all of them named `fencedlease_operator_…`.
pub struct Metrics {
    registry: Registry,
    admission: HistogramVec,
    refusals: IntCounterVec,
    leases: GaugeVec,
    unheld_since: GaugeVec,
    condition: GaugeVec,
    certificate_expiry: Gauge,
}

const PHASES: [(Phase, &str); 5] = [
    (Phase::Idle, "Idle"),
    (Phase::Waiting, "Waiting"),
    (Phase::Held, "Held"),
    (Phase::Unknown, "Unknown"),
    (Phase::Invalid, "Invalid"),
];

impl Metrics {
    /// All metrics, at zero. Fails only where two of them have one name.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new_custom(Some("fencedlease".to_owned()), None)?;
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            register(&registry, GaugeVec::new(Opts::new(name, help), labels)?)
        };
        let seconds =
            HistogramOpts::new("operator_admission_seconds", "How long answers of the webhooks took.")
                .buckets(vec![0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]);
        let named = ["namespace", "name"];
        let metrics = Self {
            admission: register(&registry, HistogramVec::new(seconds, &["kind", "result"])?)?,
            refusals: register(
                &registry,
                IntCounterVec::new(
                    Opts::new("operator_refusals_total", "Objects that the webhooks refused."),
                    &["cause"],
                )?,
            )?,
            leases: gauges("operator_leases", "FencedLeases in each phase.", &["phase"])?,
            unheld_since: gauges(
                "operator_lease_unheld_since_seconds",
                "Since when pods have waited for a lease that nobody holds, in Unix time.",
                &named,
            )?,
            condition: gauges(
                "operator_lease_condition",
                "1 for each condition of a FencedLease that asks for attention.",
                &["namespace", "name", "type", "reason"],
            )?,
            certificate_expiry: register(
                &registry,
                Gauge::new(
                    "operator_certificate_expiry_timestamp_seconds",
                    "When the certificate that is served expires, in Unix time.",
                )?,
            )?,
            registry,
        };
        Ok(metrics)
    }

    /// A webhook answered for an object of this kind, with `allowed` or `refused`.
    pub fn admission(&self, kind: &str, result: &str, took: Duration) {
        self.admission.with_label_values(&[kind, result]).observe(took.as_secs_f64());
    }

    /// A webhook refused an object.
    pub fn refused(&self, cause: &str) {
        self.refusals.with_label_values(&[cause]).inc();
    }

    /// The certificate that is served from now on expires then.
    pub fn certificate_expires(&self, at: Timestamp) {
        self.certificate_expiry.set(unix_seconds(at));
    }

    /// Everything in Prometheus's text format, with `leases` as they stand.
    pub fn render<'a>(
        &self,
        leases: impl Iterator<Item = &'a FencedLease>,
    ) -> Result<String, prometheus::Error> {
        self.unheld_since.reset();
        self.condition.reset();
        let mut counts = [0_u32; PHASES.len()];
        for lease in leases {
            self.describe(lease, &mut counts);
        }
        for ((_, name), count) in PHASES.iter().zip(counts) {
            self.leases.with_label_values(&[*name]).set(f64::from(count));
        }
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }

    fn describe(&self, lease: &FencedLease, counts: &mut [u32; PHASES.len()]) {
        let Some(status) = &lease.status else { return };
        if let Some(index) = PHASES.iter().position(|(phase, _)| Some(*phase) == status.phase) {
            counts[index] += 1;
        }
        let (namespace, name) = (lease.namespace().unwrap_or_default(), lease.name_any());
        let waited_for = matches!(status.phase, Some(Phase::Waiting | Phase::Unknown));
        for condition in status.conditions.iter().filter(|condition| condition.status != "True") {
            if condition.type_ == ConditionType::Held.as_str() {
                if waited_for {
                    self.unheld_since
                        .with_label_values(&[&namespace, &name])
                        .set(unix_seconds(condition.last_transition_time.0));
                }
                continue;
            }
            // A property of this release for every lease, so nothing that one could attend to.
            if condition.reason != "BestEffort" && condition.status == "False" {
                self.condition
                    .with_label_values(&[&namespace, &name, &condition.type_, &condition.reason])
                    .set(1.0);
            }
        }
    }
}

fn register<M: Collector + Clone + 'static>(registry: &Registry, metric: M) -> Result<M, prometheus::Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

/// Whole seconds: a scrape needs no more, and they fit a double exactly.
#[expect(clippy::cast_precision_loss, reason = "Unix seconds stay far below 2^52")]
fn unix_seconds(at: Timestamp) -> f64 {
    at.as_second() as f64
}

#[cfg(test)]
mod tests;
