//! Keys that wait for a right, and one loop of access reviews per right that notices when it is
//! granted.
//!
//! A write that access control refuses (403) keeps failing until the right is granted, and no
//! watched object shows the grant. Therefore the host asks the API server: one loop per missing
//! right, however many keys of however many controllers wait for it. The loop ends when the right
//! is granted, which wakes all these keys, or when no key waits any more. The controller knows
//! whether a key still waits, so a success, a deletion or a swap ends a wait without a call to this
//! module. Rights that a plugin was found to lack at the start are followed in the same loops.
//!
//! Not every 403 means a missing right: admission (Pod security, quotas) answers 403 too. If the
//! first review says that the right is granted, the key is retried once, after a pause, and its
//! memory records this; [`crate::turn::decide`] then handles the next 403.
//!
//! Of a write that was sent as a service account, the right of that account is asked for.
//!
//! Memory is bounded by the stores: a key waits for one right at a time, with about 500 bytes (the
//! texts of the right, and the entry). There is one loop per verb, resource and namespace in which
//! a key waits.
//!
//! This module must not know effects or responses to writes, and it never decides about a key: it
//! wakes keys.

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

/// The first pause between two reviews of a right. It grows by half each time.
const FIRST: Duration = Duration::from_secs(5);

/// The longest pause. With the review itself, a grant is noticed within 30 s.
const LONGEST: Duration = Duration::from_secs(28);

/// Maximum number of reviews in flight, over all rights.
const AT_ONCE: usize = 8;

/// Sends access reviews.
pub trait Reviews: Send + Sync + 'static {
    /// Returns whether the right is granted to this host, or to the user that it names. With a
    /// name, only for the object of that name.
    fn is_granted(
        &self,
        right: &Right,
        name: Option<&str>,
    ) -> impl Future<Output = Result<bool, Error>> + Send;
}

impl Reviews for AccessReviews {
    async fn is_granted(&self, right: &Right, name: Option<&str>) -> Result<bool, Error> {
        let question = right.question(name);
        let access = match &right.user {
            None => self.ask(&question).await?,
            Some(user) => self.ask_about(&user.name, &user.groups, &question).await?,
        };
        Ok(access.allowed)
    }
}

/// The rights that keys wait for. There is one per process.
pub struct Rights<R = AccessReviews> {
    reviews: R,
    leadership: Arc<Leadership>,
    /// The runtime of the loops. Guests never run on it.
    io: Handle,
    at_once: Semaphore,
    awaited: Mutex<HashMap<Right, Waiters>>,
    /// The beginning of log lines; empty at home.
    place: String,
}

/// Everything that waits for one right.
#[derive(Default)]
struct Waiters {
    /// The waiting keys, by the address of their controller and their name.
    keys: HashMap<(usize, ObjectName), Waiter>,
    /// For the rights that plugins lack since the start: each function returns whether its plugin
    /// still needs the right.
    needs: Vec<Box<dyn Fn() -> bool + Send>>,
    /// True after a review said that the right is not granted for all objects.
    is_missing: bool,
    /// True after the missing right was logged.
    is_told: bool,
    /// The number of rounds. Each round asks about the object of another key.
    round: usize,
}

/// A waiting key.
struct Waiter {
    controller: Weak<Controller>,
    required: Arc<Required>,
    /// The index of the required right that this wait is for.
    at: usize,
    /// True after a review said that the right is not granted for this key's object.
    is_missing: bool,
}

/// The result of a round of reviews.
enum Answer {
    /// The right is granted.
    Granted,
    /// The right is granted for the object in question, but not for all.
    GrantedForOne,
    /// The right is not granted.
    Missing,
}

impl<R: Reviews> Rights<R> {
    /// A set without waiting keys. Reviews are sent on the current runtime, while this host leads.
    pub(crate) fn new(reviews: R, leadership: Arc<Leadership>) -> Arc<Self> {
        Self::there(reviews, leadership, String::new())
    }

    /// Like [`Rights::new`], in a cluster that log lines name at their beginning.
    pub(crate) fn there(reviews: R, leadership: Arc<Leadership>, place: String) -> Arc<Self> {
        Arc::new(Self {
            place,
            reviews,
            leadership,
            io: Handle::current(),
            at_once: Semaphore::new(AT_ONCE),
            awaited: Mutex::default(),
        })
    }

    /// Makes a key wait for these rights, as its controller remembers too. It is woken when the
    /// first missing one is granted.
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

    /// Follows a missing right that was already logged: its grant is logged too, as long as
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

    /// Adds a waiter. The first one starts the loop of the right.
    fn enter(self: &Arc<Self>, right: Right, add: impl FnOnce(&mut Waiters)) {
        let mut awaited = self.awaited.lock();
        if let Some(waiters) = awaited.get_mut(&right) {
            return add(waiters);
        }
        add(awaited.entry(right.clone()).or_default());
        drop(awaited);
        self.io.spawn(run(Arc::downgrade(self), right));
    }

    /// Returns the object for the next round, if the key in question names one. The outer option is
    /// `None` if nothing waits for the right any more.
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
        // The semaphore is never closed.
        let _permit = self.at_once.acquire().await;
        if self.reviews.is_granted(right, None).await? {
            return Ok(Answer::Granted);
        }
        match object {
            Some(_) if self.reviews.is_granted(right, object).await? => Ok(Answer::GrantedForOne),
            _ => Ok(Answer::Missing),
        }
    }

    /// Handles a granted right: all waiting keys continue, and the loop ends.
    fn granted(self: &Arc<Self>, right: &Right) {
        let Some(waiters) = self.awaited.lock().remove(right) else {
            return;
        };
        if waiters.is_told {
            let count = waiters.keys.len();
            let place = &self.place;
            tracing::info!(
                "{place}RBAC now grants {right}; resuming {count} keys that waited for it"
            );
        }
        for ((_, key), waiter) in waiters.keys {
            self.go_on(key, waiter, waiters.is_missing);
        }
    }

    /// Handles a right that is granted for one object: the keys that write this object continue.
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

    /// Records that the right is missing, and logs it once.
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
            let place = &self.place;
            tracing::warn!(
                "{place}forbidden to {right} (missing RBAC); keys that need it wait until it is granted (`vmhost rbac` prints the rules)"
            );
        }
    }

    /// Continues a key whose right is granted. `was_missing` is false if the right was granted all
    /// along; then another of the required rights may be missing.
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

/// Repeats the reviews of a right until it is granted or nothing waits for it.
async fn run<R: Reviews>(rights: Weak<Rights<R>>, right: Right) {
    let mut pause = FIRST;
    let mut failed = false;
    while let Some(rights) = rights.upgrade() {
        // A standby processes no key, and its watches retry by themselves.
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
                    let place = &rights.place;
                    tracing::warn!(
                        "{place}cannot check whether RBAC grants {right}: {error}; retrying"
                    );
                }
                Err(error) => tracing::debug!(
                    "still cannot check whether RBAC grants {right}: {error}; retrying"
                ),
            }
        }
        drop(rights);
        // Jitter, so that hosts that were started together do not ask in step.
        tokio::time::sleep(pause.mul_f64(0.75 + fastrand::f64() / 4.0)).await;
        pause = (pause * 3 / 2).min(LONGEST);
    }
}

#[cfg(test)]
mod tests;
