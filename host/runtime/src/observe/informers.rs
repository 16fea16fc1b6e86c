//! Logs and counts what informers report.

use std::sync::Arc;

use vmhost_cluster::{InformerObserver, InformerState, IngestError, Phase};
use vmhost_core::Gvk;

use crate::observe::metrics::Metrics;

/// Logs each state change of an informer once, and counts.
pub(crate) struct Observer {
    metrics: Arc<Metrics>,
    /// The beginning of log lines; empty at home.
    place: String,
}

impl Observer {
    /// An observer of the host's own cluster.
    pub(crate) fn at_home(metrics: Arc<Metrics>) -> Self {
        Self {
            metrics,
            place: String::new(),
        }
    }

    /// An observer of a member, which log lines name.
    pub(crate) fn of(metrics: Arc<Metrics>, cluster: &str) -> Self {
        Self {
            metrics,
            place: format!("cluster {cluster}: "),
        }
    }
}

impl InformerObserver for Observer {
    fn state(&self, _kind: &Gvk, state: &InformerState) {
        let place = &self.place;
        match state.phase {
            Phase::Starting | Phase::Listing => tracing::debug!("{place}{state}"),
            Phase::Watching => tracing::info!("{place}{state}"),
            Phase::WaitingForKind | Phase::Forbidden { .. } | Phase::Failing { .. } => {
                tracing::warn!("{place}{state}")
            }
        }
    }

    fn relist(&self, kind: &Gvk, reason: &str) {
        self.metrics
            .relists
            .with_label_values(&[kind.to_string().as_str()])
            .inc();
        let place = &self.place;
        tracing::info!("{place}relisting {kind}: {reason}");
    }

    fn keeps_expiring(&self, kind: &Gvk, reason: &str) {
        let place = &self.place;
        tracing::warn!(
            "{place}{kind}: the last three lists took longer than the API server keeps resource versions, so no watch could start from them; retrying less often: {reason}"
        );
    }

    fn rewound(&self, kind: &Gvk, from: u64, to: u64) {
        let place = &self.place;
        tracing::warn!(
            "{place}the API server's versions of {kind} went back from {from} to {to}, as after an etcd restore; using its new list and enqueueing every key"
        );
    }

    fn skipped(&self, kind: &Gvk, error: &IngestError) {
        self.metrics
            .skipped_objects
            .with_label_values(&[kind.to_string().as_str()])
            .inc();
        let place = &self.place;
        tracing::warn!("{place}{kind}: skipping an object that cannot be stored: {error}");
    }

    fn failed(&self, kind: &Gvk, error: &str) {
        let place = &self.place;
        tracing::debug!("{place}watch {kind}: {error}");
    }
}
