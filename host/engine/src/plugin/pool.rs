//! The current image of a plugin, and its idle instances. Each thread keeps the instances that it
//! called last, so that workers do not contend for one lock.
//!
//! This module must not know how images and instances are created.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use vmhost_core::Striped;

use crate::cache::Stored;
use crate::code::Code;
use crate::image::Image;
use crate::instance::Instance;

/// The maximum number of idle instances that a thread keeps.
const IDLE: usize = 64;

/// The counts of a plugin's instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceStats {
    /// Instances that are idle or in a call.
    pub live: usize,
    /// Idle instances.
    pub idle: usize,
    /// Instances created since the plugin was loaded.
    pub created: u64,
    /// Whether the code is loaded. If not, the next call loads it.
    pub loaded: bool,
    /// How often the code was dropped.
    pub unloads: u64,
}

pub(super) struct Pool {
    present: Mutex<Present>,
    /// A copy of the current image's number, to check without a lock that it is still the same.
    number: AtomicU64,
    idle: Striped<Mutex<Idle>>,
    live: Arc<AtomicUsize>,
    created: AtomicU64,
    unloads: AtomicU64,
}

/// The image that instances are created from.
struct Present {
    /// `None` while unloaded, until the next call.
    image: Option<Arc<Image>>,
    /// Changes with every change of `image`.
    number: u64,
    code: Code,
    stored: Option<Arc<Stored>>,
    since: Instant,
}

/// The idle instances of one thread, or of a few threads that share this slot.
#[derive(Default)]
struct Idle {
    /// Last in, first out: the memory of the newest instance is the warmest.
    instances: Vec<Counted>,
    /// When the last call on one of them began.
    used: Option<Instant>,
}

/// An image that instances may be created from, with its number.
pub(super) struct Numbered {
    pub image: Arc<Image>,
    number: u64,
}

/// An instance that counts as live until it is dropped.
pub(super) struct Counted {
    pub instance: Instance,
    /// The number of its image.
    number: u64,
    live: Arc<AtomicUsize>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    pub fn new(image: Arc<Image>) -> Self {
        Self {
            present: Mutex::new(Present {
                code: image.code,
                stored: image.stored.clone(),
                image: Some(image),
                number: 0,
                since: Instant::now(),
            }),
            number: AtomicU64::new(0),
            idle: Striped::default(),
            live: Arc::default(),
            created: AtomicU64::new(0),
            unloads: AtomicU64::new(0),
        }
    }

    /// Takes an idle instance, preferably one that this thread has called before.
    pub fn pop(&self) -> Option<Counted> {
        self.idle
            .from_mine()
            .find_map(|place| place.lock().instances.pop())
    }

    /// Keeps the instance for another call after one that ended well, unless its image was replaced
    /// or unloaded in the meantime.
    pub fn give_back(&self, counted: Counted) {
        let mut idle = self.idle.mine().lock();
        idle.used = Some(counted.instance.used());
        // Compared under the lock: a task that changes the image then takes this lock to drop the
        // idle instances of the old one.
        if counted.instance.calls_left > 0
            && counted.number == self.number.load(Ordering::Acquire)
            && idle.instances.len() < IDLE
        {
            idle.instances.push(counted);
        }
    }

    /// Counts the instance as live until it is dropped.
    pub fn count(&self, of: &Numbered, instance: Instance) -> Counted {
        self.created.fetch_add(1, Ordering::Relaxed);
        self.live.fetch_add(1, Ordering::Relaxed);
        Counted {
            instance,
            number: of.number,
            live: self.live.clone(),
        }
    }

    /// Returns the current image, or `None` while unloaded.
    pub fn image(&self) -> Option<Numbered> {
        self.present.lock().numbered()
    }

    /// Returns the file to map again after unloading, and how its code was compiled.
    pub fn stored(&self) -> (Option<Arc<Stored>>, Code) {
        let present = self.present.lock();
        (present.stored.clone(), present.code)
    }

    /// Restores an unloaded image, unless a better one was installed in the meantime.
    pub fn put_back(&self, image: Arc<Image>) -> Option<Numbered> {
        let mut present = self.present.lock();
        if present.image.is_none() && present.code == image.code {
            self.change(&mut present, Some(image));
        }
        present.numbered()
    }

    /// Replaces the current image and drops its idle instances. If the current image is unloaded
    /// and a file holds the new one, the plugin stays unloaded.
    pub fn replace(&self, image: Arc<Image>) {
        let mut present = self.present.lock();
        let stays_unloaded = present.image.is_none() && image.stored.is_some();
        (present.code, present.stored) = (image.code, image.stored.clone());
        if stays_unloaded {
            return;
        }
        self.change(&mut present, Some(image));
        drop(present);
        for place in self.idle.iter() {
            let old = std::mem::take(&mut place.lock().instances);
            drop(old);
        }
    }

    /// Drops idle instances whose last call began before `before`. With the last instance, also
    /// drops the image if a file holds it. Returns whether the image was dropped.
    pub fn rest(&self, before: Instant) -> bool {
        let mut old = Vec::new();
        for place in self.idle.iter() {
            let mut idle = place.lock();
            let (cold, warm): (Vec<_>, Vec<_>) = std::mem::take(&mut idle.instances)
                .into_iter()
                .partition(|counted| counted.instance.used() < before);
            idle.instances = warm;
            old.extend(cold);
        }
        let busy = self.live.load(Ordering::Relaxed) > old.len();
        drop(old);
        if busy || self.last_call().is_some_and(|used| used >= before) {
            return false;
        }
        let mut present = self.present.lock();
        if present.image.is_none() || present.stored.is_none() || present.since >= before {
            return false;
        }
        let image = self.change(&mut present, None);
        drop(present);
        drop(image);
        self.unloads.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Drops idle instances now and busy ones when they are given back, and the image if a file
    /// holds it.
    pub fn shelve(&self) {
        let mut present = self.present.lock();
        let stays = match present.stored {
            Some(_) => None,
            None => present.image.clone(),
        };
        let image = self.change(&mut present, stays);
        drop(present);
        drop(image);
        for place in self.idle.iter() {
            let old = std::mem::take(&mut place.lock().instances);
            drop(old);
        }
    }

    /// Returns when the plugin was last called, or else when its image was installed; `None` while
    /// unloaded.
    pub fn used(&self) -> Option<Instant> {
        let since = {
            let present = self.present.lock();
            present.image.as_ref().map(|_| present.since)?
        };
        Some(self.last_call().map_or(since, |used| used.max(since)))
    }

    /// Returns the number of live instances.
    pub fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    pub fn code(&self) -> Code {
        self.present.lock().code
    }

    pub fn stats(&self) -> InstanceStats {
        InstanceStats {
            live: self.live(),
            idle: self
                .idle
                .iter()
                .map(|place| place.lock().instances.len())
                .sum(),
            created: self.created.load(Ordering::Relaxed),
            loaded: self.present.lock().image.is_some(),
            unloads: self.unloads.load(Ordering::Relaxed),
        }
    }

    fn change(&self, present: &mut Present, image: Option<Arc<Image>>) -> Option<Arc<Image>> {
        present.number += 1;
        present.since = Instant::now();
        self.number.store(present.number, Ordering::Release);
        std::mem::replace(&mut present.image, image)
    }

    fn last_call(&self) -> Option<Instant> {
        self.idle.iter().filter_map(|place| place.lock().used).max()
    }
}

impl Present {
    fn numbered(&self) -> Option<Numbered> {
        self.image.clone().map(|image| Numbered {
            image,
            number: self.number,
        })
    }
}
