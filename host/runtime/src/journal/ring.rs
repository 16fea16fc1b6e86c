//! Records in the order in which they came, bounded in bytes. This module must not know how many
//! bytes there may be, or of what.

use std::collections::VecDeque;

use crate::journal::record::TurnRecord;

/// A ring of records.
#[derive(Debug, Default)]
pub(super) struct Ring {
    pub(super) records: VecDeque<Box<TurnRecord>>,
    pub(super) bytes: usize,
}

impl Ring {
    /// Adds a record. Moves the records that it displaces into `gone`.
    #[allow(clippy::vec_box, reason = "freed as it is, after the lock")]
    pub(super) fn push(
        &mut self,
        record: Box<TurnRecord>,
        most: usize,
        gone: &mut Vec<Box<TurnRecord>>,
    ) {
        let bytes = record.bytes();
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
    pub(super) fn shrink(&mut self, most: usize, gone: &mut Vec<Box<TurnRecord>>) {
        while self.bytes > most {
            let Some(oldest) = self.records.pop_front() else {
                break;
            };
            self.bytes -= oldest.bytes();
            gone.push(oldest);
        }
    }
}
