//! **Enqueue.** How events wake the keys of a controller: in which lane, and whether an own write
//! leaves a back-off as it is.
//!
//! Only the log of what woke a key keeps more of an event. This module must not know how a watch
//! finds the keys of an event.

use vmhost_cluster::{Notice, NoticeCause};
use vmhost_core::{Change, ObjectName};
use vmhost_queue::Tag;

use super::Controller;
use crate::controller::memory::own_writes::{Came, Origin};
use crate::journal::tag::{Cause, WakeTag};
use crate::journal::wakes::Wakened;
use crate::wake::triggers::{Wake, WatchId};

impl Wake for Controller {
    fn label(&self) -> &str {
        &self.label
    }

    fn wake(&self, key: &ObjectName, watch: &WatchId, notice: &Notice<'_>) {
        let number = self.log(key, watch, notice);
        let origin = self
            .memory
            .origin(key, (watch.number, notice.version), number);
        let cause = match (origin, notice.cause) {
            (Origin::Own, _) => Cause::OwnWrite,
            (_, NoticeCause::Initial) => Cause::Initial,
            (_, NoticeCause::Relisted) => Cause::Relisted,
            (_, NoticeCause::Rewound) => Cause::Rewound,
            (_, NoticeCause::Changed | NoticeCause::Deleted) => Cause::Changed,
        };
        let queue = self.queue.tagged(WakeTag::logged(cause, number));
        match origin {
            Origin::Held => {}
            Origin::Own => queue.add_unless_backing_off(key.clone()),
            Origin::Foreign if is_fresh(notice.cause) => queue.add(key.clone()),
            Origin::Foreign => queue.add_low(key.clone()),
        }
    }

    fn map(&self, source: u16, object: &ObjectName, change: Change) {
        self.mapper.push((source, object.clone()), change);
    }

    fn filtered(&self) {
        self.metrics.wakes.filtered.inc();
    }

    fn undecided(&self) {
        self.metrics.wakes.predicate_errors.inc();
    }
}

impl Controller {
    /// Ends the write phase of a key's turn: the events that were held back since its start count
    /// now.
    pub(crate) fn end_writes(&self, key: &ObjectName) {
        let (came, numbers) = self.memory.end_writes(key);
        let tagged = |cause: Cause| {
            let tags = numbers.iter().map(|number| WakeTag::logged(cause, *number));
            self.queue.tagged(tags.fold(WakeTag::default(), Tag::join))
        };
        match came {
            Came::Nothing => {}
            Came::OnlyOwn => tagged(Cause::OwnWrite).add_unless_backing_off(key.clone()),
            Came::Foreign => tagged(Cause::Changed).add(key.clone()),
        }
    }

    /// Handles a batch of watch events of which at least one concerns the key, while it is unknown
    /// which. The key keeps its back-off only if all of them are its own writes.
    pub(crate) fn wake_by_one_of(&self, key: &ObjectName, events: &[(u16, u64)]) {
        let mapped = self.queue.tagged(Cause::Mapped.into());
        let mut own = false;
        for &seen in events {
            match self.memory.origin(key, seen, 0) {
                Origin::Held => {}
                Origin::Own => own = true,
                Origin::Foreign => return mapped.add(key.clone()),
            }
        }
        if own {
            mapped.add_unless_backing_off(key.clone());
        }
    }

    /// Writes a change to the wake log and returns its number there, or 0. The objects of a first
    /// list are not logged, because that list does not show what changed.
    fn log(&self, key: &ObjectName, watch: &WatchId, notice: &Notice<'_>) -> u32 {
        if notice.cause == NoticeCause::Initial || !self.wakes.is_on() {
            return 0;
        }
        self.wakes.add(Wakened {
            number: 0,
            at: std::time::Instant::now(),
            controller: self.label.clone(),
            key: key.clone(),
            kind: watch.kind.clone(),
            old: notice.old.cloned(),
            new: notice.new.cloned(),
            managed: notice.managed.map(Into::into),
            own: false,
        })
    }
}

/// Returns whether the cause belongs in the normal lane. Keys of objects that did not change just
/// now wait in the low lane.
fn is_fresh(cause: NoticeCause) -> bool {
    matches!(cause, NoticeCause::Changed | NoticeCause::Deleted)
}
