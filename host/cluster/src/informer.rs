//! Informers: each keeps one store equal to what the API server shows of one kind, namespace and selector, and says so to its subscribers.
//!
//! It owns which watches run and who shares them. It must not know queues or controllers: a subscriber is told a name, after the store has changed, and looks
//! the object up itself. The list and watch themselves are in `task`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use vmhost_core::{Gvk, ObjectName};

use crate::connect::Connection;
use crate::store::Store;
use crate::text::{IngestError, Wanted};

mod follow;
mod lines;
mod query;
mod state;
mod task;

pub use state::{InformerState, Phase};

/// What an informer watches, and what of it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WatchSpec {
    /// The kind.
    pub kind: Gvk,
    /// One namespace; none: all, or a cluster-scoped kind.
    pub namespace: Option<String>,
    /// Only objects with these labels.
    pub label_selector: Option<String>,
    /// Only objects with these fields.
    pub field_selector: Option<String>,
    /// Which fields the store keeps.
    pub wanted: Wanted,
}

impl WatchSpec {
    /// Can whoever asked for `other` use this one's store?
    fn serves(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.namespace == other.namespace
            && self.label_selector == other.label_selector
            && self.field_selector == other.field_selector
            && self.wanted.covers(&other.wanted)
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
    /// A relist found it added or changed.
    Relisted,
}

/// What changed in a store. Only the name is to be kept.
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
}

/// Who wants to know what changed in a store. Called after the store has changed, on the informer's task: be quick, and never wait.
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

/// All informers of one connection. Subscribers whose specifications agree share one watch and one store.
pub struct Informers {
    connection: Connection,
    observer: Arc<dyn InformerObserver>,
    handle: Handle,
    running: Mutex<Vec<Weak<Running>>>,
}

/// One subscriber's hold on a store. Dropping the last one stops the informer and frees the store.
pub struct Subscription {
    running: Arc<Running>,
    subscriber: Option<u64>,
}

/// What all subscriptions of one informer share; its end is the informer's.
struct Running {
    shared: Arc<Shared>,
    stop: CancellationToken,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// What an informer's task and its subscriptions share.
pub(crate) struct Shared {
    spec: WatchSpec,
    store: Arc<Store>,
    observer: Arc<dyn InformerObserver>,
    /// Replaced as a whole, so that nobody is called under the lock.
    subscribers: Mutex<Arc<Subscribers>>,
    progress: Mutex<state::Progress>,
}

#[derive(Clone, Default)]
struct Subscribers {
    next: u64,
    list: Vec<(u64, Arc<dyn Subscriber>)>,
}

impl Informers {
    /// No informer runs yet. They will run on the tokio runtime that this is called on.
    pub fn new(connection: Connection, observer: Arc<dyn InformerObserver>) -> Self {
        Self {
            connection,
            observer,
            handle: Handle::current(),
            running: Mutex::default(),
        }
    }

    /// Starts an informer, or joins one that keeps all that is wanted. A subscriber that joins late gets an `Initial` notice for each object that is there.
    pub fn subscribe(
        &self,
        spec: WatchSpec,
        subscriber: Option<Arc<dyn Subscriber>>,
    ) -> Subscription {
        let running = self.running_for(spec);
        let subscriber = subscriber.map(|subscriber| running.shared.add(subscriber));
        Subscription {
            running,
            subscriber,
        }
    }

    /// How each running informer does.
    pub fn states(&self) -> Vec<InformerState> {
        self.lock()
            .iter()
            .filter_map(Weak::upgrade)
            .map(|running| running.shared.state())
            .collect()
    }

    fn running_for(&self, spec: WatchSpec) -> Arc<Running> {
        let mut list = self.lock();
        list.retain(|running| running.strong_count() > 0);
        if let Some(running) = list
            .iter()
            .filter_map(Weak::upgrade)
            .find(|running| running.shared.spec.serves(&spec))
        {
            return running;
        }
        let shared = Arc::new(Shared {
            spec,
            store: Arc::new(Store::default()),
            observer: self.observer.clone(),
            subscribers: Mutex::default(),
            progress: Mutex::default(),
        });
        let stop = CancellationToken::new();
        let task = task::Task::new(self.connection.clone(), shared.clone());
        self.handle.spawn({
            let (stop, store) = (stop.clone(), Closing(shared.store.clone()));
            async move {
                stop.run_until_cancelled(task.run()).await;
                drop(store);
            }
        });
        let running = Arc::new(Running { shared, stop });
        list.push(Arc::downgrade(&running));
        running
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<Running>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes the store however its task ends, so that nobody waits for ever.
struct Closing(Arc<Store>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl Subscription {
    /// The store. It outlives the subscription only as a dead copy.
    pub fn store(&self) -> &Arc<Store> {
        &self.running.shared.store
    }

    /// What is watched: of an informer that was joined it may keep more than was asked for.
    pub fn spec(&self) -> &WatchSpec {
        &self.running.shared.spec
    }

    /// How the informer does.
    pub fn state(&self) -> InformerState {
        self.running.shared.state()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(id) = self.subscriber {
            let mut subscribers = self.running.shared.subscribers();
            Arc::make_mut(&mut subscribers)
                .list
                .retain(|(other, _)| *other != id);
        }
    }
}

impl Shared {
    fn subscribers(&self) -> MutexGuard<'_, Arc<Subscribers>> {
        self.subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds first and looks afterwards: what changes in between is told twice, and nothing is missed.
    fn add(&self, subscriber: Arc<dyn Subscriber>) -> u64 {
        let id = {
            let mut subscribers = self.subscribers();
            let subscribers = Arc::make_mut(&mut subscribers);
            subscribers.next += 1;
            subscribers
                .list
                .push((subscribers.next, subscriber.clone()));
            subscribers.next
        };
        let mut there = Vec::with_capacity(self.store.len());
        self.store.for_each(|snapshot| there.push(snapshot.clone()));
        for snapshot in there {
            let (version, uid) = (snapshot.version, &*snapshot.uid);
            subscriber.notice(Notice {
                name: &snapshot.name,
                cause: Cause::Initial,
                version,
                uid,
            });
        }
        id
    }

    /// Tells all. The store has changed already.
    fn notify(&self, notice: Notice<'_>) {
        let subscribers = self.subscribers().clone();
        for (_, subscriber) in &subscribers.list {
            subscriber.notice(notice);
        }
    }
}

#[cfg(test)]
mod tests;
