//! Counts the calls that are about to start on one generation. A swap waits for them before it
//! announces the next generation. This module must not know generations.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;
use vmhost_core::Striped;

/// The count, and a notification for the task that waits until it is zero.
#[derive(Default)]
pub(crate) struct Starts {
    counts: Striped<AtomicUsize>,
    awaited: AtomicBool,
    none: Notify,
}

/// A guard for a call that is about to start on a generation.
pub struct Starting<'a> {
    starts: &'a Starts,
    /// The counter that was incremented, whichever thread drops the guard.
    count: &'a AtomicUsize,
}

impl Starts {
    /// Counts a call that is about to start. The call has started when the guard drops.
    pub(crate) fn begin(&self) -> Starting<'_> {
        let count = self.counts.mine();
        count.fetch_add(1, Ordering::SeqCst);
        Starting {
            starts: self,
            count,
        }
    }

    /// Resolves when no call is about to start.
    pub(crate) async fn none(&self) {
        self.awaited.store(true, Ordering::SeqCst);
        loop {
            let none = self.none.notified();
            if self.is_none() {
                return;
            }
            none.await;
        }
    }

    /// Returns whether no call is about to start.
    pub(crate) fn is_none(&self) -> bool {
        self.counts
            .iter()
            .all(|count| count.load(Ordering::SeqCst) == 0)
    }
}

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        // SeqCst on both sides: either this thread sees the waiting task, or the waiting task sees
        // this count.
        if self.count.fetch_sub(1, Ordering::SeqCst) == 1
            && self.starts.awaited.load(Ordering::SeqCst)
        {
            self.starts.none.notify_waiters();
        }
    }
}
