//! Writes answers for the wire.
//!
//! Assembles answers from parts without copying objects, or reading the text of stored ones where
//! that is the answer. Must not know HTTP, or how protobuf is written.

mod order;

use order::{List, Ordered, OrderedShown};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::kinds::Target;
use crate::negotiate::Wire;
use crate::object::Shown;
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
    /// Writes an answer in protobuf if that is asked for and there is such a form, else in JSON.
    fn of(
        wire: Wire,
        make: impl FnOnce() -> Option<Vec<u8>>,
        json: impl FnOnce() -> Vec<u8>,
    ) -> Written {
        let (media, bytes) = match in_protobuf(wire, make) {
            Some(bytes) => (protobuf::MEDIA, bytes),
            None => (JSON, json()),
        };
        Written { media, bytes }
    }
}

/// Makes the form in protobuf if it is asked for; `None` also if there is none.
fn in_protobuf(wire: Wire, make: impl FnOnce() -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    match wire {
        Wire::Protobuf => make(),
        Wire::Json => None,
    }
}

/// Writes one object.
pub(crate) fn object_as(wire: Wire, value: &Value, custom: bool) -> Written {
    Written::of(
        wire,
        || protobuf::to_protobuf(value),
        || object(value, custom),
    )
}

/// Writes one object as a request sees it.
pub(crate) fn shown_as(wire: Wire, shown: &Shown, custom: bool) -> Written {
    match (wire, shown) {
        (Wire::Json, Shown::Stored(_)) => Written {
            media: JSON,
            bytes: shown_text(shown, custom),
        },
        _ => object_as(wire, &shown.object(), custom),
    }
}

/// Writes a list.
pub(crate) fn list_as(wire: Wire, target: &Target, metadata: &Value, items: &[Shown]) -> Written {
    let make = || {
        let (api_version, kind) = (target.api_version(), &target.kind);
        let names = (&*api_version, &*kind.list_kind, &*kind.kind);
        protobuf::encoded_list(names, metadata, items.iter().map(Shown::object))
    };
    Written::of(wire, make, || list(target, metadata, items))
}

/// Writes a list of objects' metadata.
pub(crate) fn partial_list(wire: Wire, metadata: &Value, items: &[Shown]) -> Written {
    const API_VERSION: &str = "meta.k8s.io/v1";
    const KIND: &str = "PartialObjectMetadataList";
    // Of an object, only the metadata is a field of this message.
    let make = || {
        let names = (API_VERSION, KIND, "PartialObjectMetadata");
        protobuf::encoded_list(names, metadata, items.iter().map(Shown::head))
    };
    Written::of(wire, make, || {
        let items: Vec<Value> = items.iter().map(|o| partial(&o.head())).collect();
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
    let frame = in_protobuf(wire, || protobuf::event(kind, value));
    frame.unwrap_or_else(|| event(kind, value, custom))
}

/// Writes one event of a watch about an object as a request sees it.
pub(crate) fn event_shown(wire: Wire, kind: &str, shown: &Shown, custom: bool) -> Vec<u8> {
    match (wire, shown) {
        (Wire::Json, Shown::Stored(_)) => line(kind, shown_text(shown, custom)),
        _ => event_as(wire, kind, &shown.object(), custom),
    }
}

/// Serialises one object.
pub(crate) fn object(value: &Value, custom: bool) -> Vec<u8> {
    text(&Ordered {
        object: value,
        custom,
        within_list: false,
    })
}

/// Serialises one object as a request sees it.
fn shown_text(shown: &Shown, custom: bool) -> Vec<u8> {
    match shown {
        // Its keys are in order.
        Shown::Stored(stored) if custom => stored.text().as_bytes().to_vec(),
        _ => text(&OrderedShown {
            shown,
            custom,
            within_list: false,
        }),
    }
}

/// Serialises a list.
fn list(target: &Target, metadata: &Value, items: &[Shown]) -> Vec<u8> {
    text(&List {
        target,
        metadata,
        items,
    })
}

/// Serialises one line of a watch.
fn event(kind: &str, value: &Value, custom: bool) -> Vec<u8> {
    line(kind, object(value, custom))
}

/// Returns one line of a watch. `type` comes before `object`, which readers rely on.
fn line(kind: &str, object: Vec<u8>) -> Vec<u8> {
    let mut line = format!("{{\"type\":\"{kind}\",\"object\":").into_bytes();
    line.extend(object);
    line.extend(b"}\n");
    line
}

fn text(value: &impl Serialize) -> Vec<u8> {
    // A Value can always be serialised: its keys are strings and its numbers finite. The text of a
    // stored object is JSON.
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
    use crate::object::Stored;

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

    #[test]
    fn a_stored_text_is_written_as_its_value() {
        let values = [
            json!({ "aggregationRule": { "b": 1, "a": [] }, "apiVersion": "v1", "kind": "X",
                "metadata": { "name": "\u{e9}\"" }, "zone": null }),
            json!({ "apiVersion": "v1", "data": {}, "kind": "ConfigMap", "metadata": {} }),
        ];
        for value in values {
            let stored = Shown::Stored(Stored::of(&value));
            let made = Shown::Made(value.into());
            for custom in [false, true] {
                let both = [&stored, &made].map(|shown| shown_text(shown, custom));
                assert_eq!(both[0], both[1]);
                let both = [&stored, &made].map(|shown| {
                    text(&OrderedShown {
                        shown,
                        custom,
                        within_list: true,
                    })
                });
                assert_eq!(both[0], both[1]);
            }
        }
    }
}
