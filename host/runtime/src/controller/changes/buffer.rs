//! The limit on buffered change bytes, shared by all controllers and generations of a plugin. This
//! module must not know what a change says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A byte budget.
#[derive(Debug)]
pub struct MapBuffer {
    limit: usize,
    used: AtomicUsize,
}

/// A reserved part of the budget. Dropping it releases the bytes.
#[derive(Debug)]
pub(super) struct Room {
    buffer: Arc<MapBuffer>,
    bytes: usize,
}

impl MapBuffer {
    /// An unused budget. The limit is in bytes.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            used: AtomicUsize::new(0),
        })
    }

    /// The reserved bytes.
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

    /// Reserves `bytes` more. Returns `false` and reserves nothing if the budget does not allow it.
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

    /// Takes over the bytes that the other has reserved.
    pub(super) fn absorb(&mut self, other: &mut Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.buffer.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
