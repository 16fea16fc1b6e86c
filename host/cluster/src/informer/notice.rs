//! Notices to subscribers. This module must not know what a subscriber does with them.

use vmhost_core::{ObjectName, Snapshot};

/// Why a subscriber gets a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NoticeCause {
    /// The first list shows the object.
    Initial,
    /// The object was added or changed.
    Changed,
    /// The object is gone.
    Deleted,
    /// A relist, or the replacement of the store, found the object added or changed.
    Relisted,
    /// The API server's versions went back, because etcd was restored from a backup. The object may
    /// be older than in the last notice, or equal.
    Rewound,
}

/// A change of a store. A subscriber should keep only the name: a held snapshot keeps its memory.
#[derive(Clone, Copy, Debug)]
pub struct Notice<'a> {
    /// Namespace and name.
    pub name: &'a ObjectName,
    /// Why the notice is sent.
    pub cause: NoticeCause,
    /// The object's version; for a deletion the version of the deletion, or of the list that no
    /// longer shows the object.
    pub version: u64,
    /// The object's uid.
    pub uid: &'a str,
    /// What the store showed under this name before; `None` if it showed nothing, or the subscriber
    /// has just joined. The uid may differ, if a deletion and a re-creation arrived as one change.
    pub old: Option<&'a Snapshot>,
    /// What the store shows now; `None` if the object is gone.
    pub new: Option<&'a Snapshot>,
    /// The text of the object's `metadata.managedFields`, if a watch event brought the object.
    pub managed: Option<&'a str>,
}

impl<'a> Notice<'a> {
    /// Builds the notice of an object that the store shows now.
    pub(super) fn shown(cause: NoticeCause, old: Option<&'a Snapshot>, new: &'a Snapshot) -> Self {
        Self {
            name: &new.name,
            cause,
            version: new.version,
            uid: new.uid(),
            old,
            new: Some(new),
            managed: None,
        }
    }

    /// Builds the notice of an object that the store no longer shows.
    pub(super) fn gone(old: &'a Snapshot, version: u64) -> Self {
        Self {
            name: &old.name,
            cause: NoticeCause::Deleted,
            version,
            uid: old.uid(),
            old: Some(old),
            new: None,
            managed: None,
        }
    }
}

/// Receives the changes of a store. Called after the store has changed, in the order of the
/// changes, and never concurrently for one subscription. Implementations must be quick, must not
/// wait, and must not subscribe from within (dropping a subscription is fine).
pub trait Subscriber: Send + Sync {
    /// Handles one change.
    fn notice(&self, notice: Notice<'_>);
}
