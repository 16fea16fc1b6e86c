//! **Watch.** Informers: each keeps one store equal to what the API server shows of one kind,
//! namespace and selector, and notifies its subscribers.
//!
//! This module owns what a subscriber sees. It must not know queues or controllers: a subscriber is
//! notified after the store has changed, and looks up further objects itself. `groups` decides
//! which watches run and which subscriptions share them, `hold` decides which informer a
//! subscription uses, and `task` runs the list and watch.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::discovery::KindNames;
use crate::reader::Reader;
use crate::store::Store;

mod failure;
mod feed;
mod fixture;
mod follow;
mod groups;
mod hold;
mod lines;
mod notice;
mod observer;
mod page;
mod query;
mod running;
mod spec;
mod state;
mod table;
mod task;
mod whole;

#[doc(hidden)]
pub use feed::Feed;
pub use fixture::Fixture;
use groups::Inner;
use hold::Hold;
pub use notice::{Notice, NoticeCause, Subscriber};
pub use observer::{InformerObserver, NoInformerObserver};
pub use spec::WatchSpec;
pub use state::{InformerState, Phase};
pub use whole::Whole;

/// How long a watch may be silent (neither event nor bookmark) before it is closed and resumed at
/// its position: two bookmark intervals of kube-apiserver, which sends one per minute, plus half a
/// minute.
pub const WATCH_SILENCE: Duration = Duration::from_secs(150);

/// All informers of one connection. There is one watch for each kind, namespace, label selector and
/// field selector: it keeps the fields and indexes of all its subscribers.
pub struct Informers {
    inner: Arc<Inner>,
}

/// One subscriber's handle to a store. Dropping the last handle to a watch stops the watch and
/// frees the store.
///
/// The store may be replaced by another store of the same watch that keeps more or less, because
/// other subscribers came or went: see `store`.
pub struct Subscription {
    inner: Arc<Inner>,
    hold: Arc<Hold>,
}

impl Informers {
    /// Creates a set without informers. Informers run on the current tokio runtime.
    pub fn new(reader: Reader, observer: Arc<dyn InformerObserver>) -> Self {
        Self::with_silence(reader, observer, WATCH_SILENCE)
    }

    /// As [`Informers::new`], with another limit than [`WATCH_SILENCE`].
    pub fn with_silence(
        reader: Reader,
        observer: Arc<dyn InformerObserver>,
        silence: Duration,
    ) -> Self {
        Self {
            inner: Inner::new(reader, observer, silence, Handle::current()),
        }
    }

    /// Starts an informer, or joins a running one. A subscriber that joins late gets an `Initial`
    /// notice for each existing object before this returns.
    ///
    /// If the subscription wants more than the running informer keeps, another one starts that
    /// keeps everything wanted. The new subscription uses its store at once; the others move to it
    /// as soon as it shows everything that their store shows.
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

    /// Ends all informers: their stores are closed, and never change again. For a cluster that is
    /// not used any more; what is subscribed afterwards ends at once, and sends no request.
    pub fn stop(&self) {
        self.inner.stop();
    }

    /// The state of each running informer, in the order of their start.
    pub fn states(&self) -> Vec<InformerState> {
        self.inner.states()
    }
}

impl Subscription {
    /// The current store. It keeps at least what this subscription asked for. A replaced store is
    /// closed when the last subscription has left it; from then on it is a dead copy, and its
    /// waiters wake without having reached their condition. So get the store anew each time, and
    /// wait on the subscription. A replacement misses no change: differences of the new store are
    /// notified, as `Relisted` or `Deleted`, before anything else.
    pub fn store(&self) -> Arc<Store> {
        self.hold.store()
    }

    /// The requested watch.
    pub fn spec(&self) -> &WatchSpec {
        self.hold.wish()
    }

    /// The informer's state.
    pub fn state(&self) -> InformerState {
        self.hold.state()
    }

    /// How users call the kind; `None` before the API server has told it.
    pub fn names(&self) -> Option<Arc<KindNames>> {
        self.hold.names()
    }

    /// Waits until the first list has ended, whichever store shows it, or the informer is gone.
    pub async fn synced(&self) {
        let mut next = Some(self.store());
        while let Some(store) = next {
            store.synced().await;
            next = self.successor(&store);
        }
    }

    /// As `Store::caught_up`, on the last of the subscription's stores. A store replaces another
    /// one only when it is complete up to the same version.
    pub async fn caught_up(&self, version: u64) {
        let mut next = Some(self.store());
        while let Some(store) = next {
            store.caught_up(version).await;
            next = self.successor(&store);
        }
    }

    /// As `Store::wait_until`, on the last of the subscription's stores.
    pub async fn wait_until(&self, mut condition: impl FnMut(&Store) -> bool) {
        let mut next = Some(self.store());
        while let Some(store) = next {
            store.wait_until(&mut condition).await;
            next = self.successor(&store);
        }
    }

    /// The store that has replaced this one, if any.
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
