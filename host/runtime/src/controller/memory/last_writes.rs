//! What a controller wrote last to each object: so that an apply that would change nothing is not
//! sent, and a write that changed nothing is known for that where no watch shows its object. It
//! writes nothing itself.

use std::hash::{BuildHasher, RandomState};

use lru::LruCache;
use vmhost_cluster::Written;
use vmhost_core::{Apply, Gvk, ObjectKey, ObjectName};

/// Names of objects that are remembered, each with the kinds that it was written in: about 250
/// bytes for one kind, 16 MiB when it is full. Beyond that those are forgotten that were not
/// written or asked for the longest, which costs one write each.
const NAMES: usize = 65_536;

/// The last writes of a controller.
///
/// An apply is left out only if it equals this manager's last successful one to that uid and the
/// store still shows the version which that returned. Comparing with the snapshot instead would
/// keep fields that should be given up.
#[derive(Debug)]
pub struct LastWrites {
    of: LruCache<ObjectName, Writes>,
    /// Of applied objects.
    digests: RandomState,
}

/// Those to the objects of one name.
#[derive(Debug, Default)]
struct Writes {
    applies: Vec<LastApply>,
    /// Of objects that no watch shows.
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
            // Takes room as it is filled.
            of: LruCache::unbounded(),
            digests: RandomState::new(),
        }
    }
}

impl LastWrites {
    /// Returns whether an apply would change nothing. `stored`: uid and version of the object in
    /// the store.
    pub fn is_repeated(&mut self, key: &ObjectKey, apply: &Apply, stored: (&str, u64)) -> bool {
        let Some(writes) = self.of.get(&key.name) else {
            return false;
        };
        let last = writes.applies.iter().find(|last| last.is_of(key, apply));
        last.is_some_and(|last| {
            (&*last.uid, last.version) == stored && last.digest == digest(&self.digests, apply)
        })
    }

    /// An apply was carried out.
    pub fn applied(&mut self, key: &ObjectKey, apply: &Apply, written: &Written) {
        let last = LastApply {
            target: (key.kind.clone(), apply.subresource.clone()),
            uid: written.uid.as_str().into(),
            digest: digest(&self.digests, apply),
            version: written.version,
        };
        self.change(&key.name, |writes| {
            writes.applies.retain(|last| !last.is_of(key, apply));
            writes.applies.push(last);
        });
    }

    /// The version that the last write has made of an object that no watch shows, if it is
    /// known.
    pub fn version(&mut self, key: &ObjectKey) -> Option<u64> {
        let mut versions = self.of.get(&key.name)?.versions.iter();
        let found = versions.find(|(kind, _)| *kind == key.kind);
        found.map(|(_, version)| *version)
    }

    /// A write has made this version of an object that no watch shows.
    pub fn wrote_unseen(&mut self, key: &ObjectKey, version: u64) {
        self.change(&key.name, |writes| {
            writes.versions.retain(|(kind, _)| *kind != key.kind);
            writes.versions.push((key.kind.clone(), version));
        });
    }

    /// The object is gone.
    pub fn forget(&mut self, name: &ObjectName) {
        self.of.pop(name);
    }

    fn change(&mut self, name: &ObjectName, change: impl FnOnce(&mut Writes)) {
        change(self.of.get_or_insert_mut(name.clone(), Writes::default));
        if self.of.len() > NAMES {
            self.of.pop_lru();
        }
    }
}

fn digest(hasher: &RandomState, apply: &Apply) -> u64 {
    hasher.hash_one((&apply.object, apply.force))
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
        last.applied(&key, &apply("two labels"), &written());
        assert!(last.is_repeated(&key, &apply("two labels"), ("u", 5)));
        for (object, stored, what) in [
            ("one label", ("u", 5), "a field is given up"),
            ("two labels", ("u", 6), "somebody changed it"),
            ("two labels", ("v", 5), "another object"),
        ] {
            assert!(!last.is_repeated(&key, &apply(object), stored), "{what}");
        }
        last.forget(&key.name);
        assert!(!last.is_repeated(&key, &apply("two labels"), ("u", 5)));
    }

    #[test]
    fn the_oldest_names_are_forgotten_and_no_others() {
        let mut last = LastWrites::default();
        let is_known = |last: &mut LastWrites, name: &str| {
            last.is_repeated(&key(name), &apply("same"), ("u", 5))
        };
        for number in 0..NAMES {
            last.applied(&key(&number.to_string()), &apply("same"), &written());
        }
        assert!(is_known(&mut last, "0"), "all that fit");
        for number in NAMES..NAMES + 10 {
            last.applied(&key(&number.to_string()), &apply("same"), &written());
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
