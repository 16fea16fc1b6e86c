//! The place where workers hand turns to the shadow of their plugin. This module must not know what
//! the shadow does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use crate::shadow::job::Job;
use crate::shadow::queue::Queue;

/// The turns that wait for a shadow.
pub(crate) type Jobs = Queue<Job>;

/// The place for the queue of a plugin's shadow.
#[derive(Default)]
pub(crate) struct Place {
    /// Whether there is a shadow. Most plugins have none, and then a turn pays for one load only.
    is_taken: AtomicBool,
    jobs: ArcSwapOption<Jobs>,
    /// Locked while a queue is put in or taken out.
    change: Mutex<()>,
}

impl Place {
    /// Hands a turn to the shadow, if there is one and its queue has room. `make` may return `None`
    /// if the turn must not go to a shadow.
    pub(crate) fn offer(&self, make: impl FnOnce() -> Option<Job>) {
        if !self.is_taken.load(Ordering::Relaxed) {
            return;
        }
        if let Some(jobs) = &*self.jobs.load() {
            jobs.push(|| {
                let job = make()?;
                let bytes = job.bytes();
                Some((job, bytes))
            });
        }
    }

    /// Hands turns to this queue from now on.
    pub(crate) fn take(&self, jobs: &Arc<Jobs>) {
        let _changes = self.change.lock();
        self.jobs.store(Some(jobs.clone()));
        self.is_taken.store(true, Ordering::Relaxed);
    }

    /// Stops handing turns to this queue.
    pub(crate) fn leave(&self, jobs: &Arc<Jobs>) {
        let _changes = self.change.lock();
        let present = self.jobs.load_full();
        if present.is_some_and(|present| Arc::ptr_eq(&present, jobs)) {
            self.is_taken.store(false, Ordering::Relaxed);
            self.jobs.store(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shadow::job::tests::job;
    use crate::shadow::queue::Most;

    fn jobs() -> Arc<Jobs> {
        let most = Most {
            items: 8,
            bytes: 1 << 20,
        };
        Arc::new(Jobs::new(most, 1))
    }

    #[test]
    fn turns_go_to_the_shadow_that_has_the_place() {
        let (place, one, other) = (Place::default(), jobs(), jobs());
        let offer = || place.offer(|| Some(job(None, Vec::new())));
        place.offer(|| unreachable!("nobody wants it"));
        place.take(&one);
        offer();
        place.take(&other);
        // The queue that was replaced leaves late.
        place.leave(&one);
        offer();
        offer();
        place.offer(|| None);
        assert_eq!((one.waiting(), other.waiting()), (1, 2));
        place.leave(&other);
        place.offer(|| unreachable!("nobody wants it any more"));
    }
}
