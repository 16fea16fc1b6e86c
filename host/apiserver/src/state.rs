//! The cluster: everything that outlives a front.
//!
//! Owns the lock around store and registry, whom a write wakes, and that a write is in the
//! journal, if there is one, before anybody hears of it. Must not know HTTP, or the form of a
//! journal.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::admission::registered::Registered;
use crate::builtin::{NAMESPACES, OFTEN_READ};
use crate::conversion::cache::Cache;
use crate::error::Error;
use crate::events::Events;
use crate::journal::Journal;
use crate::meta;
use crate::object::Key;
use crate::outside::Outside;
use crate::registry::Registry;
use crate::secrets::Secrets;
use crate::store::Store;
use crate::wakes::Wakes;

/// A cluster in memory. It outlives the fronts that serve it: a test may kill one and start
/// another.
#[derive(Debug)]
pub struct State {
    /// A panic in a write leaves at worst that write undone, because objects are replaced as a
    /// whole.
    inner: Mutex<Inner>,
    /// The last version, for requests that wait for one.
    reached: watch::Sender<u64>,
    wakes: Wakes,
    garbage: Notify,
    secrets: Secrets,
    journal: Option<Mutex<Journal>>,
    /// The connections to webhooks.
    outside: Outside,
    /// What conversion webhooks made of stored objects.
    converted: Cache,
    /// What the watches have made of the last changes.
    events: Events,
    /// Set when the journal cannot be written. From then on no request is answered: an object may
    /// be in a state that is lost.
    failed: CancellationToken,
}

/// A copy of the cluster's data at one moment.
#[derive(Clone, Debug)]
pub struct Backup(Inner);

/// The data behind the lock. A write is a plain function: it reads, decides and stores without
/// interruption.
#[derive(Clone, Debug)]
pub(crate) struct Inner {
    pub store: Store,
    pub registry: Arc<Registry>,
    /// The webhooks and policies that decide over requests.
    pub registered: Arc<Registered>,
    /// Whether the state holds only a part of a cluster's objects. That cluster's server has
    /// already checked them.
    pub partial: bool,
    /// Whether the server does what controllers of a real cluster do to stored objects.
    pub controllers: bool,
}

impl State {
    /// Returns an empty cluster with the four namespaces of every cluster and no custom kinds.
    #[must_use]
    pub fn new() -> Arc<State> {
        let mut inner = Inner::of(Store::new());
        inner.create_namespaces();
        State::of(inner, Secrets::default(), None)
    }

    /// Returns the cluster that a folder keeps, or a new one that the folder will keep: its
    /// objects, its certificate authority and its tokens. A write is in a file of the folder before
    /// it is acknowledged, so that it outlives the process however that ends.
    pub fn open(folder: &Path) -> Result<Arc<State>, Error> {
        let (journal, store) = Journal::open(folder)?;
        let secrets = Secrets::open(&folder.join("secrets.json"))?;
        let mut inner = Inner::of(store);
        inner.store.keep_pending();
        let state = State::of(inner, secrets, Some(journal));
        state.write(|inner| {
            if inner.store.version() == 1 {
                inner.create_namespaces();
            }
        });
        Ok(state)
    }

    /// Creates the state of a part of a cluster, without any object.
    pub(crate) fn partial() -> Arc<State> {
        let mut store = Store::new();
        store.owners.assume_others();
        let inner = Inner {
            partial: true,
            ..Inner::of(store)
        };
        State::of(inner, Secrets::default(), None)
    }

    fn of(inner: Inner, secrets: Secrets, journal: Option<Journal>) -> Arc<State> {
        let (reached, _) = watch::channel(inner.store.version());
        Arc::new(State {
            inner: Mutex::new(inner),
            reached,
            wakes: Wakes::default(),
            garbage: Notify::new(),
            secrets,
            journal: journal.map(Mutex::new),
            outside: Outside::default(),
            converted: Cache::default(),
            events: Events::default(),
            failed: CancellationToken::new(),
        })
    }

    /// Drops the history of writes, like a compaction of etcd: the next watch from an older
    /// version, and the next page of an older list, is answered with 410.
    pub fn compact(&self) {
        self.inner.lock().store.compact();
        self.wakes.wake_all();
    }

    /// Returns a copy of all data, like a snapshot of etcd.
    #[must_use]
    pub fn back_up(&self) -> Backup {
        Backup(self.inner.lock().clone())
    }

    /// Restores all data, including the resource version, without notifying watches, as with etcd.
    /// Call it while no front serves the cluster, as an administrator stops the API servers.
    pub fn restore(&self, backup: &Backup) {
        let mut inner = self.inner.lock();
        *inner = backup.0.clone();
        if let Some(journal) = &self.journal {
            // The copy may be of a cluster without a journal.
            inner.store.keep_pending();
            inner.store.take_pending();
            // Nothing before this moment counts any more.
            let replaced = journal.lock().replace(&inner.store);
            self.check(replaced);
        }
        // Versions are given out again, to other states of the same objects.
        self.converted.clear();
        let version = inner.store.version();
        drop(inner);
        self.reached.send_replace(version);
        self.wakes.wake_all();
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    pub(crate) fn outside(&self) -> &Outside {
        &self.outside
    }

    pub(crate) fn converted(&self) -> &Cache {
        &self.converted
    }

    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    pub(crate) fn read<R>(&self, read: impl FnOnce(&Inner) -> R) -> R {
        read(&self.inner.lock())
    }

    /// Runs a write and wakes the watches that it concerns.
    pub(crate) fn write<R>(&self, write: impl FnOnce(&mut Inner) -> R) -> R {
        let mut inner = self.inner.lock();
        let before = inner.store.version();
        let served = inner.registry.clone();
        let result = write(&mut inner);
        let after = inner.store.version();
        let changes = inner.store.after(before);
        let is_served_alike = Arc::ptr_eq(&served, &inner.registry);
        if !inner.controllers {
            inner.store.owners.forget();
        }
        let garbage = inner.store.owners.has_work();
        self.keep(&mut inner);
        drop(inner);
        if self.has_failed() {
            // Nobody hears of a write that may be lost.
            return result;
        }
        if garbage {
            self.garbage.notify_one();
        }
        if after != before {
            self.reached.send_replace(after);
        }
        match changes.filter(|_| is_served_alike) {
            Some(changes) => self.wakes.wake(&changes),
            // A watch ends with its kind; and nobody knows any more what a huge write changed.
            None => self.wakes.wake_all(),
        }
        result
    }

    /// Appends the changes of a write to the journal.
    fn keep(&self, inner: &mut Inner) {
        let changes = inner.store.take_pending();
        if let Some(journal) = self.journal.as_ref().filter(|_| !changes.is_empty()) {
            let mut journal = journal.lock();
            let kept = journal.append(&changes);
            self.check(kept.and_then(|()| journal.tidy(&inner.store)));
        }
    }

    fn check(&self, kept: std::io::Result<()>) {
        if let Err(error) = kept {
            tracing::error!(%error, "cannot keep a write of the cluster; no request is answered from now on");
            self.failed.cancel();
        }
    }

    /// Acts as if a write could not be kept.
    #[cfg(test)]
    pub(crate) fn fail(&self) {
        self.failed.cancel();
    }

    /// Returns whether a write could not be kept.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_cancelled()
    }

    /// Waits until a write cannot be kept, for instance because the disk is full. What was
    /// acknowledged before is safe; the process should end, and open the folder again when the
    /// cause is gone.
    pub async fn failed(&self) {
        self.failed.cancelled().await;
    }

    /// Waits until a write leaves work for garbage collection.
    pub(crate) async fn garbage(&self) {
        self.garbage.notified().await;
    }

    /// Returns a receiver of the last version.
    pub(crate) fn reached(&self) -> watch::Receiver<u64> {
        self.reached.subscribe()
    }

    /// Returns a receiver that is notified of the writes to a storage, in one namespace or in all,
    /// and when kinds are served or compacted.
    pub(crate) fn changes(
        &self,
        storage: &Arc<str>,
        namespace: Option<&str>,
    ) -> watch::Receiver<()> {
        self.wakes.wait(storage, namespace)
    }
}

impl Inner {
    fn of(mut store: Store) -> Inner {
        store.keep_values(OFTEN_READ);
        Inner {
            registered: Registered::of(&store),
            store,
            registry: Arc::new(Registry::new()),
            partial: false,
            controllers: true,
        }
    }

    /// Creates the namespaces of every cluster.
    fn create_namespaces(&mut self) {
        for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            let namespace = json!({
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {
                    "name": name,
                    "uid": meta::new_uid(),
                    "creationTimestamp": meta::now(),
                    "labels": { "kubernetes.io/metadata.name": name },
                },
                "spec": { "finalizers": ["kubernetes"] },
                "status": { "phase": "Active" },
            });
            self.store
                .put(&NAMESPACES.into(), Key::new("", name), namespace);
        }
    }
}
