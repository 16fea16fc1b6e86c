//! Sleeping and waking: the lock, the getters, and the getter that watches the timers.
//!
//! A getter that finds nothing sleeps until an add wakes it. The first such getter while a timer
//! runs is the *leader*: it sleeps at most until that timer. So a delayed add costs one wake-up,
//! regardless of the number of getters, and needs no task of its own. A getter may be dropped at
//! any await: its wake-up, and its role as leader, pass to another getter.
//!
//! This module does not know what makes a key ready.

use std::future::{Future, poll_fn};
use std::hash::{BuildHasher, Hash};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::state::{Next, State, Wake};
use crate::tag::Tag;

/// The state that all handles of a queue share.
pub(crate) struct Shared<K, T> {
    /// Never held across an await, nor while the caller's iterators run.
    state: Mutex<State<K, T>>,
    /// `state.failing` as of the last hold of the lock, so that `forget` skips the lock in the
    /// common case of no failures.
    failing: AtomicUsize,
    /// Seeded per queue, because users choose the keys and must not know which of them collide.
    /// With the standard library's SipHash, a key's way through the queue takes 50 % longer
    /// (`--bench instructions`). SipHash would also hide the seed from a reader of hashes, but a
    /// queue shows no hashes.
    hasher: RandomState,
    /// Sleeping getters, woken in order of arrival.
    getters: Notify,
    /// Wakes the leader because an earlier timer was added.
    earlier: Notify,
    /// Tasks that wait for the queue to be drained.
    drained: Notify,
}

impl<K, T: Tag> Shared<K, T> {
    pub(crate) fn new(state: State<K, T>) -> Self {
        Self {
            state: Mutex::new(state),
            failing: AtomicUsize::new(0),
            hasher: RandomState::default(),
            getters: Notify::new(),
            earlier: Notify::new(),
            drained: Notify::new(),
        }
    }

    /// The key's hash for the index; computed before the lock is taken.
    #[inline]
    pub(crate) fn hash(&self, key: &K) -> u32
    where
        K: Hash,
    {
        self.hasher.hash_one(key) as u32
    }

    /// Runs `action` under the lock, then wakes the waiters that it noted.
    #[inline]
    pub(crate) fn with<R>(&self, action: impl FnOnce(&mut State<K, T>) -> R) -> R {
        let mut state = self.state.lock();
        state.clock.begin();
        let result = action(&mut state);
        self.failing.store(state.failing, Ordering::Relaxed);
        let wake = state.wake;
        if wake != Wake::default() {
            state.wake = Wake::default();
            drop(state);
            self.wake(wake);
        }
        result
    }

    /// Returns whether no key has failures. Sees everything that happened before the call.
    #[inline]
    pub(crate) fn nothing_fails(&self) -> bool {
        self.failing.load(Ordering::Relaxed) == 0
    }

    #[cold]
    fn wake(&self, wake: Wake) {
        for _ in 0..wake.getters {
            self.getters.notify_one();
        }
        if wake.leader {
            self.earlier.notify_one();
        }
        if wake.drained {
            self.drained.notify_waiters();
        }
    }

    /// Wakes every getter, for a shutdown.
    pub(crate) fn wake_all(&self) {
        self.getters.notify_waiters();
    }

    /// Sleeps until there may be a key, and tries to take it. Cancel-safe.
    pub(crate) async fn wait(&self) -> Next<K, T>
    where
        K: Clone,
    {
        let mut woken = pin!(self.getters.notified());
        // Registered before the check: an add after the check wakes a getter that is already
        // registered.
        if woken.as_mut().enable() {
            return self.with(State::next);
        }
        let (next, until) = self.with(|state| match state.next() {
            Next::Nothing => (Next::Nothing, state.park()),
            next => (next, None),
        });
        if !matches!(next, Next::Nothing) {
            return next;
        }
        let parked = Parked {
            shared: self,
            leads: until.is_some(),
        };
        match until {
            None => woken.await,
            Some(until) => {
                let mut earlier = pin!(self.earlier.notified());
                let mut timer = pin!(tokio::time::sleep_until(until));
                poll_fn(|context| {
                    let ready = woken.as_mut().poll(context).is_ready()
                        || earlier.as_mut().poll(context).is_ready()
                        || timer.as_mut().poll(context).is_ready();
                    if ready {
                        Poll::Ready(())
                    } else {
                        Poll::Pending
                    }
                })
                .await;
            }
        }
        let leads = parked.leads;
        std::mem::forget(parked);
        self.with(|state| {
            state.unpark(leads, false);
            state.next()
        })
    }

    /// Sleeps until the queue is drained.
    pub(crate) async fn drained(&self) {
        loop {
            let mut told = pin!(self.drained.notified());
            told.as_mut().enable();
            if self.with(State::is_drained) {
                return;
            }
            told.await;
        }
    }
}

/// A sleeping getter. Dropped only if its future is dropped mid-sleep.
struct Parked<'a, K, T: Tag> {
    shared: &'a Shared<K, T>,
    leads: bool,
}

impl<K, T: Tag> Drop for Parked<'_, K, T> {
    fn drop(&mut self) {
        self.shared.with(|state| state.unpark(self.leads, true));
    }
}
