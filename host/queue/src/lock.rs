//! The queue's lock: taken by one atomic swap, let go by a plain store.
//!
//! `std::sync::Mutex` also needs an atomic exchange to let go, to learn whether a thread sleeps for it: half of what a
//! duplicate add cost. Nobody sleeps in line for this one. Who finds it taken spins for about as long as the longest hold, and
//! after that, when the holder must have been preempted, looks again every [`NAP`]. So there is no wake-up that could be lost,
//! and no system call as long as the holder runs.
//!
//! Fit for holds of microseconds only, as all of the queue's are. Knows nothing of what it guards.

use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Looks at the lock before the first nap: some 10 us.
const SPINS: u32 = 200;

/// The shortest sleep that Linux gives by default is about as long.
const NAP: Duration = Duration::from_micros(50);

/// See the module.
pub(crate) struct Lock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

#[allow(unsafe_code, reason = "a lock is what makes a value shareable")]
// Safety: `with` is the only way to the value, and it lets one thread in at a time; the value moves between threads with that.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Does something with the value while nobody else can. Must not be called from within itself. A panic lets go too: what
    /// the value then is, is for its owner to say.
    #[inline]
    pub(crate) fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> R {
        if self.taken.swap(true, Ordering::Acquire) {
            self.wait();
        }
        let _held = Held(&self.taken);
        #[allow(unsafe_code, reason = "a lock is what makes a value shareable")]
        // Safety: `taken` went from false to true in this thread and goes back when `_held` drops, after the reference is gone.
        // In between no other thread sees false, so this reference is the only one.
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
