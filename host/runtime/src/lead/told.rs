//! Tells which host leads, in Events about the Lease, as client-go does.
//!
//! They are for people: one that cannot be written is counted like any other Event, and changes
//! nothing. This module must not know how a leader is elected.

use std::time::Duration;

use vmhost_cluster::{Author, ObjectRef, RecordedEvent, Recorder};
use vmhost_core::{EventType, Gvk, ObjectName};

/// Reason and action of these Events: client-go's.
const LEADER_ELECTION: &str = "LeaderElection";

/// How long the last Event may take when the host ends. It is part of the time in which the
/// election has to end.
const FLUSH: Duration = Duration::from_secs(1);

/// Writes Events about one Lease.
pub(super) struct Told {
    recorder: Recorder,
    lease: ObjectName,
    identity: String,
    /// The Lease's uid, as it was last read or written.
    uid: Option<String>,
}

impl Told {
    /// Tells of this candidate for the Lease.
    pub(super) fn new(recorder: Recorder, lease: ObjectName, identity: &str) -> Self {
        Self {
            recorder,
            lease,
            identity: identity.to_owned(),
            uid: None,
        }
    }

    /// Notes the uid of the Lease, by which `kubectl describe` finds its Events.
    pub(super) fn saw(&mut self, uid: Option<&str>) {
        if self.uid.as_deref() != uid {
            self.uid = uid.map(str::to_owned);
        }
    }

    /// Records that this host leads from now on, or does not lead any more.
    pub(super) fn tell(&self, leads: bool) {
        let what = match leads {
            true => "became leader",
            false => "stopped leading",
        };
        self.recorder.record(RecordedEvent {
            regarding: ObjectRef {
                kind: Gvk::new("coordination.k8s.io", "v1", "Lease"),
                name: self.lease.clone(),
                uid: self.uid.clone(),
                version: None,
            },
            related: None,
            author: Author::Host,
            kind: EventType::Normal,
            reason: LEADER_ELECTION.to_owned(),
            action: LEADER_ELECTION.to_owned(),
            note: format!("{} {what}", self.identity),
            reporting_controller: "vmhost/leader-election".to_owned(),
        });
    }

    /// Waits a moment until what was recorded is written.
    pub(super) async fn flush(&self) {
        self.recorder.flush(FLUSH).await;
    }
}
