//! Logs and counts what informers report.

use std::sync::Arc;

use vmhost_cluster::{InformerObserver, InformerState, IngestError, Phase};
use vmhost_core::Gvk;

use crate::observe::metrics::Metrics;

/// Logs each state change of an informer once, and counts.
pub(crate) struct Observer(pub(crate) Arc<Metrics>);

impl InformerObserver for Observer {
    fn state(&self, _kind: &Gvk, state: &InformerState) {
        match state.phase {
            Phase::Starting | Phase::Listing => tracing::debug!("{state}"),
            Phase::Watching => tracing::info!("{state}"),
            Phase::WaitingForKind | Phase::Forbidden { .. } | Phase::Failing { .. } => {
                tracing::warn!("{state}")
            }
        }
    }

    fn relist(&self, kind: &Gvk, reason: &str) {
        self.0
            .relists
            .with_label_values(&[kind.to_string().as_str()])
            .inc();
        tracing::info!("relisting {kind}: {reason}");
    }

    fn keeps_expiring(&self, kind: &Gvk, reason: &str) {
        tracing::warn!(
            "{kind}: the last three lists took longer than the API server keeps resource versions, so no watch could start from them; retrying less often: {reason}"
        );
    }

    fn rewound(&self, kind: &Gvk, from: u64, to: u64) {
        tracing::warn!(
            "the API server's versions of {kind} went back from {from} to {to}, as after an etcd restore; using its new list and enqueueing every key"
        );
    }

    fn skipped(&self, kind: &Gvk, error: &IngestError) {
        self.0
            .skipped_objects
            .with_label_values(&[kind.to_string().as_str()])
            .inc();
        tracing::warn!("{kind}: skipping an object that cannot be stored: {error}");
    }

    fn failed(&self, kind: &Gvk, error: &str) {
        tracing::debug!("watch {kind}: {error}");
    }
}
