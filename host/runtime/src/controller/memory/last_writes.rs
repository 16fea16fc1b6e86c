//! The last writes of a controller, by object. They serve two purposes: an apply that would change
//! nothing is not sent, and a write to an unwatched object is recognised as one that changed
//! nothing. This module sends no writes.

use std::hash::{BuildHasher, RandomState};

use lru::LruCache;
use vmhost_cluster::Written;
use vmhost_core::{Apply, Gvk, ObjectKey, ObjectName};

/// The number of object names that are remembered, each with the kinds it was written as. A name
/// with one kind takes about 250 bytes, so a full map takes 16 MiB. Beyond this limit the least
/// recently used name is forgotten, which costs one redundant write.
const NAMES: usize = 65_536;

/// The last writes of a controller.
///
/// An apply is skipped only if it equals this field manager's last successful apply to the same
/// uid, and the store still shows the version that that apply returned. A comparison with the
/// snapshot instead would keep fields that should be given up.
#[derive(Debug)]
pub(crate) struct LastWrites {
    of: LruCache<ObjectName, Writes>,
}

/// Computes the digests of applied objects, in some milliseconds for a large one: never under a
/// lock.
#[derive(Debug, Default)]
pub(crate) struct Digests(RandomState);

impl Digests {
    /// The digest of what an apply sends.
    pub(crate) fn of(&self, apply: &Apply) -> u64 {
        self.0.hash_one((&apply.object, apply.force))
    }
}

/// The last writes to the objects of one name.
#[derive(Debug, Default)]
struct Writes {
    applies: Vec<LastApply>,
    /// The versions of objects that are in no watch.
    versions: Vec<(Gvk, u64)>,
}

#[derive(Debug)]
struct LastApply {
    target: (Gvk, Option<String>),
    uid: Box<str>,
    digest: u64,
    version: u64,
}

impl Default for LastWrites {
    fn default() -> Self {
        Self {
            // Memory is allocated as the map fills.
            of: LruCache::unbounded(),
        }
    }
}

impl LastWrites {
    /// The digest of the last apply to this object. `None` if the store does not show its result:
    /// `stored` is the uid and the version of the object in the store.
    pub(crate) fn last_apply(
        &mut self,
        key: &ObjectKey,
        apply: &Apply,
        stored: (&str, u64),
    ) -> Option<u64> {
        let applies = &self.of.get(&key.name)?.applies;
        let last = applies.iter().find(|last| last.is_of(key, apply))?;
        ((&*last.uid, last.version) == stored).then_some(last.digest)
    }

    /// Records a successful apply with its digest.
    pub(crate) fn applied(
        &mut self,
        key: &ObjectKey,
        apply: &Apply,
        digest: u64,
        written: &Written,
    ) {
        let last = LastApply {
            target: (key.kind.clone(), apply.subresource.clone()),
            uid: written.uid.as_str().into(),
            digest,
            version: written.version,
        };
        self.change(&key.name, |writes| {
            writes.applies.retain(|last| !last.is_of(key, apply));
            writes.applies.push(last);
        });
    }

    /// The version after the last write, if known, of an object that is in no watch.
    pub(crate) fn version(&mut self, key: &ObjectKey) -> Option<u64> {
        let mut versions = self.of.get(&key.name)?.versions.iter();
        let found = versions.find(|(kind, _)| *kind == key.kind);
        found.map(|(_, version)| *version)
    }

    /// Records the version after a write to an object that is in no watch.
    pub(crate) fn wrote_unseen(&mut self, key: &ObjectKey, version: u64) {
        self.change(&key.name, |writes| {
            writes.versions.retain(|(kind, _)| *kind != key.kind);
            writes.versions.push((key.kind.clone(), version));
        });
    }

    /// Forgets the writes to a deleted object.
    pub(crate) fn forget(&mut self, name: &ObjectName) {
        self.of.pop(name);
    }

    fn change(&mut self, name: &ObjectName, change: impl FnOnce(&mut Writes)) {
        change(self.of.get_or_insert_mut(name.clone(), Writes::default));
        if self.of.len() > NAMES {
            self.of.pop_lru();
        }
    }
}

impl LastApply {
    fn is_of(&self, key: &ObjectKey, apply: &Apply) -> bool {
        self.target.0 == key.kind && self.target.1 == apply.subresource
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey {
            kind: Gvk::new("", "v1", "ConfigMap"),
            name: ObjectName::new(Some("a"), name),
        }
    }

    fn apply(object: &str) -> Apply {
        Apply {
            object: object.into(),
            subresource: None,
            force: true,
            create_if_absent: true,
            if_version: None,
        }
    }

    fn written() -> Written {
        Written {
            version: 5,
            uid: "u".into(),
            ..Written::default()
        }
    }

    #[test]
    fn an_apply_is_left_out_only_if_nothing_has_changed_on_either_side() {
        let key = key("x");
        let mut last = LastWrites::default();
        let digests = Digests::default();
        let is_repeated = |last: &mut LastWrites, object: &str, stored| {
            let known = last.last_apply(&key, &apply(object), stored);
            known == Some(digests.of(&apply(object)))
        };
        let two = apply("two labels");
        last.applied(&key, &two, digests.of(&two), &written());
        assert!(is_repeated(&mut last, "two labels", ("u", 5)));
        for (object, stored, what) in [
            ("one label", ("u", 5), "a field is given up"),
            ("two labels", ("u", 6), "another writer changed it"),
            ("two labels", ("v", 5), "another object"),
        ] {
            assert!(!is_repeated(&mut last, object, stored), "{what}");
        }
        last.forget(&key.name);
        assert!(!is_repeated(&mut last, "two labels", ("u", 5)));
    }

    #[test]
    fn the_oldest_names_are_forgotten_and_no_others() {
        let mut last = LastWrites::default();
        let is_known = |last: &mut LastWrites, name: &str| {
            last.last_apply(&key(name), &apply("same"), ("u", 5)) == Some(1)
        };
        for number in 0..NAMES {
            last.applied(&key(&number.to_string()), &apply("same"), 1, &written());
        }
        assert!(is_known(&mut last, "0"), "all that fit");
        for number in NAMES..NAMES + 10 {
            last.applied(&key(&number.to_string()), &apply("same"), 1, &written());
        }
        assert!(is_known(&mut last, "0"), "asked for since");
        let known = (1..NAMES + 10).filter(|number| is_known(&mut last, &number.to_string()));
        assert!(known.eq(11..NAMES + 10), "ten came, the ten oldest went");
    }

    #[test]
    fn versions_of_what_no_watch_shows_are_by_kind() {
        let mut last = LastWrites::default();
        let secret = ObjectKey {
            kind: Gvk::new("", "v1", "Secret"),
            ..key("x")
        };
        assert_eq!(last.version(&key("x")), None);
        last.wrote_unseen(&key("x"), 5);
        last.wrote_unseen(&key("x"), 7);
        last.wrote_unseen(&secret, 6);
        assert_eq!(
            (last.version(&key("x")), last.version(&secret)),
            (Some(7), Some(6))
        );
        last.forget(&secret.name);
        assert_eq!(last.version(&key("x")), None);
    }
}
