//! What webhooks count, under the names of controller-runtime.
//!
//! This module owns the metrics' names, labels and buckets. It must not know how they are served.

use std::time::Duration;

use prometheus::{
    HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry, exponential_buckets,
};

/// The label of requests to a path that is no webhook, so that nobody can add labels by asking.
pub(crate) const UNKNOWN: &str = "unknown";

/// Counts requests of webhooks. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    latency: HistogramVec,
    requests: IntCounterVec,
    in_flight: IntGauge,
}

/// A request that is being answered.
pub(crate) struct InFlight(IntGauge);

impl Metrics {
    /// Creates the metrics in a registry.
    pub fn new(registry: &Registry) -> prometheus::Result<Metrics> {
        let latency = HistogramOpts::new(
            "controller_runtime_webhook_latency_seconds",
            "Histogram of the latency of processing admission and conversion requests",
        );
        // 50 us to 52 s.
        let latency = latency.buckets(exponential_buckets(5e-5, 4.0, 11)?);
        let requests = Opts::new(
            "controller_runtime_webhook_requests_total",
            "Total number of admission and conversion requests by HTTP status code.",
        );
        let in_flight = IntGauge::new(
            "controller_runtime_webhook_requests_in_flight",
            "Current number of admission and conversion requests being served.",
        )?;
        let metrics = Metrics {
            latency: HistogramVec::new(latency, &["webhook"])?,
            requests: IntCounterVec::new(requests, &["webhook", "code"])?,
            in_flight,
        };
        registry.register(Box::new(metrics.latency.clone()))?;
        registry.register(Box::new(metrics.requests.clone()))?;
        registry.register(Box::new(metrics.in_flight.clone()))?;
        Ok(metrics)
    }

    /// Counts a request as being answered until the guard is dropped.
    pub(crate) fn begin(&self) -> InFlight {
        self.in_flight.inc();
        InFlight(self.in_flight.clone())
    }

    /// Counts an answer. `webhook` is the request's path, or [`UNKNOWN`].
    pub(crate) fn answered(&self, webhook: &str, code: u16, time: Duration) {
        self.latency
            .with_label_values(&[webhook])
            .observe(time.as_secs_f64());
        let code = code.to_string();
        self.requests
            .with_label_values(&[webhook, code.as_str()])
            .inc();
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}
