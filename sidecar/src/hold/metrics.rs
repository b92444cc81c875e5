//! What dashboards see. All series exist from the start, and every handle is resolved beforehand.

use std::time::Duration;

use fencedlease_wire::LossReason;
use fencedlease_wire::socket::ResourceKind;
use prometheus::{
    Encoder as _, Gauge, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts,
    Registry, TextEncoder,
};

/// The sidecar's metrics.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Registry,
    /// Renewals that were confirmed.
    pub renewals_confirmed: IntCounter,
    /// Renewals that ended a holding.
    pub renewals_failed: IntCounter,
    /// From a renewal's send to its answer, in seconds.
    pub renewal_duration: Histogram,
    /// How much later than due a renewal was sent, in seconds.
    pub renewal_lateness: Histogram,
    /// What remained until the kill instant when a renewal was confirmed, in seconds.
    pub renewal_remaining: Histogram,
    /// 1 while the pod holds the lease.
    pub lease_active: IntGauge,
    /// From noticing a loss to the latest instant at which SIGKILL is due, in seconds.
    pub loss_to_kill: Histogram,
    /// From noticing a loss to proven death, in seconds.
    pub loss_to_dead: Histogram,
    /// From a loss noticed to the moment at which everybody can see it, in seconds.
    pub loss_notify: Histogram,
    /// Losses whose workload was not proven dead at the deadline.
    pub kills_overdue: IntCounter,
    /// The fence that is held; 0 without one.
    pub fence_current: Gauge,
    /// Commit checks that were allowed.
    pub commit_checks_allowed: IntCounter,
    /// Commit checks that were refused.
    pub commit_checks_refused: IntCounter,
    /// What remained at a commit check, in seconds.
    pub commit_remaining: Histogram,
    /// How long holdings lasted, in seconds.
    pub hold: Histogram,
    /// How long the pod waited for the lease, in seconds.
    pub standby_wait: Histogram,
    /// From a release that was heard to the acquisition, in seconds.
    pub handover_gap: Histogram,
    /// Raises that a gate stored.
    pub raises_stored: IntCounter,
    /// Raises that a gate did not store, as far as is known.
    pub raises_failed: IntCounter,
    /// Raises that a gate refused, since it knows a greater fence.
    pub raises_refused: IntCounter,
    /// From the acquisition to a gate's answer that it has stored the fence, in seconds.
    pub raise: Histogram,
    /// Attempts that got the lease.
    pub acquired: IntCounter,
    /// Attempts that found it held.
    pub acquisitions_held: IntCounter,
    /// Attempts that failed.
    pub acquisitions_failed: IntCounter,
    losses: Vec<(LossReason, IntCounter)>,
    rejections: Vec<(ResourceKind, IntCounter)>,
}

const SHORT: &[f64] = &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];
const LONG_FROM_MS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
const LONG: &[f64] = &[0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 600.0, 3600.0, 21600.0, 86400.0];

impl Metrics {
    /// Metrics in a registry of their own.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let make = Maker(&registry);
        let renewals = make.counters("renewals_total", "Renewals by result.", "result")?;
        let commits = make.counters("commit_checks_total", "Commit checks by result.", "result")?;
        let acquisitions = make.counters("acquisitions_total", "Attempts to acquire by result.", "result")?;
        let raises = make.counters("raises_total", "Raises at gates by result.", "result")?;
        let losses = make.counters("losses_total", "Leases lost by reason.", "reason")?;
        let rejections = make.counters(
            "fence_rejections_total",
            "Fences that a resource refused, as the application told.",
            ResourceKind::LABEL,
        )?;
        let to_dead = make.histograms(
            "loss_to_dead_seconds",
            "From a loss noticed to the proven death of the workload.",
            "guard",
        )?;
        Ok(Self {
            renewals_confirmed: renewals.with_label_values(&["confirmed"]),
            renewals_failed: renewals.with_label_values(&["failed"]),
            renewal_duration: make.histogram("renewal_duration_seconds", "From send to answer.", SHORT)?,
            renewal_lateness: make.histogram(
                "renewal_lateness_seconds",
                "How much later than due a renewal was sent.",
                SHORT,
            )?,
            renewal_remaining: make.histogram(
                "renewal_remaining_seconds",
                "What remained until the kill instant when a renewal was confirmed.",
                LONG,
            )?,
            lease_active: make.gauge("lease_active", "1 while this pod holds the lease.")?,
            loss_to_kill: make.histogram(
                "loss_to_kill_seconds",
                "From a loss noticed to the instant at which SIGKILL is due.",
                SHORT,
            )?,
            loss_to_dead: to_dead.with_label_values(&["entrypoint"]),
            loss_notify: make.histogram(
                "loss_notify_seconds",
                "From a loss noticed to the moment at which socket and metrics show it.",
                SHORT,
            )?,
            kills_overdue: make
                .counter("kills_overdue", "Losses whose workload was not proven dead at the deadline.")?,
            fence_current: make.float("fence_current", "The fence that is held, 0 without one.")?,
            commit_checks_allowed: commits.with_label_values(&["allowed"]),
            commit_checks_refused: commits.with_label_values(&["refused"]),
            commit_remaining: make.histogram(
                "commit_remaining_seconds",
                "What remained until the kill instant at a commit check.",
                LONG,
            )?,
            hold: make.histogram("hold_seconds", "How long holdings lasted.", LONG)?,
            standby_wait: make.histogram("standby_wait_seconds", "How long the pod waited.", LONG)?,
            handover_gap: make.histogram(
                "handover_gap_seconds",
                "From a release that was heard to the acquisition.",
                SHORT,
            )?,
            raises_stored: raises.with_label_values(&["stored"]),
            raises_failed: raises.with_label_values(&["failed"]),
            raises_refused: raises.with_label_values(&["refused"]),
            raise: make.histogram(
                "raise_seconds",
                "From the acquisition to a gate's answer that it has stored the fence.",
                LONG_FROM_MS,
            )?,
            acquired: acquisitions.with_label_values(&["acquired"]),
            acquisitions_held: acquisitions.with_label_values(&["held"]),
            acquisitions_failed: acquisitions.with_label_values(&["failed"]),
            losses: LossReason::ALL
                .into_iter()
                .map(|reason| (reason, losses.with_label_values(&[reason.as_str()])))
                .collect(),
            rejections: ResourceKind::ALL
                .into_iter()
                .map(|kind| (kind, rejections.with_label_values(&[kind.as_str()])))
                .collect(),
            registry,
        })
    }

    /// Counts a loss.
    pub fn lost(&self, reason: LossReason) {
        if let Some((_, counter)) = self.losses.iter().find(|(known, _)| *known == reason) {
            counter.inc();
        }
    }

    /// Counts a fence that a resource refused.
    pub fn fence_rejected(&self, kind: ResourceKind) {
        if let Some((_, counter)) = self.rejections.iter().find(|(known, _)| *known == kind) {
            counter.inc();
        }
    }

    /// All series in Prometheus's text form.
    pub fn text(&self) -> Result<String, prometheus::Error> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// Observes a duration in seconds.
pub fn observe(histogram: &Histogram, duration: Duration) {
    histogram.observe(duration.as_secs_f64());
}

/// Makes metrics with our prefix and registers them.
struct Maker<'a>(&'a Registry);

impl Maker<'_> {
    fn counters(&self, name: &str, help: &str, label: &str) -> Result<IntCounterVec, prometheus::Error> {
        let counters = IntCounterVec::new(opts(name, help), &[label])?;
        self.0.register(Box::new(counters.clone()))?;
        Ok(counters)
    }

    fn counter(&self, name: &str, help: &str) -> Result<IntCounter, prometheus::Error> {
        let counter = IntCounter::with_opts(opts(name, help))?;
        self.0.register(Box::new(counter.clone()))?;
        Ok(counter)
    }

    fn gauge(&self, name: &str, help: &str) -> Result<IntGauge, prometheus::Error> {
        let gauge = IntGauge::with_opts(opts(name, help))?;
        self.0.register(Box::new(gauge.clone()))?;
        Ok(gauge)
    }

    fn float(&self, name: &str, help: &str) -> Result<Gauge, prometheus::Error> {
        let gauge = Gauge::with_opts(opts(name, help))?;
        self.0.register(Box::new(gauge.clone()))?;
        Ok(gauge)
    }

    fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> Result<Histogram, prometheus::Error> {
        let opts = HistogramOpts::new(full(name), help).buckets(buckets.to_vec());
        let histogram = Histogram::with_opts(opts)?;
        self.0.register(Box::new(histogram.clone()))?;
        Ok(histogram)
    }

    fn histograms(&self, name: &str, help: &str, label: &str) -> Result<HistogramVec, prometheus::Error> {
        let opts = HistogramOpts::new(full(name), help).buckets(SHORT.to_vec());
        let histograms = HistogramVec::new(opts, &[label])?;
        self.0.register(Box::new(histograms.clone()))?;
        Ok(histograms)
    }
}

fn full(name: &str) -> String {
    format!("fencedlease_{name}")
}

fn opts(name: &str, help: &str) -> Opts {
    Opts::new(full(name), help)
}

#[cfg(test)]
mod tests;
