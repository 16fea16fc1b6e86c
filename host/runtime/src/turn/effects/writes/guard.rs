//! Guards of a request: they keep a write from acting on another object or version than the plugin
//! saw. Where possible, they are put into the text of a body, and nothing else of it changes.
//!
//! This module must not know how a request is sent, or what a refusal means.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use vmhost_cluster::{DeleteOptions, Error};
use vmhost_core::{Apply, Delete, Patch, PatchType};

use super::refused::invalid;
use crate::canary::Canary;
use crate::config::terms::Account;
use crate::site::member::Member;

/// Guards that keep a write from acting on another object or version than the plugin saw.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Guard<'a> {
    /// The uid, if the effect writes the turn's own object.
    pub(crate) uid: Option<&'a str>,
    /// The version that an earlier write of the same turn returned for this object. The effect's
    /// `if-version` then means this version.
    pub(crate) written: Option<u64>,
    /// The canary, if this is the first write of a turn of its candidate: an abort before it
    /// prevents the write.
    pub(crate) candidate: Option<&'a Canary>,
    /// The service account that the write is sent as. `None` for the host itself.
    pub(crate) account: Option<&'a Account>,
    /// The turn's own cluster, if the write goes to another one: a turn whose cluster was left
    /// writes nowhere.
    pub(crate) turn_member: Option<&'a Member>,
}

/// The version that the write must find: the one that an earlier write of the turn returned, else
/// the effect's `if-version`.
fn required<'a>(
    if_version: &'a Option<String>,
    written: Option<u64>,
) -> Option<std::borrow::Cow<'a, str>> {
    let asked = if_version.as_deref()?;
    Some(written.map_or(asked.into(), |version| version.to_string().into()))
}

pub(super) fn apply_body(
    apply: &Apply,
    uid: Option<&str>,
    written: Option<u64>,
) -> Result<String, Error> {
    let version = required(&apply.if_version, written);
    if uid.is_none() && version.is_none() {
        return Ok(apply.object.clone());
    }
    let mut object: Value = parse(&apply.object)?;
    guard_metadata(&mut object, uid, version.as_deref())?;
    Ok(object.to_string())
}

pub(super) fn patch_body(patch: &Patch, guard: Guard<'_>) -> Result<String, Error> {
    let version = required(&patch.if_version, guard.written);
    if guard.uid.is_none() && version.is_none() {
        return Ok(patch.body.clone());
    }
    match patch.kind {
        PatchType::Json => guard_operations(&patch.body, guard.uid, version.as_deref()),
        PatchType::Merge => match splice_metadata(&patch.body, guard.uid, version.as_deref()) {
            Some(body) => Ok(body),
            None => {
                let mut body: Value = parse(&patch.body)?;
                guard_metadata(&mut body, guard.uid, version.as_deref())?;
                Ok(body.to_string())
            }
        },
    }
}

/// Inserts a `test` for each guard before the operations of a JSON patch, whose text stays
/// unchanged.
fn guard_operations(body: &str, uid: Option<&str>, version: Option<&str>) -> Result<String, Error> {
    parse::<IgnoredAny>(body)?;
    let Some(operations) = body.trim_start().strip_prefix('[') else {
        return Err(invalid("a JSON patch must be a list of operations".into()));
    };
    let mut guarded = String::with_capacity(body.len() + 192);
    for (path, value) in [
        ("/metadata/uid", uid),
        ("/metadata/resourceVersion", version),
    ] {
        if let Some(value) = value {
            guarded.push_str(if guarded.is_empty() { "[" } else { "," });
            guarded.push_str(r#"{"op":"test","path":""#);
            guarded.push_str(path);
            guarded.push_str(r#"","value":"#);
            push_quoted(&mut guarded, value);
            guarded.push('}');
        }
    }
    if !operations.trim_start().starts_with(']') {
        guarded.push(',');
    }
    guarded.push_str(operations);
    Ok(guarded)
}

/// Inserts the guards before the other members of a merge patch, whose text stays unchanged.
/// Returns `None` if the patch is not an object, or has metadata of its own.
fn splice_metadata(body: &str, uid: Option<&str>, version: Option<&str>) -> Option<String> {
    /// Whether a field is present, with any value.
    #[derive(Default)]
    struct Present(bool);
    impl<'de> Deserialize<'de> for Present {
        fn deserialize<D: serde::Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
            IgnoredAny::deserialize(value).map(|_| Self(true))
        }
    }
    #[derive(Deserialize)]
    struct Top {
        #[serde(default)]
        metadata: Present,
    }
    let members = body.trim_start().strip_prefix('{')?;
    if serde_json::from_str::<Top>(body).ok()?.metadata.0 {
        return None;
    }
    let mut guarded = String::with_capacity(body.len() + 96);
    guarded.push_str(r#"{"metadata":"#);
    let mut next = '{';
    for (name, value) in [("\"uid\":", uid), ("\"resourceVersion\":", version)] {
        if let Some(value) = value {
            guarded.push(next);
            guarded.push_str(name);
            push_quoted(&mut guarded, value);
            next = ',';
        }
    }
    guarded.push('}');
    if !members.trim_start().starts_with('}') {
        guarded.push(',');
    }
    guarded.push_str(members);
    Some(guarded)
}

/// Appends a JSON string.
fn push_quoted(text: &mut String, value: &str) {
    if value
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    {
        text.push('"');
        text.push_str(value);
        text.push('"');
    } else {
        text.push_str(&Value::from(value).to_string());
    }
}

/// Puts uid and version into the metadata. The API server refuses a write whose uid or version
/// differs from the object's (409).
fn guard_metadata(
    object: &mut Value,
    uid: Option<&str>,
    version: Option<&str>,
) -> Result<(), Error> {
    let root = object
        .as_object_mut()
        .ok_or_else(|| invalid("the body is not a JSON object".into()))?;
    let metadata = root.entry("metadata").or_insert_with(|| json!({}));
    let metadata = metadata
        .as_object_mut()
        .ok_or_else(|| invalid("metadata is not a JSON object".into()))?;
    for (name, value) in [("uid", uid), ("resourceVersion", version)] {
        if let Some(value) = value {
            metadata.insert(name.into(), value.into());
        }
    }
    Ok(())
}

pub(super) fn delete_options(delete: &Delete, guard: Guard<'_>) -> DeleteOptions {
    DeleteOptions {
        uid: delete.uid.clone().or_else(|| guard.uid.map(Into::into)),
        version: required(&delete.if_version, guard.written).map(Into::into),
        propagation: delete.propagation,
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    serde_json::from_str(text)
        .map_err(|error| invalid(format!("the body is not valid JSON: {error}")))
}

#[cfg(test)]
mod tests;
