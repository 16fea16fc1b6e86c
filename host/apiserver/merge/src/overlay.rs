//! Merges an apply configuration into an object, without any manager: what a mutating admission
//! policy does.
//!
//! Follows k8s.io/apiserver `pkg/admission/plugin/policy/mutating/patch/smd.go`. Must not know
//! where the configuration comes from.

use serde_json::Value;
use vmhost_schema::Schema;

use crate::merge;
use crate::shape::{Place, Shape};
use crate::walk;

/// Merges `applied` into `live` and returns the new object. Without a `schema` the object may hold
/// anything. Nobody owns what changes.
///
/// An error says what does not fit the schema, or which atomic list or map would be replaced: its
/// author may not know that the items that are left out would be lost.
pub fn overlay(schema: Option<&Schema>, live: &Value, applied: &Value) -> Result<Value, String> {
    let open = Schema::open();
    let place = Place::root(schema.unwrap_or(&open).root());
    walk::check(place, applied, false)
        .map_err(|why| format!("failed to convert patch object to typed object: {why}"))?;
    let mut atomic = Vec::new();
    find_atomic(place, applied, "", &mut atomic);
    if !atomic.is_empty() {
        return Err(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomic.join(", ")
        ));
    }
    walk::check(place, live, true)
        .map_err(|why| format!("failed to convert original object to typed object: {why}"))?;
    merge::merge(place, live, applied).map_err(|why| format!("failed to merge patch: {why}"))
}

/// Adds the paths of all atomic lists and maps. What a map without declared fields holds is not
/// looked into, as in a real server.
fn find_atomic(place: Place<'_>, value: &Value, path: &str, found: &mut Vec<String>) {
    match (place.shape(Some(value)), value) {
        (Shape::Map(map), Value::Object(fields)) => {
            if map.atomic {
                found.push(path.to_owned());
            }
            for (name, value) in fields {
                if let Some(place) = map.declared(name) {
                    find_atomic(place, value, &format!("{path}.{name}"), found);
                }
            }
        }
        (Shape::List(list), Value::Array(items)) => {
            if list.is_atomic() {
                found.push(path.to_owned());
            }
            for (at, item) in items.iter().enumerate() {
                find_atomic(list.item, item, &format!("{path}[{at}]"), found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        let containers = json!({
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": { "type": "string" },
                    "image": { "type": "string" },
                    "args": { "type": "array", "items": { "type": "string" } },
                },
            },
        });
        let selector = json!({
            "type": "object",
            "x-kubernetes-map-type": "atomic",
            "additionalProperties": { "type": "string" },
        });
        Schema::parse(&json!({
            "type": "object",
            "properties": { "spec": {
                "type": "object",
                "properties": {
                    "replicas": { "type": "integer" },
                    "containers": containers,
                    "selector": selector,
                },
            } },
        }))
        .unwrap()
    }

    fn over(applied: Value) -> Result<Value, String> {
        let live = json!({
            "apiVersion": "v1", "kind": "X",
            "metadata": { "name": "x", "annotations": { "a": "1" } },
            "spec": {
                "replicas": 1,
                "containers": [{ "name": "one", "image": "i", "args": ["a"] }],
                "selector": { "a": "b" },
            },
        });
        overlay(Some(&schema()), &live, &applied)
    }

    #[test]
    fn items_merge_by_their_keys_and_maps_by_name() {
        let merged = over(json!({
            "metadata": { "annotations": { "b": "2" } },
            "spec": {
                "replicas": 5,
                "containers": [{ "name": "two" }, { "name": "one", "image": "j" }],
            },
        }));
        let merged = merged.unwrap();
        assert_eq!(
            merged["metadata"]["annotations"],
            json!({ "a": "1", "b": "2" })
        );
        assert_eq!(merged["spec"]["replicas"], 5);
        assert_eq!(merged["spec"]["selector"], json!({ "a": "b" }));
        let containers = merged["spec"]["containers"].as_array().unwrap();
        assert!(containers.contains(&json!({ "name": "one", "image": "j", "args": ["a"] })));
        assert!(containers.contains(&json!({ "name": "two" })));
    }

    #[test]
    fn what_the_schema_does_not_allow_is_refused() {
        let typed = "failed to convert patch object to typed object: ";
        let atomic = "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: ";
        for (spec, error) in [
            (
                json!({ "size": 1 }),
                format!("{typed}.spec.size: field not declared in schema"),
            ),
            (
                json!({ "replicas": "1" }),
                format!("{typed}.spec.replicas: expected numeric (int or float), got string"),
            ),
            (
                json!({ "selector": { "a": "c" } }),
                format!("{atomic}.spec.selector"),
            ),
            (
                json!({ "containers": [{ "name": "one", "args": ["b"] }] }),
                format!("{atomic}.spec.containers[0].args"),
            ),
        ] {
            assert_eq!(over(json!({ "spec": spec })), Err(error));
        }
    }
}
