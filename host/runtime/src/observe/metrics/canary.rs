//! Metrics of canaries: gauges about the running canaries, which each scrape sets, and a counter of
//! how canaries ended. This module must not know what a canary does.

use prometheus::{GaugeVec, IntCounterVec, IntGaugeVec, Registry};

use super::vectors::{counters, float_gauges, gauges};
use crate::canary::breach::Counts;

/// The metrics of all canaries.
pub(crate) struct CanaryMetrics {
    share: GaugeVec,
    generation: IntGaugeVec,
    keys: IntGaugeVec,
    /// `vmhost_canary_ends_total{plugin,end}`.
    pub(crate) ends: IntCounterVec,
}

impl CanaryMetrics {
    pub(super) fn new(registry: &Registry) -> prometheus::Result<Self> {
        let by_plugin = &["plugin"];
        Ok(Self {
            share: float_gauges(
                registry,
                "vmhost_canary_share",
                "Share of the plugin's objects that its candidate runs, from 0 to 1",
                by_plugin,
            )?,
            generation: gauges(
                registry,
                "vmhost_canary_generation",
                "Number of the candidate's generation",
                by_plugin,
            )?,
            keys: gauges(
                registry,
                "vmhost_canary_keys",
                "Keys that had a turn during the canary, by side, and those of them whose last turn failed",
                &["plugin", "side", "state"],
            )?,
            ends: counters(
                registry,
                "vmhost_canary_ends_total",
                "Canaries that ended, by how",
                &["plugin", "end"],
            )?,
        })
    }

    /// Forgets the canaries of the last scrape.
    pub(crate) fn reset(&self) {
        self.share.reset();
        self.generation.reset();
        self.keys.reset();
    }

    /// Sets the gauges of a plugin whose candidate has this generation and this share in
    /// thousandths. `keys` has the keys of the candidate, then those of the live version.
    pub(crate) fn set(&self, plugin: &str, generation: u64, permille: u16, keys: [Counts; 2]) {
        let by_plugin = &[plugin];
        self.share
            .with_label_values(by_plugin)
            .set(f64::from(permille) / 1000.0);
        self.generation
            .with_label_values(by_plugin)
            .set(generation as i64);
        for (side, counts) in ["candidate", "live"].into_iter().zip(keys) {
            for (state, count) in [("ran", counts.ran), ("failing", counts.failing)] {
                self.keys
                    .with_label_values(&[plugin, side, state])
                    .set(count as i64);
            }
        }
    }
}
