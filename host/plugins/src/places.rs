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

use crate::conditions::Stop;

/// The places of each namespace. In each one, a component of up to `--component-limit` is read.
const EACH: usize = 4;

/// How long a place is waited for, before the look ends and a later one goes on.
const PATIENCE: Duration = Duration::from_secs(60);

/// The places, by namespace.
#[derive(Default)]
pub(crate) struct Places(Mutex<HashMap<String, Weak<Semaphore>>>);

/// A place. It is free again when this is dropped.
pub(crate) struct Place {
    _permit: OwnedSemaphorePermit,
}

impl Places {
    /// Waits for a place of a namespace. The condition of this type says if there is none.
    pub(crate) async fn take(&self, namespace: &str, kind: &'static str) -> Result<Place, Stop> {
        let places = self.of(namespace);
        match timeout(PATIENCE, places.acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Place { _permit: permit }),
            // Nobody closes it.
            Ok(Err(_)) | Err(_) => {
                let text = format!(
                    "the components of {EACH} other Plugins in namespace {namespace} are being read \
                     or compiled, for {PATIENCE:?} by now: this one waits for its turn"
                );
                Err(Stop::at(kind, "WaitsForOthers", text))
            }
        }
    }

    fn of(&self, namespace: &str) -> Arc<Semaphore> {
        let mut all = self.0.lock();
        if let Some(places) = all.get(namespace).and_then(Weak::upgrade) {
            return places;
        }
        all.retain(|_, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(EACH));
        all.insert(namespace.to_owned(), Arc::downgrade(&places));
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_namespace_that_is_busy_holds_up_no_other() {
        let places = Places::default();
        let mut held = Vec::new();
        for _ in 0..EACH {
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
            places.0.lock().len(),
            1,
            "namespaces that rest are forgotten"
        );
    }
}
