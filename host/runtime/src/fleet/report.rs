//! Reports the state of clusters: in the log once for each change, in the state document, and as an
//! Event about the object that carries the kubeconfig. This module must not know how a cluster is
//! found.

use std::sync::Arc;

use vmhost_cluster::{Author, ObjectRef, RecordedEvent, Recorder};
use vmhost_core::{EventType, cut, one_line};

use super::found::Found;
use crate::lead::Leadership;
use crate::site::sites::{CONNECTING, ILL, REFUSED, Sites, UP};

/// The longest note of an Event, and the longest text about a cluster.
const NOTE: usize = 1024;

/// What is wrong with a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It does not answer, or refuses the host: it may be well a moment later.
    Ill(String),
    /// The host does not use it: its kubeconfig, or the cluster behind it, has to change.
    Refused(String),
}

/// Reports the state of clusters.
pub(super) struct Reporter {
    /// The states, as they are shown.
    pub(super) sites: Arc<Sites>,
    /// A standby sees the same as the leader, and records no Events.
    pub(super) leadership: Arc<Leadership>,
    /// Records Events in the host's own cluster.
    pub(super) recorder: Recorder,
}

impl Reporter {
    /// Reports that a cluster is being connected to for the first time.
    pub(super) fn begins(&self, found: &Found) {
        if self.sites.tell(&found.name, CONNECTING, "", &found.place) {
            tracing::info!("cluster {}: found in {}", found.name, found.place);
        }
    }

    /// Reports that a cluster works.
    pub(super) fn works(&self, found: &Found, about: &str) {
        if self.sites.tell(&found.name, UP, "", &found.place) {
            let note = format!("cluster {} works: {about}", found.name);
            tracing::info!("{note}");
            self.record(found, EventType::Normal, "ClusterUp", &note);
        }
    }

    /// Reports what is wrong with a cluster.
    pub(super) fn fails(&self, found: &Found, trouble: &Trouble) {
        let (phase, reason, about, next) = match trouble {
            Trouble::Ill(about) => (ILL, "ClusterIll", about, "trying again"),
            Trouble::Refused(about) => (
                REFUSED,
                "ClusterRefused",
                about,
                "not used until that changes",
            ),
        };
        let about = one_line(about);
        // The server of a cluster may answer with anything.
        let about = cut(&about, NOTE);
        if self.sites.tell(&found.name, phase, about, &found.place) {
            let note = format!("cluster {}: {about}; {next}", found.name);
            tracing::warn!("{note}");
            self.record(found, EventType::Warning, reason, &note);
        }
    }

    /// Reports that a cluster is gone.
    pub(super) fn gone(&self, name: &str) {
        self.sites.forget(name);
        tracing::info!("cluster {name}: removed");
    }

    /// Records an Event about the object that carries the kubeconfig.
    fn record(&self, found: &Found, kind: EventType, reason: &str, note: &str) {
        let Some(carrier) = &found.carrier else {
            return;
        };
        if !self.leadership.is_leading() {
            return;
        }
        self.recorder.record(RecordedEvent {
            regarding: ObjectRef {
                kind: carrier.kind.clone(),
                name: carrier.name.clone(),
                uid: Some(carrier.uid.clone()),
                version: None,
            },
            related: None,
            author: Author::Host,
            kind,
            reason: reason.to_owned(),
            action: "Connect".to_owned(),
            note: cut(note, NOTE).to_owned(),
            reporting_controller: "vmhost/clusters".to_owned(),
        });
    }
}
