//! The queue of turns for the thread of a shadow. It is bounded in number and in bytes, and each
//! thread of workers has its own part. A full part drops new items, and counts them.
//!
//! A worker never waits here: the thread that takes items has the lowest priority, and may lose its
//! core while it holds a lock. This module must not know what is queued.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use vmhost_core::Striped;

/// How much the queue holds at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Most {
    /// Number of items.
    pub(crate) items: usize,
    /// The bytes of all items.
    pub(crate) bytes: usize,
}

/// A bounded queue; see the module. Items of one thread stay in order.
pub(crate) struct Queue<T> {
    parts: Striped<Part<T>>,
    /// How much each part holds at most.
    most: Most,
    /// The number of the part at which the next take begins.
    next: AtomicUsize,
}

struct Part<T> {
    waiting: Mutex<Waiting<T>>,
    dropped: AtomicU64,
}

struct Waiting<T> {
    /// The items, each with its size in bytes.
    items: VecDeque<(T, usize)>,
    bytes: usize,
    is_closed: bool,
}

impl<T> Default for Part<T> {
    fn default() -> Self {
        Self {
            waiting: Mutex::new(Waiting {
                items: VecDeque::new(),
                bytes: 0,
                is_closed: false,
            }),
            dropped: AtomicU64::new(0),
        }
    }
}

impl<T> Queue<T> {
    /// Creates a queue that this many threads fill, together up to `most`.
    pub(crate) fn new(most: Most, threads: usize) -> Self {
        let threads = threads.max(1);
        Self {
            parts: Striped::default(),
            most: Most {
                items: most.items / threads,
                bytes: most.bytes / threads,
            },
            next: AtomicUsize::new(0),
        }
    }

    /// Adds the item that `make` returns with its size in bytes, if there is room. `make` is not
    /// called if the part is full already, and may return `None` to add nothing.
    pub(crate) fn push(&self, make: impl FnOnce() -> Option<(T, usize)>) {
        let part = self.parts.mine();
        let waiting = part.waiting.try_lock();
        let is_done = waiting.is_some_and(|mut waiting| waiting.push(self.most, make));
        if !is_done {
            part.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes an item. Each call begins at the next part.
    pub(crate) fn pop(&self) -> Option<T> {
        let count = self.parts.iter().count();
        let first = self.next.fetch_add(1, Ordering::Relaxed) % count.max(1);
        let from_first = self.parts.iter().skip(first);
        let mut parts = from_first.chain(self.parts.iter().take(first));
        parts.find_map(|part| part.waiting.lock().pop())
    }

    /// Number of items that wait.
    pub(crate) fn waiting(&self) -> usize {
        let parts = self.parts.iter();
        parts.map(|part| part.waiting.lock().items.len()).sum()
    }

    /// Number of items that were dropped.
    pub(crate) fn dropped(&self) -> u64 {
        let parts = self.parts.iter();
        parts.map(|part| part.dropped.load(Ordering::Relaxed)).sum()
    }

    /// Drops all items, and accepts no more.
    pub(crate) fn close(&self) {
        for part in self.parts.iter() {
            let mut waiting = part.waiting.lock();
            waiting.is_closed = true;
            waiting.bytes = 0;
            let items = std::mem::take(&mut waiting.items);
            drop(waiting);
            drop(items);
        }
    }
}

impl<T> Waiting<T> {
    /// Returns `false` if the item has to be counted as dropped.
    fn push(&mut self, most: Most, make: impl FnOnce() -> Option<(T, usize)>) -> bool {
        if self.is_closed {
            return true;
        }
        if self.items.len() >= most.items || self.bytes >= most.bytes {
            return false;
        }
        let Some((item, bytes)) = make() else {
            return true;
        };
        if self.bytes + bytes > most.bytes {
            return false;
        }
        self.bytes += bytes;
        self.items.push_back((item, bytes));
        true
    }

    fn pop(&mut self) -> Option<T> {
        let (item, bytes) = self.items.pop_front()?;
        self.bytes -= bytes;
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn queue(items: usize, bytes: usize) -> Queue<u32> {
        Queue::new(Most { items, bytes }, 1)
    }

    fn rest(queue: &Queue<u32>) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn what_is_too_many_is_dropped_and_counted() {
        let queue = queue(3, 1000);
        for item in 0..5 {
            queue.push(|| Some((item, 1)));
        }
        assert_eq!((queue.waiting(), queue.dropped()), (3, 2));
        assert_eq!(queue.pop(), Some(0));
        queue.push(|| Some((5, 1)));
        assert_eq!(rest(&queue), [1, 2, 5]);
        assert_eq!((queue.waiting(), queue.dropped()), (0, 2));
    }

    #[test]
    fn what_is_too_large_is_dropped_and_counted() {
        let queue = queue(100, 100);
        queue.push(|| Some((0, 60)));
        queue.push(|| Some((1, 60)));
        queue.push(|| Some((2, 40)));
        let mut was_made = false;
        queue.push(|| {
            was_made = true;
            Some((3, 0))
        });
        assert!(!was_made, "a full queue makes nothing");
        assert_eq!(queue.dropped(), 2);
        assert_eq!(rest(&queue), [0, 2]);
        // After the take, its bytes are free again.
        queue.push(|| Some((4, 100)));
        assert_eq!(rest(&queue), [4]);
        assert_eq!(queue.dropped(), 2);
    }

    #[test]
    fn nothing_to_add_is_no_drop() {
        let queue = queue(1, 1);
        queue.push(|| None);
        assert_eq!((queue.waiting(), queue.dropped()), (0, 0));
    }

    #[test]
    fn the_room_is_shared_among_threads() {
        let queue: Queue<u32> = Queue::new(
            Most {
                items: 4,
                bytes: 100,
            },
            2,
        );
        for item in 0..3 {
            queue.push(|| Some((item, 1)));
        }
        assert_eq!((queue.waiting(), queue.dropped()), (2, 1));
    }

    #[test]
    fn a_closed_queue_keeps_nothing_alive() {
        let item = Arc::new(());
        let queue: Queue<Arc<()>> = Queue::new(
            Most {
                items: 4,
                bytes: 100,
            },
            1,
        );
        queue.push(|| Some((item.clone(), 1)));
        queue.close();
        queue.push(|| Some((item.clone(), 1)));
        assert_eq!(Arc::strong_count(&item), 1);
        assert_eq!((queue.pop(), queue.dropped()), (None, 0));
    }

    #[test]
    fn a_worker_does_not_wait_for_the_thread_that_takes() {
        let queue = queue(4, 100);
        let held = queue.parts.mine().waiting.lock();
        queue.push(|| Some((1, 1)));
        drop(held);
        assert_eq!((queue.waiting(), queue.dropped()), (0, 1));
    }

    #[test]
    fn threads_that_fill_it_lose_and_double_nothing() {
        let queue: Arc<Queue<u32>> = Arc::new(Queue::new(
            Most {
                items: 1 << 20,
                bytes: 1 << 30,
            },
            1,
        ));
        let queue = &*queue;
        let mut taken = std::thread::scope(|scope| {
            let fill = |from: u32| {
                scope.spawn(move || {
                    for item in from..from + 1000 {
                        queue.push(|| Some((item, 1)));
                    }
                })
            };
            let fillers = [fill(0), fill(1000), fill(2000)];
            let mut taken = Vec::new();
            while fillers.iter().any(|filler| !filler.is_finished()) {
                taken.extend(queue.pop());
            }
            taken.extend(rest(queue));
            taken
        });
        // If a part was locked at the wrong moment, its item was dropped.
        assert_eq!(taken.len() as u64 + queue.dropped(), 3000);
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len() as u64 + queue.dropped(), 3000);
    }
}
