//! Validates metadata.
//!
//! Owns the rules of names, labels, annotations, finalizers and owner references. Must not know
//! kinds or storage.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{get, is_deleting, of, text};
use crate::status::{ApiError, Cause, FORBIDDEN, INVALID, REQUIRED, cause};

/// Makes `metadata` well-formed: drops and returns unknown fields, refuses fields of a wrong type.
pub(crate) fn decode(object: &mut Value) -> Result<Vec<String>, ApiError> {
    let wrong = |field: &str, want: &str, got: &Value| {
        let got = match got {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        ApiError::bad_request(format!(
            "json: cannot unmarshal {got} into Go struct field ObjectMeta.metadata.{field} of type {want}"
        ))
    };
    if let Some(metadata) = object
        .get("metadata")
        .filter(|m| !m.is_null() && !m.is_object())
    {
        return Err(wrong("", "v1.ObjectMeta", metadata));
    }
    let metadata = of(object);
    metadata.retain(|_, value| !value.is_null());
    let mut unknown = Vec::new();
    for (field, value) in metadata.iter() {
        match field.as_str() {
            "name" | "generateName" | "namespace" | "selfLink" | "uid" | "resourceVersion"
            | "creationTimestamp" | "deletionTimestamp" => {
                if !value.is_string() {
                    return Err(wrong(field, "string", value));
                }
            }
            "generation" | "deletionGracePeriodSeconds" => {
                if !value.is_i64() && !value.is_u64() {
                    return Err(wrong(field, "int64", value));
                }
            }
            "labels" | "annotations" => {
                let map = value
                    .as_object()
                    .ok_or_else(|| wrong(field, "map[string]string", value))?;
                if let Some(bad) = map.values().find(|v| !v.is_string() && !v.is_null()) {
                    return Err(wrong(field, "string", bad));
                }
            }
            "finalizers" => {
                let items = value
                    .as_array()
                    .ok_or_else(|| wrong(field, "[]string", value))?;
                if let Some(bad) = items.iter().find(|v| !v.is_string()) {
                    return Err(wrong(field, "string", bad));
                }
            }
            "ownerReferences" | "managedFields" => {
                let items = value
                    .as_array()
                    .ok_or_else(|| wrong(field, "[]object", value))?;
                if let Some(bad) = items.iter().find(|v| !v.is_object()) {
                    return Err(wrong(field, "object", bad));
                }
            }
            _ => unknown.push(format!("metadata.{field}")),
        }
    }
    metadata.retain(|field, _| {
        !unknown
            .iter()
            .any(|u| u.strip_prefix("metadata.") == Some(field))
    });
    for field in ["labels", "annotations"] {
        if let Some(map) = metadata.get_mut(field).and_then(Value::as_object_mut) {
            map.retain(|_, value| !value.is_null());
        }
    }
    let empty = |v: &Value| {
        v.as_array().is_some_and(Vec::is_empty) || v.as_object().is_some_and(Map::is_empty)
    };
    // An empty managedFields has a meaning: it ends ownership.
    metadata.retain(|field, value| {
        field == "managedFields" || !(empty(value) || value.as_str() == Some(""))
    });
    metadata.remove("selfLink");
    Ok(unknown)
}

/// Returns whether an object is a role or a binding. Their names may be any segment of a path, such
/// as `system:node`.
fn of_roles(object: &Value) -> bool {
    let version = object.get("apiVersion").and_then(Value::as_str);
    version.is_some_and(|version| version.starts_with("rbac.authorization.k8s.io/"))
}

fn is_segment(name: &str) -> bool {
    !matches!(name, "." | "..") && !name.contains(['/', '%'])
}

/// What the name of an object must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Names {
    #[default]
    Subdomain,
    /// A DNS label.
    Label,
    /// Any text: a real server does not check the metadata of the kind.
    Any,
}

/// Checks the rules for a create and for an update.
pub(crate) fn validate(object: &Value, names: Names) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = text(object, "name");
    let is_allowed = match names {
        Names::Label => is_label(name),
        Names::Subdomain => is_subdomain(name) || (of_roles(object) && is_segment(name)),
        Names::Any => is_segment(name),
    };
    if name.is_empty() {
        causes.push(cause(
            REQUIRED,
            "metadata.name",
            "Required value: name or generateName is required",
        ));
    } else if !is_allowed {
        let rule = match names {
            Names::Label => LABEL_RULE,
            Names::Subdomain if name.len() > 253 => "must be no more than 253 characters",
            Names::Subdomain | Names::Any => SUBDOMAIN_RULE,
        };
        causes.push(cause(
            INVALID,
            "metadata.name",
            format!("Invalid value: {name:?}: {rule}"),
        ));
    }
    for (key, value) in get(object, "labels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        if causes.len() > TOLD {
            break;
        }
        if !is_qualified(key) {
            causes.push(cause(
                INVALID,
                "metadata.labels",
                format!("Invalid value: {key:?}: {QUALIFIED_RULE}"),
            ));
        }
        let value = value.as_str().unwrap_or_default();
        if !value.is_empty() && !is_name_part(value) {
            causes.push(cause(
                INVALID,
                "metadata.labels",
                format!("Invalid value: {value:?}: {VALUE_RULE}"),
            ));
        }
    }
    for (key, _) in get(object, "annotations")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        if causes.len() > TOLD {
            break;
        }
        if !is_qualified(&key.to_lowercase()) {
            causes.push(cause(
                INVALID,
                "metadata.annotations",
                format!("Invalid value: {key:?}: {QUALIFIED_RULE}"),
            ));
        }
    }
    if annotated_bytes(object) > ANNOTATED {
        let why = format!("Too long: may not be more than {ANNOTATED} bytes");
        causes.push(cause("FieldValueTooLong", "metadata.annotations", why));
    }
    for finalizer in get(object, "finalizers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        if causes.len() > TOLD {
            break;
        }
        let text = finalizer.as_str().unwrap_or_default();
        if !is_qualified(text) {
            let message = format!("Invalid value: {text:?}: {QUALIFIED_RULE}");
            causes.push(cause(INVALID, "metadata.finalizers", message));
        }
    }
    causes.extend(owners(object));
    causes
}

/// Returns how many bytes the annotations of an object have.
fn annotated_bytes(object: &Value) -> usize {
    let annotations = get(object, "annotations").and_then(Value::as_object);
    let sizes = annotations.into_iter().flatten().map(|(key, value)| {
        let value = value.as_str().unwrap_or_default();
        key.len().saturating_add(value.len())
    });
    sizes.sum()
}

/// Returns what is wrong with the owners of an object.
fn owners(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let list = get(object, "ownerReferences").and_then(Value::as_array);
    let mut first: Option<String> = None;
    let mut is_told = false;
    for owner in list.into_iter().flatten() {
        if causes.len() > TOLD {
            break;
        }
        let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
        for (field, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if text(field).is_empty() {
                let path = format!("metadata.ownerReferences.{field}");
                let why = format!("Invalid value: \"\": {why}");
                causes.push(cause(INVALID, path, why));
            }
        }
        if owner.get("controller") != Some(&Value::Bool(true)) || is_told {
            continue;
        }
        let name = format!("{}/{}", text("kind"), text("name"));
        match &first {
            None => first = Some(name),
            Some(first) => {
                let shown = get(object, "ownerReferences").unwrap_or(&Value::Null);
                let why = format!(
                    "Invalid value: {shown}: Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                );
                causes.push(cause(INVALID, "metadata.ownerReferences", why));
                // A third one would show the whole list again.
                is_told = true;
            }
        }
    }
    causes
}

/// Checks the rules between an object and its new content.
pub(crate) fn validate_update(live: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        if get(new, field) != get(live, field) {
            let value = get(new, field).map_or("null".to_owned(), Value::to_string);
            let message = format!("Invalid value: {value}: field is immutable");
            causes.push(cause(INVALID, format!("metadata.{field}"), message));
        }
    }
    if is_deleting(live) {
        let list = |object| {
            get(object, "finalizers")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default()
        };
        let before = list(live);
        let added: Vec<String> = list(new)
            .iter()
            .filter(|f| !before.contains(f))
            .map(|f| f.to_string())
            .collect();
        if !added.is_empty() {
            let message = format!(
                "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", "),
            );
            causes.push(cause(FORBIDDEN, "metadata.finalizers", message));
        }
    }
    causes
}

/// How many faults of an object's metadata are told: a body has room for a million, each of which
/// would be told in some hundred bytes.
const TOLD: usize = 1000;
/// The most bytes of all annotations of an object.
const ANNOTATED: usize = 256 << 10;
pub(crate) const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
pub(crate) const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const QUALIFIED_RULE: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Returns whether the text is a DNS label.
pub(crate) fn is_label(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let inside = text
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    text.len() <= 63 && inside && edge(text.chars().next()) && edge(text.chars().last())
}

/// Returns whether the text is a DNS subdomain.
pub(crate) fn is_subdomain(text: &str) -> bool {
    let part = |p: &str| {
        !p.is_empty() && is_label(p.get(..p.len().min(1)).unwrap_or_default()) && {
            let inside = p
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            inside && !p.ends_with('-')
        }
    };
    text.len() <= 253 && text.split('.').all(part)
}

fn is_name_part(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let inside = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    text.len() <= 63 && inside && edge(text.chars().next()) && edge(text.chars().last())
}

fn is_qualified(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_name_part(name),
        None => is_name_part(text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_follow_the_rules_of_dns() {
        for good in [
            "a",
            "a-b.c",
            "1",
            "public-wx",
            "virtualmachines.cloud.waibizi.com",
        ] {
            assert!(is_subdomain(good), "{good}");
        }
        for bad in ["", "A", "a_b", "-a", "a-", "a..b", ".a", "a b", "ü"] {
            assert!(!is_subdomain(bad), "{bad}");
        }
        assert!(is_qualified("cloud.waibizi.com/done") && is_qualified("foregroundDeletion"));
        assert!(!is_qualified("a/b/c") && !is_qualified("/x"));
    }

    #[test]
    fn what_is_told_stays_small() {
        let owner =
            json!({ "apiVersion": "v1", "kind": "A", "name": "a", "uid": "u", "controller": true });
        for (metadata, most) in [
            (json!({ "ownerReferences": vec![owner; 5000] }), 1),
            (
                json!({ "ownerReferences": vec![json!({}); 5000] }),
                TOLD + 4,
            ),
            (json!({ "finalizers": vec!["/"; 5000] }), TOLD + 1),
        ] {
            let causes = validate(&json!({ "metadata": metadata }), Names::Any);
            // One more says that the name is missing.
            assert!(causes.len() > 1 && causes.len() <= most + 1);
        }
    }

    #[test]
    fn unknown_metadata_is_dropped_and_named() {
        let mut object =
            json!({ "metadata": { "name": "x", "labels": {}, "color": 1, "uid": null } });
        assert_eq!(decode(&mut object).unwrap(), ["metadata.color"]);
        assert_eq!(object, json!({ "metadata": { "name": "x" } }));
        assert_eq!(
            decode(&mut json!({ "metadata": { "labels": { "a": 1 } } }))
                .unwrap_err()
                .code,
            400
        );
    }
}
