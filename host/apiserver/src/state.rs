//! The cluster: everything that outlives a front.
//!
//! Owns the lock around store and registry, the change notification, and the secrets of the cluster
//! (its certificate authority and its token). Must not know HTTP.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::{Notify, watch};

use crate::builtin::NAMESPACES;
use crate::error::Error;
use crate::meta;
use crate::object::Key;
use crate::registry::Registry;
use crate::store::Store;
use crate::tls::Authority;

/// A cluster in memory. It outlives the fronts that serve it: a test may kill one and start
/// another.
#[derive(Debug)]
pub struct State {
    /// A panic in a write leaves at worst that write undone, because objects are replaced as a
    /// whole.
    inner: Mutex<Inner>,
    changed: watch::Sender<u64>,
    garbage: Notify,
    authority: OnceLock<Authority>,
    token: String,
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
    /// Only a part of a cluster's objects is here, which another server has checked.
    pub partial: bool,
}

impl State {
    /// Returns an empty cluster with the four namespaces of every cluster and no custom kinds.
    #[must_use]
    pub fn new() -> Arc<State> {
        let mut inner = Inner {
            store: Store::new(),
            registry: Arc::new(Registry::new()),
            partial: false,
        };
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
            inner
                .store
                .put(&NAMESPACES.into(), Key::new("", name), namespace);
        }
        State::of(inner)
    }

    /// Returns a part of a cluster, without any object yet.
    pub(crate) fn partial() -> Arc<State> {
        let mut store = Store::new();
        store.owners.assume_others();
        State::of(Inner {
            store,
            registry: Arc::new(Registry::new()),
            partial: true,
        })
    }

    fn of(inner: Inner) -> Arc<State> {
        let (changed, _) = watch::channel(inner.store.version());
        let token = format!(
            "{}{}",
            uuid::Uuid::new_v4().simple(),
            uuid::Uuid::new_v4().simple()
        );
        Arc::new(State {
            inner: Mutex::new(inner),
            changed,
            garbage: Notify::new(),
            authority: OnceLock::new(),
            token,
        })
    }

    /// Drops the history of writes, like a compaction of etcd: the next watch from an older
    /// version, and the next page of an older list, is answered with 410.
    pub fn compact(&self) {
        self.inner.lock().store.compact();
        self.changed.send_modify(|_| ());
    }

    /// Returns a copy of all data, like a snapshot of etcd.
    #[must_use]
    pub fn back_up(&self) -> Backup {
        Backup(self.inner.lock().clone())
    }

    /// Restores all data, including the resource version, without notifying watches, as with etcd.
    /// Call it while no front serves the cluster, as an administrator stops the API servers.
    pub fn restore(&self, backup: &Backup) {
        *self.inner.lock() = backup.0.clone();
        self.changed.send_modify(|_| ());
    }

    /// Returns the token that a front accepts if its options name none.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Returns the certificate authority, which is created when the first front starts.
    pub(crate) fn authority(&self) -> Result<&Authority, Error> {
        match self.authority.get() {
            Some(authority) => Ok(authority),
            None => {
                let made = Authority::new()?;
                Ok(self.authority.get_or_init(|| made))
            }
        }
    }

    pub(crate) fn read<R>(&self, read: impl FnOnce(&Inner) -> R) -> R {
        read(&self.inner.lock())
    }

    /// Runs a write and wakes the watches.
    pub(crate) fn write<R>(&self, write: impl FnOnce(&mut Inner) -> R) -> R {
        let mut inner = self.inner.lock();
        let before = inner.store.version();
        let result = write(&mut inner);
        let after = inner.store.version();
        let garbage = inner.store.owners.has_work();
        drop(inner);
        if garbage {
            self.garbage.notify_one();
        }
        if after != before {
            self.changed.send_replace(after);
        }
        result
    }

    /// Waits until a write leaves work for garbage collection.
    pub(crate) async fn garbage(&self) {
        self.garbage.notified().await;
    }

    /// Returns a receiver that is notified of writes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}
