//! What informers tell: a log line when their state changes, and counters.

use std::sync::Arc;

use vmhost_cluster::{InformerObserver, InformerState, IngestError, Phase};
use vmhost_core::Gvk;

use crate::observe::metrics::Metrics;

/// Says once what an informer waits for, and counts.
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
        tracing::info!("listing {kind} again: {reason}");
    }

    fn keeps_expiring(&self, kind: &Gvk, reason: &str) {
        tracing::warn!(
            "listing {kind} takes longer than the API server remembers versions: no watch could go on from the last three lists; trying again, less and less often: {reason}"
        );
    }

    fn rewound(&self, kind: &Gvk, from: u64, to: u64) {
        tracing::warn!(
            "the API server's versions of {kind} went back from {from} to {to}, as after etcd was restored from a backup: its list is believed, and every key gets its turn"
        );
    }

    fn skipped(&self, kind: &Gvk, error: &IngestError) {
        self.0
            .skipped_objects
            .with_label_values(&[kind.to_string().as_str()])
            .inc();
        tracing::warn!("an object of kind {kind} is skipped: {error}");
    }

    fn failed(&self, kind: &Gvk, error: &str) {
        tracing::debug!("watching {kind}: {error}");
    }
}
