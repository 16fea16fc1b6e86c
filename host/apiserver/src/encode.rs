//! Writes answers for the wire.
//!
//! Owns the order of keys in JSON, and assembles answers from parts without copying objects. Must
//! not know HTTP, or how protobuf is written.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value, json};

use crate::kinds::Target;
use crate::negotiate::Wire;
use crate::object::Object;
use crate::protobuf;

/// The media type of JSON.
pub(crate) const JSON: &str = "application/json";

/// A written answer.
#[derive(Debug)]
pub(crate) struct Written {
    pub media: &'static str,
    pub bytes: Vec<u8>,
}

impl Written {
    /// Returns the answer in protobuf; in JSON if there is no such form.
    fn of(protobuf: Option<Vec<u8>>, json: impl FnOnce() -> Vec<u8>) -> Written {
        let (media, bytes) = match protobuf {
            Some(bytes) => (protobuf::MEDIA, bytes),
            None => (JSON, json()),
        };
        Written { media, bytes }
    }
}

/// An object with its keys in the order of a real server: custom objects alphabetically, built-in
/// ones with kind, apiVersion and metadata first. Built-in objects in a list omit kind and
/// apiVersion.
pub(crate) struct Ordered<'a> {
    object: &'a Value,
    custom: bool,
    within_list: bool,
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(map) = self.object else {
            return self.object.serialize(serializer);
        };
        if self.custom {
            return map.serialize(serializer);
        }
        let first: &[&str] = if self.within_list {
            &["metadata"]
        } else if map.get("kind").is_some_and(|kind| kind == "Status") {
            &[
                "kind",
                "apiVersion",
                "metadata",
                "status",
                "message",
                "reason",
                "details",
                "code",
            ]
        } else {
            &["kind", "apiVersion", "metadata"]
        };
        let mut out = serializer.serialize_map(None)?;
        for key in first {
            if let Some(value) = map.get(*key) {
                out.serialize_entry(key, value)?;
            }
        }
        for (key, value) in map.iter().filter(|(k, _)| {
            !["kind", "apiVersion", "metadata"].contains(&k.as_str())
                && !first.contains(&k.as_str())
        }) {
            out.serialize_entry(key, value)?;
        }
        out.end()
    }
}

/// A list of objects of a kind.
struct List<'a> {
    target: &'a Target,
    metadata: &'a Value,
    items: &'a [Object],
}

struct Items<'a>(&'a [Object], bool);

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_seq(Some(self.0.len()))?;
        for object in self.0 {
            out.serialize_element(&Ordered {
                object,
                custom: self.1,
                within_list: true,
            })?;
        }
        out.end()
    }
}

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, version) = (&self.target.kind.list_kind, self.target.api_version());
        let custom = self.target.kind.custom;
        let items = Items(self.items, custom);
        let mut out = serializer.serialize_map(Some(4))?;
        if custom {
            out.serialize_entry("apiVersion", &version)?;
            out.serialize_entry("items", &items)?;
            out.serialize_entry("kind", kind)?;
            out.serialize_entry("metadata", self.metadata)?;
        } else {
            out.serialize_entry("kind", kind)?;
            out.serialize_entry("apiVersion", &version)?;
            out.serialize_entry("metadata", self.metadata)?;
            out.serialize_entry("items", &items)?;
        }
        out.end()
    }
}

/// Writes one object.
pub(crate) fn object_as(wire: Wire, value: &Value, custom: bool) -> Written {
    let protobuf = match wire {
        Wire::Protobuf => protobuf::to_protobuf(value),
        Wire::Json => None,
    };
    Written::of(protobuf, || object(value, custom))
}

/// Writes a list.
pub(crate) fn list_as(wire: Wire, target: &Target, metadata: &Value, items: &[Object]) -> Written {
    let kind = &target.kind;
    let protobuf = match wire {
        Wire::Protobuf => {
            let api_version = target.api_version();
            let names = (&*api_version, &*kind.list_kind, &*kind.kind);
            protobuf::encoded_list(names, metadata, items.iter().map(|item| &**item))
        }
        Wire::Json => None,
    };
    Written::of(protobuf, || list(target, metadata, items))
}

/// Writes a list of objects' metadata.
pub(crate) fn partial_list(wire: Wire, metadata: &Value, items: &[Object]) -> Written {
    const API_VERSION: &str = "meta.k8s.io/v1";
    const KIND: &str = "PartialObjectMetadataList";
    let protobuf = match wire {
        // Of an object, only the metadata is a field of this message.
        Wire::Protobuf => {
            let names = (API_VERSION, KIND, "PartialObjectMetadata");
            protobuf::encoded_list(names, metadata, items.iter().map(|item| &**item))
        }
        Wire::Json => None,
    };
    Written::of(protobuf, || {
        let items: Vec<Value> = items.iter().map(|o| partial(o)).collect();
        let list = json!({
            "kind": KIND,
            "apiVersion": API_VERSION,
            "metadata": metadata,
            "items": items,
        });
        object(&list, false)
    })
}

/// Writes one event of a watch.
pub(crate) fn event_as(wire: Wire, kind: &str, value: &Value, custom: bool) -> Vec<u8> {
    let protobuf = match wire {
        Wire::Protobuf => protobuf::event(kind, value),
        Wire::Json => None,
    };
    protobuf.unwrap_or_else(|| event(kind, value, custom))
}

/// Serialises one object.
pub(crate) fn object(value: &Value, custom: bool) -> Vec<u8> {
    text(&Ordered {
        object: value,
        custom,
        within_list: false,
    })
}

/// Serialises a list.
fn list(target: &Target, metadata: &Value, items: &[Object]) -> Vec<u8> {
    text(&List {
        target,
        metadata,
        items,
    })
}

/// Serialises one line of a watch. `type` comes before `object`, which readers rely on.
fn event(kind: &str, value: &Value, custom: bool) -> Vec<u8> {
    let mut line = format!("{{\"type\":\"{kind}\",\"object\":").into_bytes();
    line.extend(object(value, custom));
    line.extend(b"}\n");
    line
}

fn text(value: &impl Serialize) -> Vec<u8> {
    // A Value can always be serialised: its keys are strings and its numbers finite.
    serde_json::to_vec(value).unwrap_or_default()
}

/// Returns only an object's metadata.
pub(crate) fn partial(object: &Value) -> Value {
    let mut out = Map::new();
    out.insert("kind".to_owned(), "PartialObjectMetadata".into());
    out.insert("apiVersion".to_owned(), "meta.k8s.io/v1".into());
    out.insert(
        "metadata".to_owned(),
        object.get("metadata").cloned().unwrap_or_default(),
    );
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_objects_begin_with_what_they_are() {
        let value = json!({ "apiVersion": "v1", "data": {}, "kind": "ConfigMap", "metadata": { "name": "x" } });
        let text = String::from_utf8(object(&value, false)).unwrap();
        assert_eq!(
            text,
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x"},"data":{}}"#
        );
        let text = String::from_utf8(object(&value, true)).unwrap();
        assert!(text.starts_with(r#"{"apiVersion":"v1","data":{}"#));
        assert!(event("ADDED", &value, true).starts_with(br#"{"type":"ADDED","object":{"#));
    }
}
