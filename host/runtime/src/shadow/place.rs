//! Where workers hand turns to the shadow of their plugin. It must not know what the shadow does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use crate::shadow::job::Job;
use crate::shadow::queue::Queue;

/// The turns that wait for a shadow.
pub(crate) type Jobs = Queue<Job>;

/// The place of a plugin's shadow, if it has one.
#[derive(Default)]
pub(crate) struct Place {
    /// Whether there is a shadow: most plugins have none, and their turns pay for one load.
    is_taken: AtomicBool,
    jobs: ArcSwapOption<Jobs>,
    /// Held by who takes or leaves the place.
    change: Mutex<()>,
}

impl Place {
    /// Hands a turn to the shadow, if there is one with room for it. `make` may return `None` if
    /// the turn is not for shadows.
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

    /// From now on, turns are handed to this queue.
    pub(crate) fn take(&self, jobs: &Arc<Jobs>) {
        let _changes = self.change.lock();
        self.jobs.store(Some(jobs.clone()));
        self.is_taken.store(true, Ordering::Relaxed);
    }

    /// From now on, turns are not handed to this queue.
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
        // The one that ended is late.
        place.leave(&one);
        offer();
        offer();
        place.offer(|| None);
        assert_eq!((one.waiting(), other.waiting()), (1, 2));
        place.leave(&other);
        place.offer(|| unreachable!("nobody wants it any more"));
    }
}
