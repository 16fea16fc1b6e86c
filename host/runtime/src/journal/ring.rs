//! Records in the order in which they came, bounded in bytes. This module must not know how many
//! bytes there may be, or of what.

use std::collections::VecDeque;

/// What a ring keeps.
pub(super) trait Kept {
    /// The bytes that it takes, which never change.
    fn size(&self) -> usize;
}

/// A ring of records.
#[derive(Debug)]
pub(super) struct Ring<R> {
    pub(super) records: VecDeque<Box<R>>,
    pub(super) bytes: usize,
}

impl<R> Default for Ring<R> {
    fn default() -> Self {
        Self {
            records: VecDeque::new(),
            bytes: 0,
        }
    }
}

impl<R: Kept> Ring<R> {
    /// Adds a record. Moves the records that it displaces into `gone`.
    #[allow(clippy::vec_box, reason = "freed as it is, after the lock")]
    pub(super) fn push(&mut self, record: Box<R>, most: usize, gone: &mut Vec<Box<R>>) {
        let bytes = record.size();
        if bytes > most {
            // The record itself is dropped: one plugin must not displace the records of others.
            gone.push(record);
            return;
        }
        self.bytes += bytes;
        self.records.push_back(record);
        self.shrink(most, gone);
    }

    /// Moves the oldest records above this many bytes into `gone`.
    #[allow(clippy::vec_box, reason = "freed as it is, after the lock")]
    pub(super) fn shrink(&mut self, most: usize, gone: &mut Vec<Box<R>>) {
        while self.bytes > most {
            let Some(oldest) = self.records.pop_front() else {
                break;
            };
            self.bytes -= oldest.size();
            gone.push(oldest);
        }
    }
}
