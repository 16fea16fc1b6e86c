//! Converts VirtualMachines between v1 and v2, in both directions and without loss.
//!
//! | v1 | v2 |
//! |---|---|
//! | `spec.memory: 4096` (MiB) | `spec.resources.memory: 4Gi`, any quantity |
//! | `spec.disk: 500` (GiB) | `spec.resources.disk: 500Gi` |
//! | `spec.status` | `spec.phase` |
//! | | `spec.tags` |
//!
//! What v1 has no place for is kept in an annotation: quantities that are not whole, tags, other
//! resources. A conversion never fails, because one that does is an outage of the whole kind.

use serde_json::{Map, Value, json};
use vmhost_plugin::{Batch, Conversion, Description, Policy, Result};

mod quantity;
#[cfg(test)]
mod tests;

use quantity::Unit;

/// What only v2 has, as JSON.
const KEPT: &str = "cloud.waibizi.com/v2-only";

/// The sizes: the member of v1 and of v2's resources, and v1's unit.
const SIZES: [(&str, Unit); 2] = [("memory", Unit::Mi), ("disk", Unit::Gi)];

/// The policy.
pub struct VmV2;

impl Policy for VmV2 {
    fn describe() -> Description {
        let versions = ["v1", "v2"];
        let (group, kind, resource) = ("cloud.waibizi.com", "VirtualMachine", "virtualmachines");
        let conversion = Conversion::new("virtualmachines", group, kind, resource, &versions);
        Description::new("vm-v2")
            .version(env!("CARGO_PKG_VERSION"))
            .conversion(conversion)
    }

    fn convert(batch: Batch) -> Result<Vec<Value>> {
        let is_newer = batch.version() == "v2";
        batch.each(|object, _| {
            match is_newer {
                true => to_v2(object),
                false => to_v1(object),
            }
            Ok(())
        })
    }
}

vmhost_plugin::export!(VmV2);

fn to_v2(object: &mut Value) {
    let mut kept = take_kept(object);
    let Some(spec) = members(object, "spec") else {
        return;
    };
    let whole = kept.remove("resources");
    let mut resources = match &whole {
        Some(Value::Object(rest)) => rest.clone(),
        _ => Map::new(),
    };
    for (name, unit) in SIZES {
        let size = spec.remove(name);
        let text = kept.remove(name).and_then(|kept| as_it_was(kept, &size));
        let value = text.or_else(|| match size {
            Some(Value::Number(number)) if number.is_i64() => Some(json!(unit.text(&number))),
            size => size,
        });
        resources.extend(value.map(|value| (name.to_owned(), value)));
    }
    match whole {
        // Empty, or no map.
        Some(whole) if resources.is_empty() => drop(spec.insert("resources".into(), whole)),
        None if resources.is_empty() => {}
        _ => drop(spec.insert("resources".into(), resources.into())),
    }
    rename(spec, "status", "phase");
    for (name, value) in kept {
        spec.entry(name).or_insert(value);
    }
}

/// Returns the quantity that was written in v2, if v1 still has what was made of it.
fn as_it_was(kept: Value, size: &Option<Value>) -> Option<Value> {
    let now = size.clone().unwrap_or_default();
    (kept["as"] == now).then(|| kept["text"].clone())
}

fn to_v1(object: &mut Value) {
    let Some(spec) = members(object, "spec") else {
        return;
    };
    let mut kept = Map::new();
    if let Some(resources) = spec.remove("resources") {
        match resources {
            Value::Object(resources) => sizes(resources, spec, &mut kept),
            // No map: v1 has no place for it.
            other => {
                kept.insert("resources".into(), other);
            }
        }
    }
    if let Some(tags) = spec.remove("tags") {
        kept.insert("tags".into(), tags);
    }
    rename(spec, "phase", "status");
    if !kept.is_empty() {
        keep(object, kept);
    }
}

/// Moves v2's sizes to v1's, and keeps what v1 cannot say.
fn sizes(
    mut resources: Map<String, Value>,
    spec: &mut Map<String, Value>,
    kept: &mut Map<String, Value>,
) {
    let was_empty = resources.is_empty();
    for (name, unit) in SIZES {
        let Some(value) = resources.remove(name) else {
            continue;
        };
        let Value::String(text) = value else {
            // A number would come back as a quantity.
            if value.is_i64() {
                kept.insert(name.into(), json!({ "text": value, "as": value }));
            }
            spec.insert(name.into(), value);
            continue;
        };
        let number = unit.number(&text);
        let size = number.map_or(Value::Null, Value::from);
        if number.is_none_or(|number| unit.text(&number.into()) != text) {
            kept.insert(name.into(), json!({ "text": text, "as": size }));
        }
        if number.is_some() {
            spec.insert(name.into(), size);
        }
    }
    if was_empty || !resources.is_empty() {
        kept.insert("resources".into(), resources.into());
    }
}

/// Takes what only v2 has out of the annotations. An annotation that is no JSON stays.
fn take_kept(object: &mut Value) -> Map<String, Value> {
    let Some(metadata) = members(object, "metadata") else {
        return Map::new();
    };
    let annotations = metadata
        .get_mut("annotations")
        .and_then(Value::as_object_mut);
    let Some(annotations) = annotations else {
        return Map::new();
    };
    let text = annotations.get(KEPT).and_then(Value::as_str);
    let Some(Ok(kept)) = text.map(serde_json::from_str) else {
        return Map::new();
    };
    annotations.remove(KEPT);
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    kept
}

fn keep(object: &mut Value, kept: Map<String, Value>) {
    let text = Value::Object(kept).to_string();
    let Value::Object(members) = object else {
        return;
    };
    let metadata = members.entry("metadata").or_insert_with(|| json!({}));
    if let Value::Object(metadata) = metadata {
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        if let Value::Object(annotations) = annotations {
            annotations.insert(KEPT.into(), text.into());
        }
    }
}

/// Moves a member, unless there is one of the new name.
fn rename(spec: &mut Map<String, Value>, from: &str, to: &str) {
    if spec.contains_key(to) {
        return;
    }
    if let Some(value) = spec.remove(from) {
        spec.insert(to.into(), value);
    }
}

fn members<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Map<String, Value>> {
    object.get_mut(name).and_then(Value::as_object_mut)
}
