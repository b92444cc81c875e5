//! What does the gate measure?

use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
};

/// The gate's metrics, all of them named `fencedlease_gate_…`.
pub struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    problems: IntCounterVec,
    raises: IntCounterVec,
    sync_seconds: Histogram,
    answer_seconds: HistogramVec,
    on_their_way: IntGauge,
    connections: IntGauge,
    broken: IntGauge,
}

/// What is read at a scrape.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Checked requests on their way to the backend.
    pub on_their_way: usize,
    /// Whether nothing can be stored until a restart.
    pub is_broken: bool,
}

impl Metrics {
    /// All metrics, at zero. Fails only where two of them have one name.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new_custom(Some("fencedlease".to_owned()), None)?;
        let counters = |name: &str, help: &str, label: &str| {
            register(&registry, IntCounterVec::new(Opts::new(name, help), &[label])?)
        };
        let gauge = |name: &str, help: &str| register(&registry, IntGauge::new(name, help)?);
        let seconds = |name: &str, help: &str| {
            HistogramOpts::new(name, help)
                .buckets(vec![0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0])
        };
        let sync = seconds("gate_sync_seconds", "How long storing a raise took.");
        let answer = seconds("gate_answer_seconds", "From a request's headers to the answer's.");
        Ok(Self {
            requests: counters("gate_requests_total", "Requests, by what became of them.", "result")?,
            problems: counters("gate_problems_total", "Answers of the gate's own, by their code.", "code")?,
            raises: counters("gate_raises_total", "Raises that were stored, or failed.", "result")?,
            sync_seconds: register(&registry, Histogram::with_opts(sync)?)?,
            answer_seconds: register(&registry, HistogramVec::new(answer, &["result"])?)?,
            on_their_way: gauge(
                "gate_requests_on_their_way",
                "Checked requests on their way to the backend.",
            )?,
            connections: gauge("gate_connections", "Open connections of clients.")?,
            broken: gauge("gate_store_broken", "1 if nothing can be stored until a restart.")?,
            registry,
        })
    }

    /// A request was answered with this result.
    pub fn request(&self, result: &str, took: Duration) {
        self.requests.with_label_values(&[result]).inc();
        self.answer_seconds.with_label_values(&[result]).observe(took.as_secs_f64());
    }

    /// The gate itself answered, with this code.
    pub fn problem(&self, code: &str) {
        self.problems.with_label_values(&[code]).inc();
    }

    /// A raise was stored, or could not be.
    pub fn raise(&self, is_durable: bool, took: Duration) {
        self.raises.with_label_values(&[if is_durable { "stored" } else { "failed" }]).inc();
        self.sync_seconds.observe(took.as_secs_f64());
    }

    /// A client connected; the connection counts until the guard is dropped.
    pub fn connection(&self) -> Connection {
        self.connections.inc();
        Connection(self.connections.clone())
    }

    /// Everything in Prometheus's text format.
    pub fn render(&self, now: Now) -> Result<String, prometheus::Error> {
        self.on_their_way.set(i64::try_from(now.on_their_way).unwrap_or(i64::MAX));
        self.broken.set(i64::from(now.is_broken));
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

/// One open connection.
pub struct Connection(IntGauge);

// === impl Connection ===

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

fn register<C: Collector + Clone + 'static>(
    registry: &Registry,
    collector: C,
) -> Result<C, prometheus::Error> {
    registry.register(Box::new(collector.clone()))?;
    Ok(collector)
}
