//! What a controller applied last to each object, so that an apply that would change nothing is not sent. It writes nothing itself.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use vmhost_cluster::Written;
use vmhost_core::{Apply, Gvk, ObjectKey, ObjectName};

/// What a controller applied last to each object, so that an apply that would change nothing is not sent.
///
/// An apply is left out only if it equals this manager's last successful one to that uid and the store still shows the version which that returned. Comparing with
/// the snapshot instead would keep fields that should be given up.
#[derive(Debug, Default)]
pub struct Applied(Mutex<HashMap<ObjectName, Vec<LastApply>>>);

#[derive(Debug)]
struct LastApply {
    target: (Gvk, Option<String>),
    uid: Box<str>,
    digest: u64,
    version: u64,
}

/// Objects of which the last apply is kept. About 200 bytes each; when it is full all are forgotten, which costs a write each and nothing else.
const APPLIED: usize = 65_536;

impl Applied {
    /// Would it change nothing? `stored` is uid and version of the object in the store.
    pub fn is_repeated(&self, key: &ObjectKey, apply: &Apply, stored: (&str, u64)) -> bool {
        let applied = self.lock();
        let Some(last) = applied
            .get(&key.name)
            .and_then(|list| list.iter().find(|last| last.is_of(key, apply)))
        else {
            return false;
        };
        last.digest == digest(apply) && (&*last.uid, last.version) == stored
    }

    /// It was carried out.
    pub fn record(&self, key: &ObjectKey, apply: &Apply, written: &Written) {
        let mut applied = self.lock();
        if applied.len() >= APPLIED {
            applied.clear();
        }
        let list = applied.entry(key.name.clone()).or_default();
        list.retain(|last| !last.is_of(key, apply));
        list.push(LastApply {
            target: (key.kind.clone(), apply.subresource.clone()),
            uid: written.uid.as_str().into(),
            digest: digest(apply),
            version: written.version,
        });
    }

    /// The object is gone.
    pub fn forget(&self, name: &ObjectName) {
        let mut applied = self.lock();
        if !applied.is_empty() {
            applied.remove(name);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectName, Vec<LastApply>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LastApply {
    fn is_of(&self, key: &ObjectKey, apply: &Apply) -> bool {
        self.target.0 == key.kind && self.target.1 == apply.subresource
    }
}

fn digest(apply: &Apply) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&apply.object, apply.force).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_apply_is_left_out_only_if_nothing_has_changed_on_either_side() {
        let key = ObjectKey {
            kind: Gvk::new("", "v1", "ConfigMap"),
            name: ObjectName::new(Some("a"), "x"),
        };
        let apply = |object: &str| Apply {
            object: object.into(),
            subresource: None,
            force: true,
            create_if_absent: true,
            if_version: None,
        };
        let applied = Applied::default();
        let written = Written {
            version: 5,
            uid: "u".into(),
            ..Written::default()
        };
        applied.record(&key, &apply("two labels"), &written);
        assert!(applied.is_repeated(&key, &apply("two labels"), ("u", 5)));
        assert!(
            !applied.is_repeated(&key, &apply("one label"), ("u", 5)),
            "a field is given up"
        );
        assert!(
            !applied.is_repeated(&key, &apply("two labels"), ("u", 6)),
            "somebody changed it"
        );
        assert!(
            !applied.is_repeated(&key, &apply("two labels"), ("v", 5)),
            "another object"
        );
        applied.forget(&key.name);
        assert!(!applied.is_repeated(&key, &apply("two labels"), ("u", 5)));
    }
}
