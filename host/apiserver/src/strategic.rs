//! Strategic merge patch, for built-in kinds.
//!
//! Owns the merge: lists of objects by key and lists of values where the kind's schema says so;
//! every other list is replaced. Custom kinds do not support this patch, as in a real server. Must
//! not know requests.

mod order;

use std::collections::HashSet;
use std::collections::hash_map::Entry;

use serde_json::{Map, Value, json};

use crate::status::ApiError;
use order::{in_order, places, sort};

const DIRECTIVE: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList/";

/// Merges `patch` into `object`, whose schema is `schema`, with references to definitions.
pub(crate) fn merge(object: &mut Value, patch: &Value, schema: &Value) -> Result<(), ApiError> {
    let patch = patch
        .as_object()
        .ok_or_else(|| bad("the patch is no object"))?;
    merge_map(object, patch, schema)
}

fn bad(why: impl std::fmt::Display) -> ApiError {
    ApiError::bad_request(format!("error decoding patch: {why}"))
}

fn merge_map(
    object: &mut Value,
    patch: &Map<String, Value>,
    schema: &Value,
) -> Result<(), ApiError> {
    match patch.get(DIRECTIVE).and_then(Value::as_str) {
        None | Some("merge") => {}
        Some("replace") => {
            let rest = patch.iter().filter(|(key, _)| !key.starts_with('$'));
            *object = Value::Object(rest.map(|(k, v)| (k.clone(), v.clone())).collect());
            return Ok(());
        }
        Some("delete") => {
            *object = json!({});
            return Ok(());
        }
        Some(other) => return Err(bad(format!("unknown patch directive {other:?}"))),
    }
    if !object.is_object() {
        *object = json!({});
    }
    let Value::Object(map) = object else {
        return Ok(());
    };
    if let Some(keep) = patch.get(RETAIN).and_then(Value::as_array) {
        let keep: HashSet<&str> = keep.iter().filter_map(Value::as_str).collect();
        map.retain(|key, _| keep.contains(key.as_str()));
    }
    for (key, value) in patch {
        if let Some(list) = key.strip_prefix(DELETE) {
            let gone = value
                .as_array()
                .ok_or_else(|| bad(format!("{key} is no list")))?;
            let gone = places(gone, None);
            if let Some(items) = map.get_mut(list).and_then(Value::as_array_mut) {
                items.retain(|item| !gone.contains_key(&item.to_string()));
            }
        }
    }
    for (key, value) in patch.iter().filter(|(key, _)| !key.starts_with('$')) {
        let inner = property(schema, key);
        match value {
            Value::Null => {
                map.remove(key);
            }
            Value::Object(value) => {
                merge_map(map.entry(key.clone()).or_insert(Value::Null), value, inner)?
            }
            Value::Array(items) => {
                let list = map.entry(key.clone()).or_insert_with(|| json!([]));
                merge_list(list, items, inner)?;
            }
            other => {
                map.insert(key.clone(), other.clone());
            }
        }
    }
    for (key, order) in patch {
        let Some((list, order)) = key.strip_prefix(ORDER).zip(order.as_array()) else {
            continue;
        };
        let by = list_key(property(schema, list));
        if let Some(items) = map.get_mut(list).and_then(Value::as_array_mut) {
            sort(items, order, by);
        }
    }
    Ok(())
}

fn property<'a>(schema: &'a Value, key: &str) -> &'a Value {
    const NONE: &Value = &Value::Null;
    let referred = schema.get("$ref").and_then(Value::as_str);
    let schema = referred
        .and_then(vmhost_schema::definition)
        .unwrap_or(schema);
    let named = schema.get("properties").and_then(|p| p.get(key));
    named
        .or_else(|| schema.get("additionalProperties"))
        .unwrap_or(NONE)
}

/// Returns whether the items of a list are merged. Other lists are replaced, even if an apply
/// merges them.
fn merges(schema: &Value) -> bool {
    let strategy = schema.get("x-kubernetes-patch-strategy");
    let strategy = strategy.and_then(Value::as_str).unwrap_or_default();
    strategy.split(',').any(|word| word == "merge")
}

/// Returns the key that identifies the items of a list; `None` if the list has none. A strategic
/// merge supports only one key, which for some lists differs from the keys of an apply.
fn list_key(schema: &Value) -> Option<&str> {
    let key = schema.get("x-kubernetes-patch-merge-key");
    key.filter(|_| merges(schema))?.as_str()
}

fn merge_list(list: &mut Value, items: &[Value], schema: &Value) -> Result<(), ApiError> {
    const NONE: &Value = &Value::Null;
    let before = list.as_array().cloned().unwrap_or_default();
    if merges(schema) && list_key(schema).is_none() {
        let Value::Array(live) = list else {
            return Ok(());
        };
        let mut known = places(live, None);
        for item in items {
            if let Entry::Vacant(place) = known.entry(item.to_string()) {
                place.insert(live.len());
                live.push(item.clone());
            }
        }
        in_order(live, items, &before, None);
        return Ok(());
    }
    let directive =
        |item: &Value, name: &str| item.get(DIRECTIVE).and_then(Value::as_str) == Some(name);
    let replaced = items
        .iter()
        .any(|item| item.get(DIRECTIVE).is_some() && directive(item, "replace"));
    let (Some(key), false) = (list_key(schema), replaced) else {
        let rest = items.iter().filter(|item| item.get(DIRECTIVE).is_none());
        *list = Value::Array(rest.cloned().collect());
        return Ok(());
    };
    let Value::Array(live) = list else {
        return Ok(());
    };
    let inner = schema.get("items").unwrap_or(NONE);
    let mut known = places(live, Some(key));
    let mut gone = HashSet::new();
    for item in items {
        let Some(id) = item.get(key).map(Value::to_string) else {
            return Err(bad(format!(
                "map: {item} does not contain declared merge key: {key}"
            )));
        };
        if directive(item, "delete") {
            gone.extend(known.remove(&id));
            continue;
        }
        let patch = item
            .as_object()
            .ok_or_else(|| bad(format!("{item} is no object")))?;
        match known.get(&id).and_then(|at| live.get_mut(*at)) {
            Some(same) => merge_map(same, patch, inner)?,
            None => {
                let mut new = json!({});
                merge_map(&mut new, patch, inner)?;
                known.insert(id, live.len());
                live.push(new);
            }
        }
    }
    let mut places = 0..live.len();
    live.retain(|_| places.next().is_some_and(|at| !gone.contains(&at)));
    in_order(live, items, &before, Some(key));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(mut object: Value, patch: Value) -> Value {
        let schema = json!({ "properties": {
            "atomic": {},
            "set": { "x-kubernetes-patch-strategy": "merge" },
            "by": { "x-kubernetes-patch-strategy": "merge,retainKeys", "x-kubernetes-patch-merge-key": "name" },
        } });
        merge(&mut object, &patch, &schema).unwrap();
        object
    }

    #[test]
    fn long_lists_are_merged_in_time() {
        let names = |from: usize| -> Vec<Value> {
            let all = from..from + 100_000;
            all.map(|n| json!({ "name": n.to_string() })).collect()
        };
        let (live, patch) = (json!({ "by": names(0) }), json!({ "by": names(50_000) }));
        assert_eq!(
            merged(live, patch)["by"].as_array().map(Vec::len),
            Some(150_000)
        );
        let values = |from: u32| -> Vec<u32> { (from..from + 100_000).collect() };
        let (live, patch) = (
            json!({ "set": values(0) }),
            json!({ "set": values(50_000) }),
        );
        assert_eq!(
            merged(live, patch)["set"].as_array().map(Vec::len),
            Some(150_000)
        );
        let kept: Vec<String> = (50_000..150_000).map(|n| n.to_string()).collect();
        let live: Map<String, Value> = (0..100_000).map(|n| (n.to_string(), json!(n))).collect();
        let data = merged(
            json!({ "data": live }),
            json!({ "data": { "$retainKeys": kept } }),
        );
        assert_eq!(data["data"].as_object().map(Map::len), Some(50_000));
    }

    #[test]
    fn maps_merge_and_null_removes() {
        assert_eq!(
            merged(
                json!({ "data": { "a": "1", "b": "2" } }),
                json!({ "data": { "a": null, "c": "3" } })
            ),
            json!({ "data": { "b": "2", "c": "3" } })
        );
        assert_eq!(
            merged(
                json!({ "data": { "a": "1" } }),
                json!({ "data": { "$patch": "replace", "b": "2" } })
            ),
            json!({ "data": { "b": "2" } })
        );
        assert_eq!(
            merged(
                json!({ "data": { "a": "1", "b": "2" } }),
                json!({ "data": { "$retainKeys": ["a", "c"], "c": "3" } })
            ),
            json!({ "data": { "a": "1", "c": "3" } })
        );
    }

    #[test]
    fn lists_merge_as_the_schema_says() {
        let object = json!({ "atomic": [1], "set": [1, 2], "by": [{ "name": "a", "x": 1 }, { "name": "b" }] });
        assert_eq!(
            merged(object.clone(), json!({ "atomic": [2], "set": [2, 3] }))["set"],
            json!([1, 2, 3])
        );
        assert_eq!(
            merged(object.clone(), json!({ "atomic": [2] }))["atomic"],
            json!([2])
        );
        assert_eq!(
            merged(
                object.clone(),
                json!({ "$deleteFromPrimitiveList/set": [1] })
            )["set"],
            json!([2])
        );
        let patch = json!({ "$setElementOrder/by": [{ "name": "c" }, { "name": "a" }], "by": [
            { "name": "b", "$patch": "delete" }, { "name": "a", "y": 2 }, { "name": "c" },
        ] });
        assert_eq!(
            merged(object.clone(), patch)["by"],
            json!([{ "name": "c" }, { "name": "a", "x": 1, "y": 2 }])
        );
        let patch = json!({ "by": [{ "$patch": "replace" }, { "name": "z" }] });
        assert_eq!(merged(object, patch)["by"], json!([{ "name": "z" }]));
        let mut object = json!({ "metadata": { "finalizers": ["a/b"] } });
        merge(
            &mut object,
            &json!({ "metadata": { "finalizers": ["c/d"] } }),
            &json!({ "$ref": "io.k8s.api.core.v1.ConfigMap" }),
        )
        .unwrap();
        assert_eq!(object["metadata"]["finalizers"], json!(["c/d", "a/b"]));
    }
}
