//! Shared by the benches: a key like the host's, and a naive queue.
#![allow(dead_code, reason = "each bench uses a part")]

use std::collections::{HashSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use vmhost_queue::{Decision, Queue};

/// The shape of `vmhost_core::ObjectName`, which this crate must not know: one shared text and the
/// length of the namespace.
#[derive(Clone)]
pub struct Name {
    text: Arc<str>,
    _namespace_len: u32,
}

impl Name {
    pub fn numbered(n: u64) -> Self {
        Self {
            text: format!("namespace-{}/object-{n:07}", n % 10).into(),
            _namespace_len: 11,
        }
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}
impl Eq for Name {}
impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

/// Takes a key and ends its run successfully. Returns whether a key was ready.
pub fn done<K: Hash + Eq + Clone + Send + 'static>(queue: &Queue<K>) -> bool {
    let lease = black_box(queue.try_get());
    let there = lease.is_some();
    if let Some(lease) = lease {
        lease.finish(Decision::Forget);
    }
    there
}

struct Lists<K> {
    queued: VecDeque<K>,
    dirty: HashSet<K>,
    running: HashSet<K>,
}

/// client-go's basic queue with std's collections: no lanes, no delays, no failures.
pub struct Naive<K> {
    lists: Mutex<Lists<K>>,
    ready: Notify,
}

impl<K: Hash + Eq + Clone> Naive<K> {
    pub fn new() -> Self {
        Self {
            lists: Mutex::new(Lists {
                queued: VecDeque::new(),
                dirty: HashSet::new(),
                running: HashSet::new(),
            }),
            ready: Notify::new(),
        }
    }

    fn with<R>(&self, action: impl FnOnce(&mut Lists<K>) -> R) -> R {
        action(&mut self.lists.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn add(&self, key: K) {
        let queued = self.with(|lists| {
            let queued = lists.dirty.insert(key.clone()) && !lists.running.contains(&key);
            if queued {
                lists.queued.push_back(key);
            }
            queued
        });
        if queued {
            self.ready.notify_one();
        }
    }

    pub fn try_get(&self) -> Option<K> {
        self.with(|lists| {
            let key = lists.queued.pop_front()?;
            lists.dirty.remove(&key);
            lists.running.insert(key.clone());
            Some(key)
        })
    }

    pub async fn get(&self) -> K {
        loop {
            if let Some(key) = self.try_get() {
                return key;
            }
            self.ready.notified().await;
        }
    }

    pub fn done(&self, key: &K) {
        self.with(|lists| {
            lists.running.remove(key);
            if lists.dirty.contains(key) {
                lists.queued.push_back(key.clone());
            }
        });
    }
}
