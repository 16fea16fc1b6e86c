//! Prometheus metrics. They have the names and buckets of client-go and controller-runtime, so that
//! existing dashboards work, and `vmhost_` names for everything else.
//!
//! The labels `name` and `controller` both carry `<plugin>/<controller>`, or only the name if both
//! are equal. This module must not know where a number comes from.

use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::{Encoder, IntCounterVec, IntGaugeVec, Registry, TextEncoder};
use vmhost_cluster::{EventObserver, RequestObserver};
use vmhost_otlp::{SpanObserver, SpanResult};

mod buckets;
mod by_controller;
pub(crate) mod canary;
pub(crate) mod controller;
pub(crate) mod gauges;
mod of_controller;
mod vectors;
pub(crate) mod wakes;
pub(crate) mod worker;

use by_controller::ByController;
use canary::CanaryMetrics;
use gauges::Gauges;
use vectors::{counters, gauges};

/// All metrics of the process.
pub struct Metrics {
    registry: Registry,
    by_controller: ByController,
    requests: IntCounterVec,
    /// `leader_election_master_status{name}`: 1 while this host leads.
    pub(crate) leader: IntGaugeVec,
    /// `leader_election_slowpath_total{name}`: renewals that had to read the lease first.
    pub(crate) leader_slow: IntCounterVec,
    /// `vmhost_plugin_generation{plugin}`.
    pub(crate) generation: IntGaugeVec,
    /// `vmhost_reloads_total{plugin,result}`: swapped, unchanged, failed, rolled_back, refused.
    pub(crate) reloads: IntCounterVec,
    call_errors: IntCounterVec,
    breaker: IntCounterVec,
    /// `vmhost_live_reads_total{verb,kind}`: reads that plugins send to the API server.
    pub live_reads: IntCounterVec,
    /// `vmhost_http_requests_total{plugin,method,code}`: HTTP requests of plugins.
    pub http_requests: IntCounterVec,
    /// `vmhost_informer_relists_total{kind}`.
    pub(crate) relists: IntCounterVec,
    /// `vmhost_informer_skipped_objects_total{kind}`: objects that could not be stored.
    pub(crate) skipped_objects: IntCounterVec,
    events: IntCounterVec,
    /// `vmhost_reviews_total{controller,result}`: reviews by what came of them.
    pub(crate) reviews: IntCounterVec,
    /// The metrics of canaries.
    pub(crate) canary: CanaryMetrics,
    /// `vmhost_shadow_turns_total{plugin,result,reason}`: turns of the live version by the result
    /// of the shadow's comparison.
    pub(crate) shadow_turns: IntCounterVec,
    /// `vmhost_spans_total{result}`.
    spans: IntCounterVec,
    gauges: Gauges,
    samplers: Mutex<Vec<Sampler>>,
}

/// Sets gauges to their current values.
type Sampler = Box<dyn Fn(&Gauges) + Send>;

impl Metrics {
    /// Metrics with their own registry. Nothing is process-global.
    pub fn new() -> prometheus::Result<Arc<Self>> {
        let registry = Registry::new();
        let r = &registry;
        Ok(Arc::new(Self {
            by_controller: ByController::new(r)?,
            requests: counters(
                r,
                "rest_client_requests_total",
                "Number of HTTP requests, partitioned by status code, method, and host.",
                &["code", "method", "host"],
            )?,
            leader: gauges(
                r,
                "leader_election_master_status",
                "Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. 'name' is the string used to identify the lease. Please make sure to group by name.",
                &["name"],
            )?,
            leader_slow: counters(
                r,
                "leader_election_slowpath_total",
                "Total number of slow path exercised in renewing leader leases. 'name' is the string used to identify the lease. Please make sure to group by name.",
                &["name"],
            )?,
            generation: gauges(
                r,
                "vmhost_plugin_generation",
                "Number of the plugin's current generation",
                &["plugin"],
            )?,
            reloads: counters(
                r,
                "vmhost_reloads_total",
                "Reloads by plugin and result",
                &["plugin", "result"],
            )?,
            call_errors: counters(
                r,
                "vmhost_call_errors_total",
                "Calls that returned no outcome, by plugin and kind",
                &["plugin", "kind"],
            )?,
            breaker: counters(
                r,
                "vmhost_breaker_open_total",
                "How often the plugin's circuit breaker opened",
                &["plugin"],
            )?,
            live_reads: counters(
                r,
                "vmhost_live_reads_total",
                "Live reads that plugins sent to the API server, by verb and kind",
                &["verb", "kind"],
            )?,
            http_requests: counters(
                r,
                "vmhost_http_requests_total",
                "HTTP requests of plugins, by method and status code, or why there is none",
                &["plugin", "method", "code"],
            )?,
            relists: counters(
                r,
                "vmhost_informer_relists_total",
                "Lists after the first, by kind",
                &["kind"],
            )?,
            skipped_objects: counters(
                r,
                "vmhost_informer_skipped_objects_total",
                "Objects that could not be stored, by kind",
                &["kind"],
            )?,
            events: counters(
                r,
                "vmhost_events_total",
                "Kubernetes Events by result",
                &["result"],
            )?,
            reviews: counters(
                r,
                "vmhost_reviews_total",
                "Admission reviews and conversions by what came of them",
                &["controller", "result"],
            )?,
            canary: CanaryMetrics::new(r)?,
            shadow_turns: counters(
                r,
                "vmhost_shadow_turns_total",
                "Turns by what they came to in the plugin's shadow, and why",
                &["plugin", "result", "reason"],
            )?,
            spans: counters(
                r,
                "vmhost_spans_total",
                "Spans by what became of them on their way to the collector",
                &["result"],
            )?,
            gauges: Gauges::new(r)?,
            samplers: Mutex::default(),
            registry,
        }))
    }

    /// Where other parts of the host register metrics of their own.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Calls `sample` at each scrape, to set the gauges.
    pub(crate) fn on_scrape(&self, sample: impl Fn(&Gauges) + Send + 'static) {
        self.samplers.lock().push(Box::new(sample));
    }

    /// Renders all metrics in Prometheus' text format.
    pub fn render(&self) -> Vec<u8> {
        // Held to the end, so that another scrape does not find half of the gauges set.
        let samplers = self.samplers.lock();
        self.gauges.reset();
        for sample in samplers.iter() {
            sample(&self.gauges);
        }
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut text);
        text
    }
}

impl RequestObserver for Metrics {
    fn request(&self, code: u16, method: &str, host: &str) {
        let code = if code == 0 {
            "<error>".to_owned()
        } else {
            code.to_string()
        };
        self.requests
            .with_label_values(&[code.as_str(), method, host])
            .inc();
    }
}

impl SpanObserver for Metrics {
    fn spans(&self, result: SpanResult, count: usize) {
        let counter = self.spans.with_label_values(&[result.as_str()]);
        counter.inc_by(count as u64);
    }
}

impl EventObserver for Metrics {
    fn dropped(&self) {
        self.events.with_label_values(&["dropped"]).inc();
    }

    fn limited(&self) {
        self.events.with_label_values(&["limited"]).inc();
    }

    fn recorded(&self) {
        self.events.with_label_values(&["recorded"]).inc();
    }

    fn failed(&self, reason: &str) {
        self.events.with_label_values(&["failed"]).inc();
        tracing::debug!("dropped an Event: {reason}");
    }
}
