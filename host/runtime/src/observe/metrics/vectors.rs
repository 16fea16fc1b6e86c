//! Creates and registers metrics with labels.

use prometheus::{
    GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry,
};

pub(super) fn counters(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> prometheus::Result<IntCounterVec> {
    let vector = IntCounterVec::new(Opts::new(name, help), labels)?;
    registry.register(Box::new(vector.clone()))?;
    Ok(vector)
}

pub(super) fn gauges(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> prometheus::Result<IntGaugeVec> {
    let vector = IntGaugeVec::new(Opts::new(name, help), labels)?;
    registry.register(Box::new(vector.clone()))?;
    Ok(vector)
}

pub(super) fn float_gauges(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
) -> prometheus::Result<GaugeVec> {
    let vector = GaugeVec::new(Opts::new(name, help), labels)?;
    registry.register(Box::new(vector.clone()))?;
    Ok(vector)
}

pub(super) fn histograms(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
    buckets: &[f64],
) -> prometheus::Result<HistogramVec> {
    let vector = HistogramVec::new(
        HistogramOpts::new(name, help).buckets(buckets.to_vec()),
        labels,
    )?;
    registry.register(Box::new(vector.clone()))?;
    Ok(vector)
}
