//! The objects that a candidate wrote, each with the record of the candidate's first write to it,
//! which shows what the live version had left there. The list is bounded, and so is the count of
//! the objects that are left out. This module must not know what a record contains.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use vmhost_core::ObjectKey;

/// The number of objects that are listed.
const OBJECTS: usize = 10_000;

/// The bytes of records that are kept. Later objects are listed without what changed.
const BYTES: usize = 4 << 20;

/// The number of further objects that are counted. Their hashes take 1.2 MB: there are 2^17 places
/// of 9 bytes for them.
const COUNTED: usize = 100_000;

/// The objects that were written, in the order of their first writes.
#[derive(Debug)]
pub(crate) struct Report<R> {
    objects: Vec<Written<R>>,
    places: HashMap<ObjectKey, usize>,
    bytes: usize,
    /// The hashes of further objects, which are only counted: a name takes ten times the memory.
    unlisted: HashSet<u64>,
    hasher: RandomState,
}

/// An object that was written.
#[derive(Debug)]
pub(crate) struct Written<R> {
    /// The object.
    pub(crate) object: ObjectKey,
    /// The number of turns that changed it. 0 if it is known of none, since no answer came.
    pub(crate) turns: u64,
    /// The record of the first of these turns. `None` if the records became too large.
    pub(crate) first: Option<Arc<R>>,
}

impl<R> Clone for Written<R> {
    fn clone(&self) -> Self {
        Self {
            object: self.object.clone(),
            turns: self.turns,
            first: self.first.clone(),
        }
    }
}

impl<R> Default for Report<R> {
    fn default() -> Self {
        Self {
            objects: Vec::new(),
            places: HashMap::new(),
            bytes: 0,
            unlisted: HashSet::new(),
            hasher: RandomState::new(),
        }
    }
}

impl<R> Report<R> {
    /// Adds a turn that changed these objects. `record` returns its record, which has this many
    /// bytes; it is called only if the record is kept.
    pub(crate) fn add<'k>(
        &mut self,
        objects: impl IntoIterator<Item = &'k ObjectKey>,
        bytes: usize,
        record: impl FnOnce() -> R,
    ) {
        self.note(objects, 1, bytes, record);
    }

    /// Like [`Report::add`], for a turn that may have changed these objects.
    pub(crate) fn perhaps<'k>(
        &mut self,
        objects: impl IntoIterator<Item = &'k ObjectKey>,
        bytes: usize,
        record: impl FnOnce() -> R,
    ) {
        self.note(objects, 0, bytes, record);
    }

    fn note<'k>(
        &mut self,
        objects: impl IntoIterator<Item = &'k ObjectKey>,
        turns: u64,
        bytes: usize,
        record: impl FnOnce() -> R,
    ) {
        let mut make = Some(record);
        let mut kept: Option<Arc<R>> = None;
        for object in objects {
            if let Some(place) = self.places.get(object) {
                if let Some(written) = self.objects.get_mut(*place) {
                    written.turns += turns;
                }
                continue;
            }
            if self.objects.len() >= OBJECTS {
                if self.unlisted.len() < COUNTED {
                    self.unlisted.insert(self.hasher.hash_one(object));
                }
                continue;
            }
            let has_room = self.bytes.saturating_add(bytes) <= BYTES;
            if let Some(make) = make.take_if(|_| has_room) {
                self.bytes += bytes;
                kept = Some(Arc::new(make()));
            }
            self.places.insert(object.clone(), self.objects.len());
            self.objects.push(Written {
                object: object.clone(),
                turns,
                first: kept.clone(),
            });
        }
    }

    /// The listed objects from this place on, at most so many.
    pub(crate) fn objects(&self, from: usize, most: usize) -> Vec<Written<R>> {
        let objects = self.objects.iter().skip(from).take(most);
        objects.cloned().collect()
    }

    /// The number of listed objects.
    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// The number of objects that were written and are not listed; of very many, [`COUNTED`].
    pub(crate) fn unlisted(&self) -> usize {
        self.unlisted.len()
    }
}

#[cfg(test)]
mod tests {
    use vmhost_core::{Gvk, ObjectName};

    use super::*;

    fn key(number: usize) -> ObjectKey {
        ObjectKey {
            kind: Gvk::new("", "v1", "ConfigMap"),
            name: ObjectName::new(Some("a"), &format!("x{number}")),
        }
    }

    #[test]
    fn the_first_record_of_each_object_is_kept() {
        let mut report = Report::default();
        report.add([&key(1), &key(2)], 10, || "first");
        report.add([&key(1), &key(3)], 10, || "second");
        let objects = report.objects(0, 9);
        let told: Vec<_> = objects
            .iter()
            .map(|written| (&written.object, written.turns, written.first.as_deref()))
            .collect();
        let (one, two, three) = (key(1), key(2), key(3));
        assert_eq!(
            told,
            [
                (&one, 2, Some(&"first")),
                (&two, 1, Some(&"first")),
                (&three, 1, Some(&"second")),
            ]
        );
        assert_eq!((report.len(), report.unlisted()), (3, 0));
    }

    #[test]
    fn what_may_have_been_changed_is_listed_without_a_turn() {
        let mut report = Report::default();
        report.perhaps([&key(1), &key(2)], 10, || "unanswered");
        report.add([&key(2)], 10, || panic!("its first record is there"));
        let objects = report.objects(0, 9);
        let turns: Vec<u64> = objects.iter().map(|written| written.turns).collect();
        assert_eq!(turns, [0, 1]);
        assert_eq!(objects[0].first.as_deref(), Some(&"unanswered"));
    }

    #[test]
    fn a_record_that_is_not_needed_is_not_made() {
        let mut report = Report::default();
        report.add([&key(1)], 10, || ());
        report.add([&key(1)], 10, || panic!("its first record is there"));
        assert_eq!(report.objects(0, 1)[0].turns, 2);
    }

    #[test]
    fn pages_follow_each_other() {
        let mut report = Report::default();
        let keys: Vec<_> = (0..5).map(key).collect();
        report.add(&keys, 0, || ());
        let page = |from, most| -> Vec<_> {
            let objects = report.objects(from, most);
            objects.into_iter().map(|written| written.object).collect()
        };
        assert_eq!(page(0, 3), keys[..3]);
        assert_eq!(page(3, 3), keys[3..]);
        assert!(page(5, 3).is_empty() && page(usize::MAX, 3).is_empty());
    }

    #[test]
    fn it_is_bounded_and_counts_what_it_leaves_out() {
        let mut report = Report::default();
        report.add([&key(0)], BYTES - 5, || ());
        report.add([&key(1)], 10, || panic!("too large"));
        report.add([&key(2)], 5, || ());
        let kept: Vec<bool> = report
            .objects(0, 9)
            .iter()
            .map(|written| written.first.is_some())
            .collect();
        assert_eq!(kept, [true, false, true]);
        for _ in 0..2 {
            for number in 3..OBJECTS + 7 {
                report.add([&key(number)], 0, || ());
            }
        }
        assert_eq!((report.len(), report.unlisted()), (OBJECTS, 7));
        let many: Vec<_> = (OBJECTS..OBJECTS + COUNTED + 9).map(key).collect();
        report.add(&many, 0, || ());
        assert_eq!(report.unlisted(), COUNTED, "a count is bounded, too");
        report.add([&key(0)], 0, || ());
        assert_eq!(
            report.objects(0, 1)[0].turns,
            2,
            "known objects still count"
        );
    }
}
