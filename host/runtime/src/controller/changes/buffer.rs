//! How many bytes of changes a plugin may keep, over all its controllers and generations.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A number of bytes.
#[derive(Debug)]
pub struct MapBuffer {
    limit: usize,
    used: AtomicUsize,
}

/// A part of them. Dropping it gives it back.
#[derive(Debug)]
pub(super) struct Room {
    buffer: Arc<MapBuffer>,
    bytes: usize,
}

impl MapBuffer {
    /// All of it is free. The limit is in bytes.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            used: AtomicUsize::new(0),
        })
    }

    /// Bytes that are taken.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

impl Room {
    pub(super) fn empty(buffer: &Arc<MapBuffer>) -> Self {
        Self {
            buffer: buffer.clone(),
            bytes: 0,
        }
    }

    /// Takes so many more. False: they are not free, and nothing was taken.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let limit = self.buffer.limit;
        let more = |used: usize| used.checked_add(bytes).filter(|used| *used <= limit);
        let grown = self
            .buffer
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok();
        if grown {
            self.bytes += bytes;
        }
        grown
    }

    /// Takes over what the other has.
    pub(super) fn absorb(&mut self, other: &mut Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.buffer.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
