//! Keys that wait for a right, and the one access review for each right that tells when it is
//! granted.
//!
//! A write that access control refuses (403) fails again until somebody grants the right, and
//! nothing in the watched objects tells of that. So the host asks: one loop for each right that is
//! waited for, however many keys wait, of all controllers. It ends when the right is granted, which
//! wakes all of them, or when nobody waits any more: whether a key still waits is the controller's
//! knowledge, so that a success, a deletion or a swap ends a wait without a word to this module.
//! What a plugin was found to lack at the start is asked for in the same loops.
//!
//! Not every 403 is for want of a right: admission says it too (Pod security, quotas). A right that
//! is granted in the first answer makes the key try once more, after a pause, and the key is told;
//! what becomes of the next 403 is [`crate::turn::decide`]'s business.
//!
//! Bounded by what the stores hold: a key waits for one right at a time, with about 500 bytes (the
//! right's texts and the entry), and there is one loop for each verb, resource and namespace in
//! which a key waits.
//!
//! It must not know effects nor answers of writes, and it never decides what a key does: it wakes
//! keys.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use vmhost_cluster::{AccessReviews, Error};
use vmhost_core::ObjectName;

use crate::controller::Controller;
use crate::lead::Leadership;
use crate::rights::access::{Required, Right};

/// The first pause between two reviews of a right; it grows by half each time.
const FIRST: Duration = Duration::from_secs(5);

/// The longest pause: with the review itself, a grant is felt within 30 s.
const LONGEST: Duration = Duration::from_secs(28);

/// Reviews that are under way at a time, whatever the number of rights.
const AT_ONCE: usize = 8;

/// Answers access reviews.
pub trait Reviews: Send + Sync + 'static {
    /// Returns whether this host has the right; with a name, whether it has it for the object of
    /// that name.
    fn is_granted(
        &self,
        right: &Right,
        name: Option<&str>,
    ) -> impl Future<Output = Result<bool, Error>> + Send;
}

impl Reviews for AccessReviews {
    async fn is_granted(&self, right: &Right, name: Option<&str>) -> Result<bool, Error> {
        Ok(self.ask(&right.question(name)).await?.allowed)
    }
}

/// The rights that are waited for. One for the process.
pub struct Rights<R = AccessReviews> {
    reviews: R,
    leadership: Arc<Leadership>,
    /// Where the loops run: never where guests do.
    io: Handle,
    at_once: Semaphore,
    awaited: Mutex<HashMap<Right, Waiters>>,
}

/// What waits for one right.
#[derive(Default)]
struct Waiters {
    /// By the controller's address and the key.
    keys: HashMap<(usize, ObjectName), Waiter>,
    /// What plugins lack since the start: each returns whether its plugin still needs the right.
    needs: Vec<Box<dyn Fn() -> bool + Send>>,
    /// A review has said that it is not granted for all objects.
    is_missing: bool,
    /// Somebody has been told that it is missing.
    is_told: bool,
    /// Rounds so far: each asks about the object of another key.
    round: usize,
}

/// A key that waits.
struct Waiter {
    controller: Weak<Controller>,
    required: Arc<Required>,
    /// Which of the required rights it waits for here.
    at: usize,
    /// A review has said that it is not granted for this key's object.
    is_missing: bool,
}

/// What the reviews of one round said.
enum Answer {
    /// The right is granted.
    Granted,
    /// It is granted for the object that was asked about, not for all.
    GrantedForOne,
    /// It is not granted.
    Missing,
}

impl<R: Reviews> Rights<R> {
    /// Nobody waits yet. Reviews are asked for on the runtime that this is called on, while this
    /// host leads.
    pub(crate) fn new(reviews: R, leadership: Arc<Leadership>) -> Arc<Self> {
        Arc::new(Self {
            reviews,
            leadership,
            io: Handle::current(),
            at_once: Semaphore::new(AT_ONCE),
            awaited: Mutex::default(),
        })
    }

    /// A key waits for these rights, as its controller remembers: it is woken when the first of
    /// them that is missing is granted.
    pub(crate) fn wait(
        self: &Arc<Self>,
        controller: &Arc<Controller>,
        key: &ObjectName,
        required: Arc<Required>,
    ) {
        let waiter = Waiter {
            controller: Arc::downgrade(controller),
            required,
            at: 0,
            is_missing: false,
        };
        self.join(key.clone(), waiter);
    }

    /// Somebody has been told that a right is missing: the grant is told too, for as long as
    /// `is_needed` returns true.
    pub(crate) fn follow(
        self: &Arc<Self>,
        right: Right,
        is_needed: impl Fn() -> bool + Send + 'static,
    ) {
        self.enter(right, |waiters| {
            (waiters.is_missing, waiters.is_told) = (true, true);
            waiters.needs.push(Box::new(is_needed));
        });
    }

    fn join(self: &Arc<Self>, key: ObjectName, waiter: Waiter) {
        if let Some(right) = waiter.required.rights.get(waiter.at).cloned() {
            let place = (waiter.controller.as_ptr() as usize, key);
            self.enter(right, |waiters| drop(waiters.keys.insert(place, waiter)));
        }
    }

    /// Adds a waiter; the first one starts the right's loop.
    fn enter(self: &Arc<Self>, right: Right, add: impl FnOnce(&mut Waiters)) {
        let mut awaited = self.awaited.lock();
        if let Some(waiters) = awaited.get_mut(&right) {
            return add(waiters);
        }
        add(awaited.entry(right.clone()).or_default());
        drop(awaited);
        self.io.spawn(run(Arc::downgrade(self), right));
    }

    /// The object to ask about in the next round, if the key whose turn it is names one. The outer
    /// option is empty when nobody waits any more.
    fn next_object(&self, right: &Right) -> Option<Option<String>> {
        let mut awaited = self.awaited.lock();
        let waiters = awaited.get_mut(right)?;
        waiters
            .keys
            .retain(|(_, key), waiter| waiter.still_waits(key));
        waiters.needs.retain(|is_needed| is_needed());
        let count = waiters.keys.len();
        if count == 0 && waiters.needs.is_empty() {
            awaited.remove(right);
            return None;
        }
        waiters.round += 1;
        let mut keys = waiters.keys.values();
        let next = keys.nth(waiters.round % count.max(1));
        Some(next.and_then(|waiter| waiter.required.name.clone()))
    }

    async fn ask(&self, right: &Right, object: Option<&str>) -> Result<Answer, Error> {
        // Never closed.
        let _permit = self.at_once.acquire().await;
        if self.reviews.is_granted(right, None).await? {
            return Ok(Answer::Granted);
        }
        match object {
            Some(_) if self.reviews.is_granted(right, object).await? => Ok(Answer::GrantedForOne),
            _ => Ok(Answer::Missing),
        }
    }

    /// The right is granted: all that wait go on, and its loop ends.
    fn granted(self: &Arc<Self>, right: &Right) {
        let Some(waiters) = self.awaited.lock().remove(right) else {
            return;
        };
        if waiters.is_told {
            let count = waiters.keys.len();
            tracing::info!("vmhost may {right} now: {count} keys that waited for it go on");
        }
        for ((_, key), waiter) in waiters.keys {
            self.go_on(key, waiter, waiters.is_missing);
        }
    }

    /// The right is granted for one object: the keys that write it go on.
    fn granted_for(self: &Arc<Self>, right: &Right, object: Option<&str>) {
        let mut those = Vec::new();
        if let Some(waiters) = self.awaited.lock().get_mut(right) {
            waiters.is_missing = true;
            let of_object = |_: &_, waiter: &mut Waiter| waiter.required.name.as_deref() == object;
            those.extend(waiters.keys.extract_if(of_object));
        }
        for ((_, key), waiter) in those {
            let was_missing = waiter.is_missing;
            self.go_on(key, waiter, was_missing);
        }
    }

    /// The right is not granted.
    fn missing(&self, right: &Right, object: Option<&str>) {
        let mut awaited = self.awaited.lock();
        let Some(waiters) = awaited.get_mut(right) else {
            return;
        };
        waiters.is_missing = true;
        for waiter in waiters.keys.values_mut() {
            waiter.is_missing |= waiter.required.name.as_deref() == object;
        }
        if !std::mem::replace(&mut waiters.is_told, true) {
            tracing::warn!(
                "vmhost may not {right}: what needs that waits until it is granted (`vmhost rbac` prints the rules)"
            );
        }
    }

    /// A right that a key waited for is granted. `was_missing`: only since it waits; otherwise
    /// something else is missing.
    fn go_on(self: &Arc<Self>, key: ObjectName, mut waiter: Waiter, was_missing: bool) {
        let Some(controller) = waiter.controller.upgrade() else {
            return;
        };
        if was_missing {
            controller.granted(&key, &waiter.required);
        } else if waiter.at + 1 < waiter.required.rights.len() {
            waiter.at += 1;
            self.join(key, waiter);
        } else {
            controller.granted_before(&key, &waiter.required, FIRST);
        }
    }
}

impl Waiter {
    fn still_waits(&self, key: &ObjectName) -> bool {
        let controller = self.controller.upgrade();
        controller.is_some_and(|controller| controller.memory.awaits(key, &self.required))
    }
}

/// Asks for a right again and again, until it is granted or nobody waits for it.
async fn run<R: Reviews>(rights: Weak<Rights<R>>, right: Right) {
    let mut pause = FIRST;
    let mut failed = false;
    while let Some(rights) = rights.upgrade() {
        // A standby works on no key, and its watches try again by themselves.
        if rights.leadership.is_leading() {
            let Some(object) = rights.next_object(&right) else {
                return;
            };
            let object = object.as_deref();
            match rights.ask(&right, object).await {
                Ok(Answer::Granted) => return rights.granted(&right),
                Ok(Answer::GrantedForOne) => {
                    rights.granted_for(&right, object);
                    pause = FIRST;
                }
                Ok(Answer::Missing) => rights.missing(&right, object),
                Err(error) if !failed => {
                    failed = true;
                    tracing::warn!("whether vmhost may {right} cannot be asked for: {error}");
                }
                Err(error) => tracing::debug!("whether vmhost may {right}: {error}"),
            }
        }
        drop(rights);
        // Hosts that were started together do not ask together.
        tokio::time::sleep(pause.mul_f64(0.75 + fastrand::f64() / 4.0)).await;
        pause = (pause * 3 / 2).min(LONGEST);
    }
}

#[cfg(test)]
mod tests;
