//! The present image of a plugin, and the instances of it that wait for a call: each thread keeps those that it called last, so that workers do not meet here.
//!
//! It must not know how images and instances are made.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use vmhost_core::Striped;

use crate::cache::Stored;
use crate::code::Code;
use crate::engine::Image;
use crate::instance::Instance;

/// Idle instances that a thread keeps for the next calls.
const IDLE: usize = 64;

/// How many instances a plugin has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceStats {
    /// Alive, idle or in a call.
    pub live: usize,
    /// Idle.
    pub idle: usize,
    /// Made since the plugin was loaded.
    pub created: u64,
    /// Is the code there? Else the next call loads it.
    pub loaded: bool,
    /// How often the code was dropped.
    pub unloads: u64,
}

/// See the module.
pub(super) struct Pool {
    present: Mutex<Present>,
    /// That of the present image, for who only wants to know whether it is still the same.
    number: AtomicU64,
    idle: Striped<Mutex<Idle>>,
    live: Arc<AtomicUsize>,
    created: AtomicU64,
    unloads: AtomicU64,
}

/// Of which image instances are made.
struct Present {
    /// None: unloaded, until the next call.
    image: Option<Arc<Image>>,
    /// Another with every change of `image`.
    number: u64,
    code: Code,
    stored: Option<Arc<Stored>>,
    since: Instant,
}

/// What one thread, or a few, have left.
#[derive(Default)]
struct Idle {
    /// Last in, first out: the memory of the newest is the warmest.
    instances: Vec<Counted>,
    /// When the last call of one began.
    used: Option<Instant>,
}

/// An image that instances may be made of.
pub(super) struct Numbered {
    pub image: Arc<Image>,
    number: u64,
}

/// An instance that is counted while it lives.
pub(super) struct Counted {
    pub instance: Instance,
    /// Of its image.
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

    /// An idle instance, if possible one that this thread has called before.
    pub fn pop(&self) -> Option<Counted> {
        self.idle
            .from_mine()
            .find_map(|place| place.lock().instances.pop())
    }

    /// An instance whose call ended well may serve another, unless its image was replaced or unloaded meanwhile.
    pub fn give_back(&self, counted: Counted) {
        let mut idle = self.idle.mine().lock();
        idle.used = Some(counted.instance.used());
        // Compared under the lock: who changes the image takes it afterwards, to clear what was kept of the old one.
        if counted.instance.calls_left > 0
            && counted.number == self.number.load(Ordering::Acquire)
            && idle.instances.len() < IDLE
        {
            idle.instances.push(counted);
        }
    }

    /// From here on it is counted, also when it is dropped at once.
    pub fn count(&self, of: &Numbered, instance: Instance) -> Counted {
        self.created.fetch_add(1, Ordering::Relaxed);
        self.live.fetch_add(1, Ordering::Relaxed);
        Counted {
            instance,
            number: of.number,
            live: self.live.clone(),
        }
    }

    /// The present image; none: unloaded.
    pub fn image(&self) -> Option<Numbered> {
        self.present.lock().numbered()
    }

    /// What to map when it is unloaded: a file, and how that was compiled.
    pub fn stored(&self) -> (Option<Arc<Stored>>, Code) {
        let present = self.present.lock();
        (present.stored.clone(), present.code)
    }

    /// What was unloaded is there again, if there is no better one meanwhile.
    pub fn put_back(&self, image: Arc<Image>) -> Option<Numbered> {
        let mut present = self.present.lock();
        if present.image.is_none() && present.code == image.code {
            self.change(&mut present, Some(image));
        }
        present.numbered()
    }

    /// An image takes the place of the present one, whose idle instances go. If that is unloaded, so stays this one, if a file holds it.
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

    /// Drops idle instances that were called last before `before`; with the last instance, the image too, if a file holds it. True: the image was dropped.
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

    /// When it was called last, or came, if it is there.
    pub fn used(&self) -> Option<Instant> {
        let since = {
            let present = self.present.lock();
            present.image.as_ref().map(|_| present.since)?
        };
        Some(self.last_call().map_or(since, |used| used.max(since)))
    }

    /// Instances that live.
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
