//! Places for what costs memory and time on the way to a component: reading it from a registry,
//! and compiling it. The Plugins of one namespace share a few, so that a thousand of them, or a
//! registry that never comes to an end, hold up nobody else. It must not know what is done in a
//! place.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use vmhost_engine::at_once;

use crate::conditions::Stop;

/// How many components of one namespace are read at once. Each one has up to `--component-limit`.
const READ: usize = 4;

/// How many components of one namespace are compiled at once.
const COMPILED: usize = 1;

/// How long a place is waited for, before the look ends and a later one goes on.
const PATIENCE: Duration = Duration::from_secs(60);

/// The places for one purpose.
pub(crate) struct Places {
    /// The places of each namespace.
    each: usize,
    /// All places.
    all: Arc<Semaphore>,
    /// The places by namespace.
    namespaces: Mutex<HashMap<String, Weak<Semaphore>>>,
}

/// A place. It is free again when this is dropped.
pub(crate) struct Place {
    _permits: [OwnedSemaphorePermit; 2],
}

impl Places {
    /// Places for what is read.
    pub(crate) fn readers() -> Self {
        Self::new(READ, Semaphore::MAX_PERMITS)
    }

    /// Places for what is compiled. One compiler is left to plugins that are no objects.
    pub(crate) fn compilers() -> Self {
        Self::new(COMPILED, (at_once() - 1).max(1))
    }

    fn new(each: usize, all: usize) -> Self {
        Self {
            each,
            all: Arc::new(Semaphore::new(all)),
            namespaces: Mutex::default(),
        }
    }

    /// Waits for a place of a namespace. The condition of this type says if there is none.
    pub(crate) async fn take(&self, namespace: &str, kind: &'static str) -> Result<Place, Stop> {
        let (own, all) = (self.of(namespace), self.all.clone());
        let taking = async move {
            // Nobody closes them.
            let own = own.acquire_owned().await.ok()?;
            let all = all.acquire_owned().await.ok()?;
            Some(Place {
                _permits: [own, all],
            })
        };
        let taken = timeout(PATIENCE, taking).await.ok().flatten();
        taken.ok_or_else(|| {
            let text = format!(
                "other components are being read or compiled, {} at a time in namespace \
                 {namespace}, for {PATIENCE:?} by now: this one waits for its turn",
                self.each
            );
            Stop::at(kind, "WaitsForOthers", text)
        })
    }

    fn of(&self, namespace: &str) -> Arc<Semaphore> {
        let mut all = self.namespaces.lock();
        if let Some(places) = all.get(namespace).and_then(Weak::upgrade) {
            return places;
        }
        all.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(self.each));
        all.insert(namespace.to_owned(), Arc::downgrade(&places));
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_namespace_that_is_busy_holds_up_no_other() {
        let places = Places::readers();
        let mut held = Vec::new();
        for _ in 0..READ {
            held.push(places.take("a", "Pulled").await.ok().unwrap());
        }
        let stop = places.take("a", "Pulled").await.err().unwrap();
        assert_eq!((stop.kind, stop.reason), ("Pulled", "WaitsForOthers"));
        assert!(places.take("b", "Pulled").await.is_ok());
        held.pop();
        assert!(places.take("a", "Pulled").await.is_ok());
        held.clear();
        assert!(places.take("c", "Pulled").await.is_ok());
        assert_eq!(
            places.namespaces.lock().len(),
            1,
            "namespaces that rest are forgotten"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn all_namespaces_together_leave_one_compiler() {
        let places = Places::new(1, 2);
        let first = places.take("a", "Loaded").await.ok().unwrap();
        let _second = places.take("b", "Loaded").await.ok().unwrap();
        assert!(places.take("c", "Loaded").await.is_err());
        drop(first);
        assert!(places.take("c", "Loaded").await.is_ok());
    }
}
