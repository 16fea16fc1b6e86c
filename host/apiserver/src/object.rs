//! The stored objects and their keys.
//!
//! Owns the forms of an object: its text, which the store, the history, the journal and the answers
//! share, and its value, which is made of the text when it is needed. Must not know kinds.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

/// An object as a value; never changed in place.
pub(crate) type Object = Arc<Value>;

/// A stored object: its text, in which the keys are in alphabetical order.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    text: Arc<str>,
    /// Its value, if that is read too often to be made each time.
    value: Option<Object>,
}

impl PartialEq for Stored {
    fn eq(&self, other: &Stored) -> bool {
        self.text == other.text
    }
}

impl Eq for Stored {}

impl Stored {
    pub fn of(object: &Value) -> Stored {
        // A Value can always be serialised: its keys are strings and its numbers finite.
        let text = serde_json::to_string(object).unwrap_or_default();
        Stored {
            text: text.into(),
            value: None,
        }
    }

    /// Returns the object with its value beside the text.
    pub fn with_value(self, value: Object) -> Stored {
        Stored {
            value: Some(value),
            ..self
        }
    }

    /// Returns the object without a value beside the text.
    pub fn without_value(&self) -> Stored {
        Stored {
            text: self.text.clone(),
            value: None,
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the size of the text in bytes.
    pub fn size(&self) -> usize {
        self.text.len()
    }

    /// Returns the object as a value.
    pub fn object(&self) -> Object {
        match &self.value {
            Some(value) => value.clone(),
            // The text was made of a value, so that it can be read.
            None => Arc::new(serde_json::from_str(&self.text).unwrap_or_default()),
        }
    }

    /// Returns an object with the same metadata, and perhaps nothing else: this costs less than the
    /// whole object.
    pub fn head(&self) -> Object {
        #[derive(Deserialize)]
        struct Head {
            #[serde(default)]
            metadata: Value,
        }
        if let Some(value) = &self.value {
            return value.clone();
        }
        let head: Option<Head> = serde_json::from_str(&self.text).ok();
        let metadata = head.map(|head| head.metadata).unwrap_or_default();
        Arc::new(Value::Object(Map::from_iter([(
            "metadata".to_owned(),
            metadata,
        )])))
    }

    /// Returns whether the object is in this version of its kind.
    pub fn is_in(&self, api_version: &str) -> bool {
        #[derive(Deserialize)]
        struct Version<'a> {
            #[serde(borrow, rename = "apiVersion")]
            api_version: Cow<'a, str>,
        }
        // Of most kinds, this is the first key.
        match self.text.strip_prefix("{\"apiVersion\":\"") {
            Some(rest) => {
                let rest = rest.strip_prefix(api_version);
                rest.is_some_and(|rest| rest.starts_with('"'))
            }
            None => {
                let version = serde_json::from_str::<Version<'_>>(&self.text);
                version.is_ok_and(|version| version.api_version == api_version)
            }
        }
    }
}

/// An object in the version of a request: as it is stored, or what was made of that.
#[derive(Clone, Debug)]
pub(crate) enum Shown {
    Stored(Stored),
    Made(Object),
}

impl Shown {
    /// Returns the object as a value.
    pub fn object(&self) -> Object {
        match self {
            Shown::Stored(stored) => stored.object(),
            Shown::Made(object) => object.clone(),
        }
    }

    /// Returns an object with the same metadata, and perhaps nothing else.
    pub fn head(&self) -> Object {
        match self {
            Shown::Stored(stored) => stored.head(),
            Shown::Made(object) => object.clone(),
        }
    }
}

/// The key of an object within its storage. The namespace is empty for cluster-scoped kinds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub fn new(namespace: &str, name: &str) -> Key {
        Key {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_says_what_its_object_says() {
        let object = json!({
            "apiVersion": "v1", "kind": "X", "metadata": { "name": "a" }, "spec": { "text": "\"\n" },
        });
        let stored = Stored::of(&object);
        assert_eq!(*stored.object(), object);
        assert_eq!(*stored.head(), json!({ "metadata": { "name": "a" } }));
        assert!(stored.is_in("v1") && !stored.is_in("v") && !stored.is_in("v1beta1"));
        // A key before apiVersion.
        let object = json!({ "aggregationRule": {}, "apiVersion": "rbac/v1", "kind": "X" });
        let stored = Stored::of(&object);
        assert!(stored.is_in("rbac/v1") && !stored.is_in("v1"));
        assert_eq!(*stored.head(), json!({ "metadata": null }));
    }

    #[test]
    fn numbers_survive_their_text() {
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..10_000 {
            let number = f64::from_bits(random.u64(..));
            if number.is_finite() {
                let object = json!({ "n": number });
                assert_eq!(*Stored::of(&object).object(), object);
            }
        }
        let whole = json!({ "n": [0, -1, u64::MAX, i64::MIN, 1.0, -0.0, 1e300] });
        assert_eq!(*Stored::of(&whole).object(), whole);
    }
}
