//! Kubernetes' protobuf, which typed Go clients and newer kubectls send and prefer for built-in
//! kinds.
//!
//! Owns the envelope of objects, lists and events. What is in it is read and written by one table
//! of messages (`protobuf/messages.json`), which also tells what Go drops of JSON. Custom kinds
//! have no such form. Must not know HTTP.

mod decode;
mod encode;
mod table;
#[cfg(test)]
mod tests;
mod wire;
mod zeros;

use std::borrow::Borrow;

use serde_json::{Map, Value, json};
use vmhost_schema::Node;

use crate::status::ApiError;
use decode::utf8;
use table::Message;
use wire::{Fields, Wire, bad, put_bytes, put_message};

/// The media type of objects.
pub(crate) const MEDIA: &str = "application/vnd.kubernetes.protobuf";
/// The media type of the events of a watch.
pub(crate) const STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";
const MAGIC: &[u8] = b"k8s\0";

/// Returns whether the table has the kind.
pub(crate) fn knows(api_version: &str, kind: &str) -> bool {
    named(api_version, kind).is_some()
}

/// Returns the message of a kind. Some answers of discovery have no apiVersion.
fn named(api_version: &str, kind: &str) -> Option<&'static Message> {
    let api_version = if api_version.is_empty() {
        "v1"
    } else {
        api_version
    };
    table::named(&format!("{api_version} {kind}"))
}

/// Drops what Go drops when it decodes an object of a built-in kind: zeros of fields that are not
/// printed when they are not set. `node` is the root of the kind's schema.
pub(crate) fn drop_zeros(api_version: &str, kind: &str, node: &Node, object: &mut Value) {
    if let Some(of) = named(api_version, kind) {
        zeros::drop_from(of, node, object);
    }
}

/// Decodes an object from a body.
pub(crate) fn object(body: &[u8]) -> Result<Value, ApiError> {
    let (api_version, kind, raw) = envelope(body)?;
    let of = named(&api_version, &kind).ok_or_else(|| {
        bad(format!(
            "no kind is registered for {api_version:?} {kind:?}"
        ))
    })?;
    let mut object = decode::message(of, raw, 0)?;
    object.insert("apiVersion".to_owned(), json!(api_version));
    object.insert("kind".to_owned(), json!(kind));
    Ok(Value::Object(object))
}

/// Decodes the options of a DELETE, whatever their group.
pub(crate) fn delete_options(body: &[u8]) -> Result<Value, ApiError> {
    let (_, _, raw) = envelope(body)?;
    let of = table::named("DeleteOptions").ok_or_else(|| bad("no options are registered"))?;
    Ok(Value::Object(decode::message(of, raw, 0)?))
}

/// Decodes `runtime.Unknown`: apiVersion and kind of the body, and its bytes.
fn envelope(body: &[u8]) -> Result<(String, String, &[u8]), ApiError> {
    let unknown = body
        .strip_prefix(MAGIC)
        .ok_or_else(|| bad("the prefix is missing"))?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for field in Fields::of(unknown) {
        match field? {
            (1, Wire::Bytes(meta)) => {
                for field in Fields::of(meta) {
                    match field? {
                        (1, Wire::Bytes(text)) => api_version = utf8(text)?.to_owned(),
                        (2, Wire::Bytes(text)) => kind = utf8(text)?.to_owned(),
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    Ok((api_version, kind, raw))
}

/// Decodes an object or a list from Kubernetes' protobuf, or tells why the body is neither.
pub fn from_protobuf(body: &[u8]) -> Result<Value, String> {
    let decoded = envelope(body).and_then(|(api_version, kind, raw)| {
        let item = kind
            .strip_suffix("List")
            .filter(|_| !knows(&api_version, &kind));
        let Some(of) = item.and_then(|item| named(&api_version, item)) else {
            return object(body);
        };
        let mut list = decode_list(of, raw)?;
        list["apiVersion"] = json!(api_version);
        list["kind"] = json!(kind);
        Ok(list)
    });
    decoded.map_err(|refused| refused.message)
}

fn decode_list(of: &Message, raw: &[u8]) -> Result<Value, ApiError> {
    let of_list = table::named("ListMeta").ok_or_else(|| bad("no lists are registered"))?;
    let (mut metadata, mut items) = (Map::new(), Vec::new());
    for field in Fields::of(raw) {
        match field? {
            (1, Wire::Bytes(bytes)) => metadata = decode::message(of_list, bytes, 0)?,
            (2, Wire::Bytes(bytes)) => items.push(Value::Object(decode::message(of, bytes, 0)?)),
            _ => return Err(bad("a list has an unknown field")),
        }
    }
    Ok(json!({ "metadata": metadata, "items": items }))
}

/// Returns an object or a list in Kubernetes' protobuf; `None` if its kind has no such form.
#[must_use]
pub fn to_protobuf(object: &Value) -> Option<Vec<u8>> {
    let text = |field: &str| object.get(field).and_then(Value::as_str);
    let api_version = text("apiVersion").unwrap_or_default();
    let kind = text("kind")?;
    let Some(of) = named(api_version, kind) else {
        let names = (api_version, kind, kind.strip_suffix("List")?);
        let items = object.get("items").and_then(Value::as_array);
        let metadata = object.get("metadata").unwrap_or(&Value::Null);
        return encoded_list(names, metadata, items.into_iter().flatten());
    };
    Some(wrapped(api_version, kind, |out| {
        encode::message(of, object, out);
    }))
}

/// Encodes a list of objects of a kind; `None` if that has no such form.
pub(crate) fn encoded_list<V: Borrow<Value>>(
    (api_version, list_kind, kind): (&str, &str, &str),
    metadata: &Value,
    items: impl Iterator<Item = V>,
) -> Option<Vec<u8>> {
    let (of, of_list) = (named(api_version, kind)?, table::named("ListMeta")?);
    Some(wrapped(api_version, list_kind, |out| {
        put_message(out, 1, |out| encode::message(of_list, metadata, out));
        for item in items {
            put_message(out, 2, |out| encode::message(of, item.borrow(), out));
        }
    }))
}

/// Encodes an event of a watch: its length in four bytes, then `WatchEvent` without an envelope,
/// which holds the object in one.
pub(crate) fn event(kind: &str, object: &Value) -> Option<Vec<u8>> {
    let object = to_protobuf(object)?;
    // The place of the length.
    let mut frame = vec![0; 4];
    put_bytes(&mut frame, 1, kind.as_bytes());
    put_message(&mut frame, 2, |out| put_bytes(out, 1, &object));
    let length = u32::try_from(frame.len() - 4).ok()?;
    frame.get_mut(..4)?.copy_from_slice(&length.to_be_bytes());
    Some(frame)
}

/// Puts what `write` appends into `runtime.Unknown`.
fn wrapped(api_version: &str, kind: &str, write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    put_message(&mut out, 1, |out| {
        put_bytes(out, 1, api_version.as_bytes());
        put_bytes(out, 2, kind.as_bytes());
    });
    put_message(&mut out, 2, write);
    put_bytes(&mut out, 3, b"");
    put_bytes(&mut out, 4, b"");
    out
}
