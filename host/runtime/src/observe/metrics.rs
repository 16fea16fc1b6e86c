//! Prometheus metrics. They have the names and buckets of client-go and controller-runtime, so that
//! existing dashboards work, and `vmhost_` names for everything else.
//!
//! The labels `name` and `controller` both carry `<plugin>/<controller>`, or only the name if both
//! are equal. This module must not know where a number comes from.

use std::sync::Arc;

use parking_lot::Mutex;
use prometheus::{Encoder, HistogramVec, IntCounterVec, IntGaugeVec, Registry, TextEncoder};
use vmhost_cluster::{EventObserver, RequestObserver};
use vmhost_otlp::{SpanObserver, SpanResult};

mod buckets;
pub(crate) mod canary;
pub(crate) mod controller;
pub(crate) mod gauges;
mod of_controller;
mod vectors;
pub(crate) mod wakes;
pub(crate) mod worker;

use buckets::{CALL_BUCKETS, RECONCILE_BUCKETS};
use canary::CanaryMetrics;
use gauges::Gauges;
use vectors::{counters, gauges, histograms};
use wakes::WakeCounters;

/// All metrics of the process.
pub struct Metrics {
    registry: Registry,
    adds: IntCounterVec,
    queue_duration: HistogramVec,
    work_duration: HistogramVec,
    retries: IntCounterVec,
    reconcile_total: IntCounterVec,
    reconcile_errors: IntCounterVec,
    terminal_errors: IntCounterVec,
    panics: IntCounterVec,
    timeouts: IntCounterVec,
    reconcile_time: HistogramVec,
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
    call_time: HistogramVec,
    effects: IntCounterVec,
    skipped_applies: IntCounterVec,
    own_write_timeouts: IntCounterVec,
    breaker: IntCounterVec,
    wakes: WakeCounters,
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
        let by_controller = &["controller"];
        let by_queue = &["name", "controller"];
        // client-go: ExponentialBuckets(10e-9, 10, 12).
        let queue_buckets = prometheus::exponential_buckets(1e-8, 10.0, 12)?;
        Ok(Arc::new(Self {
            adds: counters(
                r,
                "workqueue_adds_total",
                "Total number of adds handled by workqueue",
                by_queue,
            )?,
            queue_duration: histograms(
                r,
                "workqueue_queue_duration_seconds",
                "How long in seconds an item stays in workqueue before being requested",
                by_queue,
                &queue_buckets,
            )?,
            work_duration: histograms(
                r,
                "workqueue_work_duration_seconds",
                "How long in seconds processing an item from workqueue takes.",
                by_queue,
                &queue_buckets,
            )?,
            retries: counters(
                r,
                "workqueue_retries_total",
                "Total number of retries handled by workqueue",
                by_queue,
            )?,
            reconcile_total: counters(
                r,
                "controller_runtime_reconcile_total",
                "Total number of reconciliations per controller",
                &["controller", "result"],
            )?,
            reconcile_errors: counters(
                r,
                "controller_runtime_reconcile_errors_total",
                "Total number of reconciliation errors per controller",
                by_controller,
            )?,
            terminal_errors: counters(
                r,
                "controller_runtime_terminal_reconcile_errors_total",
                "Total number of terminal reconciliation errors per controller",
                by_controller,
            )?,
            panics: counters(
                r,
                "controller_runtime_reconcile_panics_total",
                "Total number of reconciliations that trapped, per controller",
                by_controller,
            )?,
            timeouts: counters(
                r,
                "controller_runtime_reconcile_timeouts_total",
                "Total number of reconciliations past their deadline",
                by_controller,
            )?,
            reconcile_time: histograms(
                r,
                "controller_runtime_reconcile_time_seconds",
                "Length of time per reconciliation per controller",
                by_controller,
                RECONCILE_BUCKETS,
            )?,
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
            call_time: histograms(
                r,
                "vmhost_call_duration_seconds",
                "Duration of a call of the plugin",
                by_controller,
                CALL_BUCKETS,
            )?,
            effects: counters(
                r,
                "vmhost_effects_total",
                "Effects by verb and result",
                &["controller", "verb", "result"],
            )?,
            skipped_applies: counters(
                r,
                "vmhost_applies_skipped_total",
                "Applies that would have changed nothing and were not sent",
                by_controller,
            )?,
            own_write_timeouts: counters(
                r,
                "vmhost_own_write_timeouts_total",
                "Turns whose own writes did not show up in the store in time",
                by_controller,
            )?,
            breaker: counters(
                r,
                "vmhost_breaker_open_total",
                "How often the plugin's circuit breaker opened",
                &["plugin"],
            )?,
            wakes: WakeCounters::new(r)?,
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
