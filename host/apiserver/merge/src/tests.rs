//! Ownership as entries of `managedFields`: tests that the table of cases cannot express.

mod table;

use serde_json::{Value, json};
use vmhost_schema::Schema;

use super::*;
use crate::set::Set;
use table::owners;

const NOW: &str = "2026-11-21T04:00:00Z";
const LATER: &str = "2026-11-21T04:00:10Z";

const ONE: Manager<'static> = Manager {
    name: "one",
    api_version: "v1",
    subresource: "",
    reset: &[],
    empty: None,
};

fn config_map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}, "data": data})
}

fn schema_of(kind: &str) -> Schema {
    let name = format!("io.k8s.api.core.v1.{kind}");
    vmhost_schema::builtin(&name).unwrap().clone()
}

#[test]
fn time_moves_with_a_change_only() {
    let schema = schema_of("ConfigMap");
    let first = apply(
        Some(&schema),
        None,
        &config_map(json!({"a": "1"})),
        &ONE,
        false,
        NOW,
    )
    .unwrap();
    let entry = |object: &Value| object["metadata"]["managedFields"][0]["time"].clone();
    assert_eq!(entry(&first), NOW);
    let same = apply(
        Some(&schema),
        Some(&first),
        &config_map(json!({"a": "1"})),
        &ONE,
        false,
        LATER,
    )
    .unwrap();
    assert_eq!(same, first);
    let other = apply(
        Some(&schema),
        Some(&first),
        &config_map(json!({"a": "2"})),
        &ONE,
        false,
        LATER,
    )
    .unwrap();
    assert_eq!(entry(&other), LATER);
}

#[test]
fn entries_are_complete() {
    let new = apply(
        Some(&schema_of("ConfigMap")),
        None,
        &config_map(json!({"a": "1"})),
        &ONE,
        false,
        NOW,
    )
    .unwrap();
    assert_eq!(
        new["metadata"]["managedFields"],
        json!([{
            "manager": "one", "operation": "Apply", "apiVersion": "v1", "time": NOW,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}},
        }])
    );
}

#[test]
fn an_open_object_merges_by_field() {
    let first = apply(
        None,
        None,
        &config_map(json!({"a": {"b": [1]}})),
        &ONE,
        false,
        NOW,
    )
    .unwrap();
    let two = Manager { name: "two", ..ONE };
    let both = apply(
        None,
        Some(&first),
        &config_map(json!({"a": {"c": 1}})),
        &two,
        false,
        NOW,
    )
    .unwrap();
    assert_eq!(both["data"], json!({"a": {"b": [1], "c": 1}}));
}

#[test]
fn an_empty_list_ends_the_tracking_of_built_in_kinds() {
    let live = apply(
        Some(&schema_of("ConfigMap")),
        None,
        &config_map(json!({"a": "1"})),
        &ONE,
        false,
        NOW,
    )
    .unwrap();
    let live = {
        let mut live = live;
        live["metadata"]["uid"] = json!("u");
        live
    };
    let mut new = live.clone();
    new["metadata"]["managedFields"] = json!([]);
    track_update(
        Some(&schema_of("ConfigMap")),
        Some(&live),
        &mut new,
        &ONE,
        LATER,
    );
    assert_eq!(owners(&new), json!({}));
}

#[test]
fn nobody_owns_what_an_object_has_from_the_start() {
    let empty = json!({
        "spec": {"selector": null, "strategy": {}, "template": {"spec": {"containers": null}}},
        "note": "", "source": {},
    });
    let by = Manager {
        empty: Some(&empty),
        ..ONE
    };
    let schema = Schema::parse(&json!({"type": "object", "properties": {
        "note": {"type": "string"},
        "source": {"type": "object", "properties": {"host": {"type": "string"}}},
        "spec": {"type": "object", "properties": {
            "selector": {"type": "object", "x-kubernetes-map-type": "atomic",
                "additionalProperties": {"type": "string"}},
            "strategy": {"type": "object", "properties": {"type": {"type": "string"}}},
            "template": {"type": "object", "properties": {"spec": {"type": "object", "properties": {
                "containers": {"type": "array", "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"], "items": {"type": "object",
                    "required": ["name"], "properties": {"name": {"type": "string"}}}},
            }}}},
        }},
    }}))
    .unwrap();
    let body = json!({
        "apiVersion": "v1", "kind": "K", "metadata": {"name": "x"}, "note": "", "source": {},
        "spec": {
            "selector": {"a": "b"}, "strategy": {"type": "s"},
            "template": {"spec": {"containers": [{"name": "c"}]}},
        },
    });
    let set = json!({"f:spec": {
        "f:selector": {}, "f:strategy": {"f:type": {}},
        "f:template": {"f:spec": {"f:containers": {
            "k:{\"name\":\"c\"}": {".": {}, "f:name": {}},
        }}},
    }});
    let mut new = body.clone();
    track_update(Some(&schema), None, &mut new, &by, NOW);
    assert_eq!(owners(&new), json!({"one/Update": set}));
    // What an object had before its first apply is compared with the same.
    let mut live = body.clone();
    live["metadata"]["uid"] = json!("u");
    let named = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "x"}});
    let two = Manager { name: "two", ..by };
    let applied = apply(Some(&schema), Some(&live), &named, &two, false, NOW).unwrap();
    assert_eq!(
        owners(&applied)["before-first-apply/Update"]["f:spec"],
        set["f:spec"]
    );
}

#[test]
fn many_updates_are_put_together() {
    let mut object = config_map(json!({}));
    track_update(None, None, &mut object, &ONE, NOW);
    for index in 0..15 {
        let live = object.clone();
        object["data"][format!("k{index}")] = json!("v");
        let name = format!("m{index:02}");
        let now = format!("2026-11-21T04:01:{index:02}Z");
        track_update(
            None,
            Some(&live),
            &mut object,
            &Manager { name: &name, ..ONE },
            &now,
        );
    }
    let list = object["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(list.len(), 10);
    assert_eq!(list[0]["manager"], "ancient-changes");
    assert_eq!(list[0]["fieldsV1"]["f:data"]["f:k5"], json!({}));
    assert_eq!(list[9]["manager"], "m14");
}

#[test]
fn a_list_that_became_atomic_is_owned_whole() {
    let schema = |list_type: &str| {
        let list = json!({"type": "array", "x-kubernetes-list-type": list_type, "items": {"type": "string"}});
        Schema::parse(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"l": list}}}})).unwrap()
    };
    let body =
        json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "x"}, "spec": {"l": ["a"]}});
    let first = apply(Some(&schema("set")), None, &body, &ONE, false, NOW).unwrap();
    let mut second = first.clone();
    second["spec"]["l"] = json!(["b"]);
    track_update(
        Some(&schema("atomic")),
        Some(&first),
        &mut second,
        &Manager { name: "two", ..ONE },
        LATER,
    );
    assert_eq!(
        owners(&second),
        json!({"two/Update": {"f:spec": {"f:l": {}}}})
    );
}

#[test]
fn conflicts_read_as_the_real_ones() {
    let conflict = |manager: &str, field: &str| Conflict {
        manager: manager.to_owned(),
        message: format!("conflict with {manager:?}"),
        field: field.to_owned(),
    };
    for (conflicts, text) in [
        (
            vec![conflict("one", ".spec.size")],
            r#"Apply failed with 1 conflict: conflict with "one": .spec.size"#,
        ),
        (
            vec![
                conflict("one", ".a"),
                conflict("one", ".b"),
                conflict("two", ".c"),
            ],
            "Apply failed with 3 conflicts: conflicts with \"one\":\n- .a\n- .b\nconflicts with \"two\":\n- .c",
        ),
    ] {
        assert_eq!(ApplyError::Conflict(conflicts).to_string(), text);
    }
}

#[test]
fn paths_survive_their_text_form() {
    let fields = json!({
        "f:metadata": {"f:labels": {".": {}, "f:a:b": {}}},
        "f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}, "v:1": {}, "i:3": {}}},
    });
    let set = Set::decode(&fields).unwrap();
    assert_eq!(set.encode(), fields);
    let texts: Vec<String> = set.paths().iter().map(|path| set::text(path)).collect();
    assert_eq!(
        texts,
        [
            ".metadata.labels",
            ".metadata.labels.a:b",
            ".spec.ports[port=80,protocol=\"TCP\"]",
            ".spec.ports[=1]",
            ".spec.ports[3]",
            ".spec.ports[port=80,protocol=\"TCP\"].name",
        ]
    );
}
