//! Informers: each keeps one store equal to what the API server shows of one kind, namespace and selector, and says so to its subscribers.
//!
//! It owns what a subscriber sees. It must not know queues or controllers: a subscriber is told what changed after the store has, and looks further objects
//! up itself. Which watches run and who shares them is in `groups`, a subscriber's place in `hold`, the list and watch themselves in `task`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use vmhost_core::{Gvk, ObjectName, Snapshot};

use crate::connect::Connection;
use crate::store::{Index, Store};
use crate::text::{IngestError, Wanted};

mod failure;
mod feed;
mod fixture;
mod follow;
mod groups;
mod hold;
mod lines;
mod page;
mod query;
mod running;
mod state;
mod table;
mod task;

#[doc(hidden)]
pub use feed::Feed;
pub use fixture::Fixture;
use groups::Inner;
use hold::Hold;
pub(crate) use running::Shared;
pub use state::{InformerState, Phase};

/// How long a watch may bring neither an event nor a bookmark before it is cut and taken up where
/// it was: two of kube-apiserver's bookmarks, which come once a minute, and half a minute more.
pub const WATCH_SILENCE: Duration = Duration::from_secs(150);

/// What an informer watches, and what of it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WatchSpec {
    /// The kind.
    pub kind: Gvk,
    /// One namespace; none: all, or a cluster-scoped kind. It is left out for a kind that turns out to be cluster-scoped.
    pub namespace: Option<String>,
    /// Only objects with these labels.
    pub label_selector: Option<String>,
    /// Only objects with these fields.
    pub field_selector: Option<String>,
    /// Which fields the store keeps; those that the indexes name are kept in any case.
    pub wanted: Wanted,
    /// By what the store's objects can be looked up, besides name and namespace.
    pub indexes: BTreeSet<Index>,
}

impl WatchSpec {
    /// All objects of a kind, whole, without indexes.
    pub fn of(kind: Gvk) -> Self {
        Self {
            kind,
            namespace: None,
            label_selector: None,
            field_selector: None,
            wanted: Wanted::All,
            indexes: BTreeSet::new(),
        }
    }

    /// What a store has to keep for it.
    fn keeps(&self) -> Wanted {
        let paths = self.indexes.iter().map(|index| index.path().root_dotted());
        self.wanted.union(&Wanted::Fields(paths.collect()))
    }
}

/// Why a subscriber is told a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// The first list shows it.
    Initial,
    /// It was added or changed.
    Changed,
    /// It is gone.
    Deleted,
    /// A relist, or another store in the place of this one, found it added or changed.
    Relisted,
    /// The API server's versions went back, since etcd was restored from a backup. The object may
    /// be older than what was told before, or the same.
    Rewound,
}

/// What changed in a store. Only the name is to be kept: a snapshot that is held holds its memory.
#[derive(Clone, Copy, Debug)]
pub struct Notice<'a> {
    /// Namespace and name.
    pub name: &'a ObjectName,
    /// Why.
    pub cause: Cause,
    /// The object's version; of a deletion, that of the deletion, or of the list that no longer shows it.
    pub version: u64,
    /// The object's uid.
    pub uid: &'a str,
    /// What the store showed under this name before; none: nothing, or the subscriber has just joined. It may have another uid: a deletion and a creation again
    /// that came as one change.
    pub old: Option<&'a Snapshot>,
    /// What it shows now; none: it is gone.
    pub new: Option<&'a Snapshot>,
}

impl<'a> Notice<'a> {
    /// The store shows this now.
    fn shown(cause: Cause, old: Option<&'a Snapshot>, new: &'a Snapshot) -> Self {
        Self {
            name: &new.name,
            cause,
            version: new.version,
            uid: new.uid(),
            old,
            new: Some(new),
        }
    }

    /// The store no longer shows this.
    fn gone(old: &'a Snapshot, version: u64) -> Self {
        Self {
            name: &old.name,
            cause: Cause::Deleted,
            version,
            uid: old.uid(),
            old: Some(old),
            new: None,
        }
    }
}

/// Who wants to know what changed in a store. Called after the store has changed, in the order of the changes and never twice at once for one subscription:
/// be quick, never wait, and do not subscribe from within (dropping a subscription is fine).
pub trait Subscriber: Send + Sync {
    /// Something changed.
    fn notice(&self, notice: Notice<'_>);
}

/// Who wants to know how an informer does: logs and metrics. Be quick.
pub trait InformerObserver: Send + Sync {
    /// Its phase changed (not once per retry). `state` displays as one line for the log.
    fn state(&self, kind: &Gvk, state: &InformerState);
    /// It lists again; why.
    fn relist(&self, _kind: &Gvk, _reason: &str) {}
    /// Three times in a row the server had forgotten a list's version before a watch from it
    /// brought anything. The informer lists again, less and less often. Called once until a watch
    /// has brought something.
    fn keeps_expiring(&self, _kind: &Gvk, _reason: &str) {}
    /// The API server's newest version, `to`, is lower than the store's, `from`. Its next list is
    /// believed, and each object of it is told as [`Cause::Rewound`].
    fn rewound(&self, _kind: &Gvk, _from: u64, _to: u64) {}
    /// An object could not be kept. The others are not affected.
    fn skipped(&self, _kind: &Gvk, _error: &IngestError) {}
    /// A request failed; it will be tried again. Called for each try.
    fn failed(&self, _kind: &Gvk, _error: &str) {}
}

/// Nobody wants to know.
#[derive(Debug)]
pub struct NoInformerObserver;

impl InformerObserver for NoInformerObserver {
    fn state(&self, _kind: &Gvk, _state: &InformerState) {}
}

/// All informers of one connection. There is one watch for each kind, namespace, label selector and field selector, whatever fields and indexes its subscribers
/// want: it keeps what any of them wants.
pub struct Informers {
    inner: Arc<Inner>,
}

/// One subscriber's hold on a store. Dropping the last one of a watch stops it and frees the store.
///
/// The store may be replaced by another one of the same watch that keeps more or less, because others came or went: see `store`.
pub struct Subscription {
    inner: Arc<Inner>,
    hold: Arc<Hold>,
}

impl Informers {
    /// No informer runs yet. They will run on the tokio runtime that this is called on.
    pub fn new(connection: Connection, observer: Arc<dyn InformerObserver>) -> Self {
        Self::with_silence(connection, observer, WATCH_SILENCE)
    }

    /// [`Informers::new`] with another limit than [`WATCH_SILENCE`].
    pub fn with_silence(
        connection: Connection,
        observer: Arc<dyn InformerObserver>,
        silence: Duration,
    ) -> Self {
        Self {
            inner: Inner::new(connection, observer, silence, Handle::current()),
        }
    }

    /// Starts an informer, or joins the one that runs. A subscriber that joins late gets an `Initial` notice for each object that is there, before this returns.
    ///
    /// If more is wanted than the running one keeps, another one starts with what all want; the new subscription uses its store at once, and the others are moved
    /// to it as soon as it shows all that their store shows.
    pub fn subscribe(
        &self,
        spec: WatchSpec,
        subscriber: Option<Arc<dyn Subscriber>>,
    ) -> Subscription {
        let hold = self.inner.join(spec, subscriber);
        hold.attach();
        Subscription {
            inner: self.inner.clone(),
            hold,
        }
    }

    /// How each running informer does, in the order of their start.
    pub fn states(&self) -> Vec<InformerState> {
        self.inner.states()
    }
}

impl Subscription {
    /// The store of the moment. It keeps at least what this subscription asked for. One that was replaced is closed when the last subscription has left it; from
    /// then on it is a dead copy, and whoever waits on it wakes without having got what was waited for. So ask for the store each time, and wait on the
    /// subscription. No change is missed by a replacement: what the new store shows differently is told, as `Relisted` or `Deleted`, before anything else.
    pub fn store(&self) -> Arc<Store> {
        self.hold.store()
    }

    /// What was asked for.
    pub fn spec(&self) -> &WatchSpec {
        self.hold.wish()
    }

    /// How the informer does.
    pub fn state(&self) -> InformerState {
        self.hold.state()
    }

    /// Resolves when the first list has ended, of whichever store; or there is no informer any more.
    pub async fn synced(&self) {
        let mut next = Some(self.store());
        while let Some(store) = next {
            store.synced().await;
            next = self.successor(&store);
        }
    }

    /// As `Store::caught_up`, of the store that it is in the end. A store only takes another one's place when it is complete up to the same version.
    pub async fn caught_up(&self, version: u64) {
        let mut next = Some(self.store());
        while let Some(store) = next {
            store.caught_up(version).await;
            next = self.successor(&store);
        }
    }

    /// As `Store::wait_until`, of the store that it is in the end.
    pub async fn wait_until(&self, mut condition: impl FnMut(&Store) -> bool) {
        let mut next = Some(self.store());
        while let Some(store) = next {
            store.wait_until(&mut condition).await;
            next = self.successor(&store);
        }
    }

    /// The store that has replaced this one meanwhile.
    fn successor(&self, store: &Arc<Store>) -> Option<Arc<Store>> {
        Some(self.store()).filter(|present| !Arc::ptr_eq(present, store))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.inner.leave(&self.hold);
    }
}

#[cfg(test)]
mod tests;
