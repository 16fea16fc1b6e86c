//! Bodies in Kubernetes' protobuf, which typed Go clients and newer kubectls send for built-in
//! kinds.
//!
//! Owns their envelope, and the conversion to JSON by a table of fields (`protobuf.json`). Answers
//! are always JSON. A field that the table lacks is refused: no part of a body is ever dropped
//! silently.
//!
//! The table is generated from the tags of k8s.io/api's types. A field reads `name kind`. The kind
//! is `string` if it is absent; `[]` makes a list, `map:` a map with texts as keys; `?` marks a
//! field that Go sends even if it is not set (a zero is dropped); `!` marks a text that may be
//! empty; and `inline` marks a message whose fields belong to the outer object in JSON.

use std::collections::HashMap;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::status::ApiError;

/// The media type of these bodies.
pub(crate) const MEDIA: &str = "application/vnd.kubernetes.protobuf";
const MAGIC: &[u8] = b"k8s\0";
/// The maximum nesting of messages: more than any kind has, and too little to exhaust the stack.
const DEPTH: usize = 16;

type Messages = HashMap<String, HashMap<u64, String>>;

static MESSAGES: LazyLock<Messages> = LazyLock::new(|| {
    // The table is embedded and a test parses it, so the result is never empty.
    serde_json::from_str(include_str!("protobuf.json")).unwrap_or_default()
});

/// Returns whether the table has the kind.
pub(crate) fn knows(api_version: &str, kind: &str) -> bool {
    MESSAGES.contains_key(&format!("{api_version} {kind}"))
}

/// Decodes an object from a body.
pub(crate) fn object(body: &[u8]) -> Result<Value, ApiError> {
    let (api_version, kind, raw) = envelope(body)?;
    let mut object = message(&format!("{api_version} {kind}"), raw, 0)?;
    object.insert("apiVersion".to_owned(), json!(api_version));
    object.insert("kind".to_owned(), json!(kind));
    Ok(Value::Object(object))
}

/// Decodes the options of a DELETE, whatever their group.
pub(crate) fn delete_options(body: &[u8]) -> Result<Value, ApiError> {
    let (_, _, raw) = envelope(body)?;
    Ok(Value::Object(message("DeleteOptions", raw, 0)?))
}

fn bad(why: impl std::fmt::Display) -> ApiError {
    ApiError::bad_request(format!(
        "the object provided is unrecognized: protobuf: {why}"
    ))
}

/// Decodes `runtime.Unknown`: apiVersion and kind of the body, and its bytes.
fn envelope(body: &[u8]) -> Result<(String, String, &[u8]), ApiError> {
    let unknown = body
        .strip_prefix(MAGIC)
        .ok_or_else(|| bad("the prefix is missing"))?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for field in fields(unknown)? {
        match field {
            (1, Wire::Bytes(meta)) => {
                for field in fields(meta)? {
                    match field {
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

enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Returns the fields of a message. No Kubernetes type uses the fixed-width forms.
fn fields(mut bytes: &[u8]) -> Result<Vec<(u64, Wire<'_>)>, ApiError> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let value = match tag & 7 {
            0 => Wire::Number(varint(&mut bytes)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).map_err(bad)?;
                let (value, rest) = bytes
                    .split_at_checked(length)
                    .ok_or_else(|| bad("unexpected end"))?;
                bytes = rest;
                Wire::Bytes(value)
            }
            other => return Err(bad(format!("unexpected wire type {other}"))),
        };
        found.push((tag >> 3, value));
    }
    Ok(found)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, ApiError> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().ok_or_else(|| bad("unexpected end"))?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(bad("a number is too long"))
}

fn utf8(bytes: &[u8]) -> Result<&str, ApiError> {
    std::str::from_utf8(bytes).map_err(bad)
}

/// Decodes a message as a JSON object. Drops the empty strings and times that Go clients send for
/// fields that are not set.
fn message(name: &str, bytes: &[u8], depth: usize) -> Result<Map<String, Value>, ApiError> {
    let table = MESSAGES
        .get(name)
        .ok_or_else(|| bad(format!("no kind is registered for {name:?}")))?;
    if depth > DEPTH {
        return Err(bad("too deep"));
    }
    let mut object = Map::new();
    for (number, wire) in fields(bytes)? {
        let field = table
            .get(&number)
            .ok_or_else(|| bad(format!("{name} has an unknown field {number}")))?;
        if let (Some(kind), Wire::Bytes(bytes)) = (field.strip_prefix("inline "), &wire) {
            object.extend(message(kind, bytes, depth + 1)?);
            continue;
        }
        let (field, kind) = field.split_once(' ').unwrap_or((field, "string"));
        if let Some(item) = kind.strip_prefix("[]") {
            let list = object.entry(field).or_insert_with(|| json!([]));
            if let (Some(value), Some(list)) = (value(item, &wire, depth)?, list.as_array_mut()) {
                list.push(value);
            }
        } else if let Some(item) = item_of(kind) {
            let (key, value) = entry(item, &wire, depth)?;
            object.entry(field).or_insert_with(|| json!({}))[key] = value;
        } else if let Some(value) = set_value(kind, &wire, depth)? {
            object.insert(field.to_owned(), value);
        }
    }
    Ok(object)
}

/// Returns the kind of a map's values; `None` if the kind is no map.
fn item_of(kind: &str) -> Option<&str> {
    match kind {
        "map" => Some("string"),
        "bytesmap" => Some("bytes"),
        "quantitymap" => Some("quantity"),
        other => other.strip_prefix("map:"),
    }
}

/// Decodes the value of a field; `None` for a zero that Go sends for a field that is not set.
fn set_value(kind: &str, wire: &Wire<'_>, depth: usize) -> Result<Option<Value>, ApiError> {
    if let Some(kind) = kind.strip_suffix('!') {
        return value(kind, wire, depth);
    }
    let (kind, may_be_unset) = kind
        .strip_suffix('?')
        .map_or((kind, false), |kind| (kind, true));
    let unset = |value: &Value| match value {
        Value::String(text) => text.is_empty(),
        Value::Bool(false) => may_be_unset,
        Value::Number(number) => may_be_unset && number.as_i64() == Some(0),
        Value::Object(map) => may_be_unset && map.is_empty(),
        _ => false,
    };
    Ok(value(kind, wire, depth)?.filter(|value| !unset(value)))
}

fn entry(item: &str, wire: &Wire<'_>, depth: usize) -> Result<(String, Value), ApiError> {
    let Wire::Bytes(bytes) = wire else {
        return Err(bad("a map is no message"));
    };
    let (mut key, mut found) = (String::new(), json!(""));
    for field in fields(bytes)? {
        match field {
            (1, Wire::Bytes(text)) => key = utf8(text)?.to_owned(),
            (2, wire) => found = value(item, &wire, depth)?.unwrap_or_default(),
            _ => return Err(bad("a map entry has an unknown field")),
        }
    }
    Ok((key, found))
}

fn value(kind: &str, wire: &Wire<'_>, depth: usize) -> Result<Option<Value>, ApiError> {
    Ok(match (kind, wire) {
        ("string", Wire::Bytes(text)) => Some(json!(utf8(text)?)),
        ("bytes", Wire::Bytes(bytes)) => Some(json!(STANDARD.encode(bytes))),
        ("bool", Wire::Number(n)) => Some(json!(*n != 0)),
        ("int", Wire::Number(n)) => Some(json!(n.cast_signed())),
        ("time" | "microtime", Wire::Bytes(bytes)) => {
            time(bytes, kind == "microtime")?.map(Value::String)
        }
        ("quantity", Wire::Bytes(bytes)) => match fields(bytes)?.first() {
            Some((1, Wire::Bytes(text))) => Some(json!(utf8(text)?)),
            _ => None,
        },
        ("intorstring", Wire::Bytes(bytes)) => Some(int_or_string(bytes)?),
        ("json", Wire::Bytes(bytes)) => match fields(bytes)?.first() {
            Some((1, Wire::Bytes(raw))) => Some(serde_json::from_slice(raw).map_err(bad)?),
            _ => None,
        },
        ("strings", Wire::Bytes(bytes)) => Some(Value::Array(strings(bytes)?)),
        (name, Wire::Bytes(bytes)) => Some(Value::Object(message(name, bytes, depth + 1)?)),
        (name, Wire::Number(_)) => return Err(bad(format!("a number is no {name}"))),
    })
}

/// Decodes a message that is a list of texts in JSON, such as `ExtraValue`.
fn strings(bytes: &[u8]) -> Result<Vec<Value>, ApiError> {
    let items = fields(bytes)?.into_iter().map(|field| match field {
        (1, Wire::Bytes(text)) => Ok(json!(utf8(text)?)),
        _ => Err(bad("a list of texts has an unknown field")),
    });
    items.collect()
}

/// Decodes `intstr.IntOrString`: the type, the number, the text.
fn int_or_string(bytes: &[u8]) -> Result<Value, ApiError> {
    let (mut is_text, mut number, mut text) = (false, 0, "");
    for field in fields(bytes)? {
        match field {
            (1, Wire::Number(n)) => is_text = n == 1,
            (2, Wire::Number(n)) => number = n.cast_signed(),
            (3, Wire::Bytes(bytes)) => text = utf8(bytes)?,
            _ => return Err(bad("an int-or-string has an unknown field")),
        }
    }
    Ok(if is_text { json!(text) } else { json!(number) })
}

/// Formats seconds and nanoseconds since 1970; `None` for an empty message.
fn time(bytes: &[u8], micro: bool) -> Result<Option<String>, ApiError> {
    let (mut seconds, mut nanos, mut set) = (0, 0, false);
    for (number, wire) in fields(bytes)? {
        if let Wire::Number(n) = wire {
            set = true;
            match number {
                1 => seconds = n.cast_signed(),
                2 => nanos = i32::try_from(n.cast_signed()).map_err(bad)?,
                _ => {}
            }
        }
    }
    let time = Timestamp::new(seconds, nanos).map_err(bad)?;
    let form = if micro {
        "%Y-%m-%dT%H:%M:%S.%6fZ"
    } else {
        "%Y-%m-%dT%H:%M:%SZ"
    };
    Ok(set.then(|| time.strftime(form).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![number << 3 | 2, u8::try_from(content.len()).unwrap()];
        out.extend(content);
        out
    }

    fn wrap(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
        [
            MAGIC.to_vec(),
            bytes(1, &meta),
            bytes(2, raw),
            bytes(3, b""),
            bytes(4, b""),
        ]
        .concat()
    }

    #[test]
    fn every_message_of_the_table_is_there() {
        assert!(knows("v1", "Namespace") && knows("coordination.k8s.io/v1", "Lease"));
        for kind in crate::builtin::kinds() {
            for version in &kind.versions {
                let name = crate::kinds::join_version(&kind.group, &version.name);
                let known = knows(&name, &kind.kind);
                assert!(
                    known || kind.kind == "CustomResourceDefinition",
                    "{name} {}",
                    kind.kind
                );
            }
        }
        const PLAIN: [&str; 13] = [
            "quantity",
            "quantitymap",
            "intorstring",
            "string",
            "bytes",
            "bool",
            "int",
            "time",
            "microtime",
            "json",
            "map",
            "bytesmap",
            "strings",
        ];
        for (name, fields) in MESSAGES.iter() {
            for field in fields.values() {
                let kind = field.split_once(' ').map_or("string", |(_, kind)| kind);
                let kind = field.strip_prefix("inline ").unwrap_or(kind);
                let kind = kind.trim_start_matches("[]").trim_start_matches("map:");
                let kind = kind.trim_end_matches(['?', '!']);
                assert!(
                    PLAIN.contains(&kind) || MESSAGES.contains_key(kind),
                    "{name}: {field}"
                );
            }
        }
    }

    #[test]
    fn a_config_map_is_read() {
        let label = [bytes(1, b"l"), bytes(2, b"")].concat();
        let meta = [
            bytes(1, b"x"),
            bytes(2, b""),
            bytes(8, b""),
            bytes(11, &label),
        ]
        .concat();
        let data = [bytes(1, b"a"), bytes(2, b"1")].concat();
        let raw = [bytes(1, &meta), bytes(2, &data), bytes(3, &data)].concat();
        let expected = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "x", "labels": { "l": "" } },
            "data": { "a": "1" }, "binaryData": { "a": "MQ==" },
        });
        assert_eq!(object(&wrap("v1", "ConfigMap", &raw)).unwrap(), expected);
    }

    #[test]
    fn times_and_numbers_are_read() {
        let time = [&[8][..], &[0x80, 0xa3, 0x05], &[16][..], &[0x88, 0x27]].concat();
        let spec = [bytes(3, &time), vec![16, 15]].concat();
        let lease = object(&wrap("coordination.k8s.io/v1", "Lease", &bytes(2, &spec))).unwrap();
        assert_eq!(lease["spec"]["acquireTime"], "1970-01-02T00:00:00.000005Z");
        assert_eq!(lease["spec"]["leaseDurationSeconds"], 15);
        let options =
            delete_options(&wrap("v1", "DeleteOptions", &bytes(4, b"Background"))).unwrap();
        assert_eq!(options, json!({ "propagationPolicy": "Background" }));
    }

    #[test]
    fn what_go_always_sends_is_left_out_and_what_is_set_is_kept() {
        // replicas, a pointer, is 0; minReadySeconds, a number, is 0 too; the strategy is empty.
        let port = [vec![8, 0, 16, 80], bytes(3, b"")].concat();
        let secret = [bytes(2, b"key"), bytes(1, &bytes(1, b"creds"))].concat();
        let from = bytes(4, &secret);
        let env = [bytes(1, b"A"), bytes(3, &from)].concat();
        let limits = [bytes(1, b"cpu"), bytes(2, &bytes(1, b"1"))].concat();
        let get = [bytes(1, b"/"), bytes(2, &port)].concat();
        let probe = [bytes(1, &bytes(2, &get)), vec![16, 0]].concat();
        let container = [
            bytes(1, b"c"),
            bytes(7, &env),
            bytes(8, &bytes(1, &limits)),
            bytes(10, &probe),
        ]
        .concat();
        let template = [bytes(1, b""), bytes(2, &bytes(2, &container))].concat();
        let spec = [vec![8, 0], bytes(3, &template), bytes(4, b""), vec![40, 0]].concat();
        let deployment = object(&wrap("apps/v1", "Deployment", &bytes(2, &spec))).unwrap();
        let container = json!({
            "name": "c",
            "env": [{ "name": "A", "valueFrom": { "secretKeyRef": { "name": "creds", "key": "key" } } }],
            "resources": { "limits": { "cpu": "1" } },
            "livenessProbe": { "httpGet": { "path": "/", "port": 80 } },
        });
        let expected =
            json!({ "replicas": 0, "template": { "spec": { "containers": [container] } } });
        assert_eq!(deployment["spec"], expected);
    }

    #[test]
    fn what_is_no_good_is_refused() {
        let unknown = wrap("v1", "ConfigMap", &bytes(9, b"x"));
        for body in [
            &b"{}"[..],
            b"k8s\0\x0a",
            b"k8s\0\xff\xff",
            &wrap("v1", "Nothing", b""),
            &unknown,
        ] {
            assert_eq!(object(body).unwrap_err().code, 400);
        }
    }
}
