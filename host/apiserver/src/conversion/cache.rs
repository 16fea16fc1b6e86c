//! Converted objects, so that lists and watches convert an object once for each change of it.
//!
//! Like the cache of a real server, it does not hear that a webhook converts in another way since;
//! reads of one object and writes do not rely on it. Must not know how objects are converted.

use std::collections::HashMap;

use parking_lot::Mutex;
use serde_json::Value;

use crate::kinds::Target;
use crate::meta;
use crate::object::Object;

/// The number of objects that are kept. Enough for a watch and a list of a test's objects in two
/// versions; when it is reached, all are dropped.
const MAX: usize = 8_192;

/// The object, the state in which it was stored, and what it was converted to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Name {
    uid: String,
    version: String,
    /// Differs between definitions whose webhooks differ.
    definition: String,
    to: usize,
}

/// The converted objects of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<HashMap<Name, Object>>);

impl Cache {
    /// Returns a stored object in another version.
    pub fn get(&self, to: &Target, stored: &Value) -> Option<Object> {
        self.0.lock().get(&name(to, stored)?).cloned()
    }

    pub fn put(&self, to: &Target, stored: &Value, converted: &Object) {
        let Some(name) = name(to, stored) else {
            return;
        };
        let mut all = self.0.lock();
        if all.len() >= MAX {
            all.clear();
        }
        all.insert(name, converted.clone());
    }

    /// Drops what an object was converted to: its webhook may convert it in another way now.
    pub fn forget(&self, to: &Target, stored: &Value) {
        if let Some(name) = name(to, stored) {
            self.0.lock().remove(&name);
        }
    }

    /// Drops everything.
    pub fn clear(&self) {
        self.0.lock().clear();
    }
}

fn name(to: &Target, stored: &Value) -> Option<Name> {
    let text = |field: &str| Some(meta::text(stored, field)).filter(|text| !text.is_empty());
    Some(Name {
        uid: text("uid")?.to_owned(),
        version: text("resourceVersion")?.to_owned(),
        definition: to.kind.definition.clone(),
        to: to.version,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::builtin;

    #[test]
    fn what_is_forgotten_is_converted_again() {
        let kind = builtin::kinds().first().cloned().unwrap();
        let to = Target { kind, version: 0 };
        let stored = json!({ "metadata": { "uid": "u", "resourceVersion": "7" } });
        let cache = Cache::default();
        let made = Arc::new(json!({ "made": true }));
        cache.put(&to, &stored, &made);
        assert!(cache.get(&to, &stored).is_some());
        cache.forget(&to, &stored);
        assert!(cache.get(&to, &stored).is_none());
        cache.put(&to, &stored, &made);
        cache.clear();
        assert!(cache.get(&to, &stored).is_none());
    }
}
