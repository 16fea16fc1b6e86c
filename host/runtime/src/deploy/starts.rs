//! Calls that are about to start on one generation: a swap waits for them before it announces the
//! next one. It must not know generations.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;
use vmhost_core::Striped;

/// How many calls are about to start, and a bell for the task that waits until there are none.
#[derive(Default)]
pub(crate) struct Starts {
    counts: Striped<AtomicUsize>,
    awaited: AtomicBool,
    none: Notify,
}

/// A call is about to start on a generation.
pub struct Starting<'a> {
    starts: &'a Starts,
    /// Where it was counted, whichever thread ends it.
    count: &'a AtomicUsize,
}

impl Starts {
    /// A call is about to start. It has started when the guard drops.
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

    fn is_none(&self) -> bool {
        self.counts
            .iter()
            .all(|count| count.load(Ordering::SeqCst) == 0)
    }
}

impl Drop for Starting<'_> {
    fn drop(&mut self) {
        // SeqCst on both sides: either this sees that somebody waits, or that one sees this count.
        if self.count.fetch_sub(1, Ordering::SeqCst) == 1
            && self.starts.awaited.load(Ordering::SeqCst)
        {
            self.starts.none.notify_waiters();
        }
    }
}
