//! The queue's lock: acquired by one atomic swap, released by a plain store.
//!
//! `std::sync::Mutex` also needs an atomic exchange to unlock, to learn whether a thread sleeps on
//! it: half of the cost of a duplicate add. No thread queues for this lock. A thread that finds it
//! taken spins for about as long as the longest hold; after that the holder must have been
//! preempted, and the thread polls every [`NAP`]. So no wake-up can be lost, and there is no system
//! call while the holder runs.
//!
//! The lock suits only holds of microseconds, such as those of the queue. This module does not know
//! the guarded value.

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Number of polls before the first nap: some 10 us.
const SPINS: u32 = 200;

/// About the shortest sleep that Linux gives by default.
const NAP: Duration = Duration::from_micros(50);

/// The lock; see the module.
pub(crate) struct Lock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

#[allow(unsafe_code, reason = "a lock is what makes a value shareable")]
// Safety: `with` is the only access to the value and admits one thread at a time; the value is
// `Send`, so it may be used by different threads in turn.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Runs `action` with exclusive access to the value. Must not be called from within `action`. A
    /// panic releases the lock too; the owner of the value decides what state it is left in.
    #[inline]
    pub(crate) fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> R {
        if self.taken.swap(true, Ordering::Acquire) {
            self.wait();
        }
        let _held = Held(&self.taken);
        #[allow(unsafe_code, reason = "a lock is what makes a value shareable")]
        // Safety: this thread changed `taken` from false to true, and it changes back when `_held`
        // drops, after the reference is gone. In between no other thread sees false, so this
        // reference is the only one.
        let value = unsafe { &mut *self.value.get() };
        action(value)
    }

    #[cold]
    fn wait(&self) {
        let mut looks = 0;
        loop {
            while self.taken.load(Ordering::Relaxed) {
                if looks < SPINS {
                    looks += 1;
                    spin_loop();
                } else {
                    thread::sleep(NAP);
                }
            }
            if !self.taken.swap(true, Ordering::Acquire) {
                return;
            }
        }
    }
}

struct Held<'a>(&'a AtomicBool);

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_and_a_panic_lets_go() {
        const ROUNDS: u64 = 50_000;
        let lock = Lock::new([0u64; 2]);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        lock.with(|value| {
                            assert_eq!(value[0], value[1]);
                            value[0] += 1;
                            std::hint::black_box(&mut *value);
                            value[1] += 1;
                        });
                    }
                });
            }
            let panics =
                scope.spawn(|| lock.with(|value| assert_eq!(value[0], u64::MAX, "expected")));
            assert!(panics.join().is_err());
        });
        assert_eq!(lock.with(|value| *value), [4 * ROUNDS; 2]);
    }
}
