//! Tables of schemas, objects and expected results.

use serde_json::{Value, json};

use super::builtin::expand::NULLS;
use super::{Fault, Schema, builtin, definition, object_meta};

fn schema(spec: Value) -> Schema {
    Schema::parse(&json!({"type": "object", "properties": {"spec": spec}})).unwrap()
}

fn texts(faults: Vec<Fault>) -> Vec<String> {
    faults
        .into_iter()
        .map(|fault| format!("{} {fault}", fault.reason.name()))
        .collect()
}

fn check(spec: Value, value: Value, expect: &[&str]) {
    let found = texts(schema(spec).validate(&json!({"spec": value})));
    assert_eq!(found, expect, "{value}");
}

fn refused(schema: Value, expect: &[&str]) {
    assert_eq!(
        texts(Schema::parse(&schema).unwrap_err().0),
        expect,
        "{schema}"
    );
}

#[test]
fn what_did_not_change_is_forgiven() {
    let schema = schema(json!({ "type": "object", "properties": {
        "small": { "type": "integer", "maximum": 3 },
        "other": { "type": "integer" },
        "plain": { "type": "array", "items": { "type": "integer", "maximum": 3 } },
        "keyed": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": { "type": "object", "required": ["k"], "properties": {
                "k": { "type": "string" }, "v": { "type": "integer", "maximum": 3 },
            } },
        },
        "set": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
    } }));
    let fields = |new: Value, old: Value| -> Vec<String> {
        let faults = schema.validate_update(&json!({ "spec": new }), &json!({ "spec": old }));
        faults.into_iter().map(|fault| fault.field).collect()
    };
    let none = Vec::<String>::new();
    let old = json!({ "small": 9, "other": 1, "plain": [9], "keyed": [{ "k": "a", "v": 9 }] });
    assert_eq!(fields(old.clone(), old.clone()), none);
    let mut new = old.clone();
    new["other"] = json!(2);
    assert_eq!(fields(new.clone(), old.clone()), none);
    new["small"] = json!(8);
    assert_eq!(fields(new.clone(), old.clone()), ["spec.small"]);
    // An item has an older value only if it has keys.
    let mut new = old.clone();
    new["plain"] = json!([9, 1]);
    new["keyed"] = json!([{ "k": "b", "v": 1 }, { "k": "a", "v": 9 }]);
    assert_eq!(fields(new, old), ["spec.plain[0]"]);
    let twice = json!({ "set": ["a", "a"] });
    assert_eq!(
        fields(twice.clone(), json!({ "set": ["a", "a", "b"] })),
        none
    );
    assert_eq!(fields(twice, json!({ "set": ["a"] })), ["spec.set[1]"]);
}

#[test]
fn structural_rules() {
    refused(
        json!({"type": "string"}),
        &[r#"FieldValueInvalid type: Invalid value: "string": must be object at the root"#],
    );
    refused(
        json!({"type": "object", "properties": {"spec": {}}}),
        &[
            "FieldValueRequired properties[spec].type: Required value: must not be empty for specified object fields",
        ],
    );
    refused(
        json!({"type": "object", "properties": {"l": {"type": "array"}}}),
        &["FieldValueRequired properties[l].items: Required value: must be specified"],
    );
    refused(
        json!({"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "string"}}, "additionalProperties": {"type": "string"}}}}),
        &[
            "FieldValueForbidden properties[a].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",
        ],
    );
    refused(
        json!({"type": "object", "properties": {"a": {"type": "object", "anyOf": [{"type": "string"}]}}}),
        &[
            "FieldValueForbidden properties[a].anyOf[0].type: Forbidden: must be empty to be structural",
        ],
    );
    refused(
        json!({"type": "object", "properties": {"l": {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object", "properties": {"n": {"type": "string"}}}}}}),
        &[
            "FieldValueRequired properties[l].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ],
    );
    refused(
        json!({"type": "object", "properties": {"l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"], "items": {"type": "object", "properties": {"n": {"type": "string"}}}}}}),
        &[
            "FieldValueRequired properties[l].items.properties[n].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ],
    );
    for good in [
        json!({}),
        json!({"type": "object", "properties": {"a": {"x-kubernetes-int-or-string": true}}}),
        json!({"type": "object", "properties": {"a": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}}}),
        json!({"type": "object", "properties": {"a": {"x-kubernetes-preserve-unknown-fields": true}}}),
        json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}}}}),
    ] {
        Schema::parse(&good).unwrap();
    }
}

#[test]
fn defaults_fill_from_outside_in() {
    let schema = schema(json!({
        "type": "object", "default": {},
        "properties": {
            "size": {"type": "integer", "default": 3},
            "note": {"type": "string", "nullable": true, "default": "x"},
            "gone": {"type": "string"},
            "ports": {"type": "array", "items": {"type": "object", "properties": {"protocol": {"type": "string", "default": "TCP"}}}},
        },
    }));
    for (before, after) in [
        (json!({}), json!({"spec": {"size": 3, "note": "x"}})),
        (
            json!({"spec": {"size": null, "note": null, "gone": null}}),
            json!({"spec": {"size": 3, "note": null}}),
        ),
        (
            json!({"spec": {"size": 1, "note": "", "ports": [{}]}}),
            json!({"spec": {"size": 1, "note": "", "ports": [{"protocol": "TCP"}]}}),
        ),
    ] {
        let mut object = before;
        schema.prune(&mut object);
        schema.apply_defaults(&mut object);
        assert_eq!(object, after);
    }
}

#[test]
fn unknown_fields_are_pruned() {
    let schema = schema(json!({
        "type": "object",
        "properties": {
            "a": {"type": "string"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "string"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"n": {"type": "string"}}}},
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"closed": {"type": "object", "properties": {"n": {"type": "string"}}}}},
            "object": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
        },
    }));
    let mut object = json!({
        "apiVersion": "v1", "kind": "K", "metadata": {"odd": 1}, "extra": 1,
        "spec": {
            "a": "x", "b": 1, "list": [{"n": "1"}, {"m": 1}], "map": {"k": {"n": "1", "m": 2}},
            "open": {"x": {"y": 1}, "closed": {"n": "1", "m": 2}},
            "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}, "status": {}},
        },
    });
    let removed = schema.prune(&mut object);
    assert_eq!(
        removed,
        [
            "extra",
            "spec.b",
            "spec.list[1].m",
            "spec.map.k.m",
            "spec.object.status",
            "spec.open.closed.m"
        ]
    );
    assert_eq!(
        object,
        json!({
            "apiVersion": "v1", "kind": "K", "metadata": {"odd": 1},
            "spec": {
                "a": "x", "list": [{"n": "1"}, {}], "map": {"k": {"n": "1"}},
                "open": {"x": {"y": 1}, "closed": {"n": "1"}},
                "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}},
            },
        })
    );
}

#[test]
fn types_and_texts() {
    let object = |properties: Value| json!({"type": "object", "required": ["memory"], "properties": properties});
    let memory = |schema: Value| object(json!({"memory": schema}));
    check(
        memory(json!({"type": "integer"})),
        json!({"memory": "1"}),
        &[
            r#"FieldValueTypeInvalid spec.memory: Invalid value: "string": spec.memory in body must be of type integer: "string""#,
        ],
    );
    check(
        memory(json!({"type": "string"})),
        json!({"memory": null}),
        &[
            r#"FieldValueTypeInvalid spec.memory: Invalid value: "null": spec.memory in body must be of type string: "null""#,
        ],
    );
    check(
        memory(json!({"type": "string", "nullable": true})),
        json!({"memory": null}),
        &[],
    );
    check(
        memory(json!({"type": "integer"})),
        json!({"memory": 2.0}),
        &[],
    );
    check(memory(json!({"type": "number"})), json!({"memory": 2}), &[]);
    check(
        memory(json!({"type": "string"})),
        json!({}),
        &["FieldValueRequired spec.memory: Required value"],
    );
    check(
        memory(json!({"type": "string", "enum": ["a", "b"]})),
        json!({"memory": "x"}),
        &[
            r#"FieldValueNotSupported spec.memory: Unsupported value: "x": supported values: "a", "b""#,
        ],
    );
    check(
        memory(json!({"type": "integer", "minimum": 1, "maximum": 5, "multipleOf": 2})),
        json!({"memory": 7}),
        &[
            "FieldValueInvalid spec.memory: Invalid value: 7: spec.memory in body should be a multiple of 2",
            "FieldValueInvalid spec.memory: Invalid value: 7: spec.memory in body should be less than or equal to 5",
        ],
    );
    check(
        memory(json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true})),
        json!({"memory": 1}),
        &[
            "FieldValueInvalid spec.memory: Invalid value: 1: spec.memory in body should be greater than 1",
        ],
    );
    check(
        memory(json!({"type": "string", "pattern": "^a+$", "minLength": 2, "maxLength": 3})),
        json!({"memory": "b"}),
        &[
            r#"FieldValueInvalid spec.memory: Invalid value: "b": spec.memory in body should be at least 2 chars long"#,
        ],
    );
    check(
        memory(json!({"type": "string", "pattern": "^a+$"})),
        json!({"memory": "b"}),
        &[
            r#"FieldValueInvalid spec.memory: Invalid value: "b": spec.memory in body should match '^a+$'"#,
        ],
    );
    check(
        memory(json!({"type": "string", "maxLength": 3})),
        json!({"memory": "abcd"}),
        &["FieldValueTooLong spec.memory: Too long: may not be more than 3 bytes"],
    );
    check(
        memory(json!({"type": "string", "format": "date-time"})),
        json!({"memory": "noon"}),
        &[
            r#"FieldValueTypeInvalid spec.memory: Invalid value: "noon": spec.memory in body must be of type date-time: "noon""#,
        ],
    );
    check(
        memory(json!({"type": "string", "format": "date-time"})),
        json!({"memory": "2026-11-21T04:00:00.5Z"}),
        &[],
    );
    check(
        memory(json!({"type": "integer", "format": "int32"})),
        json!({"memory": 3_000_000_000_u64}),
        &[
            r#"FieldValueInvalid <nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.memory"#,
        ],
    );
    check(
        memory(json!({"x-kubernetes-int-or-string": true})),
        json!({"memory": true}),
        &[
            r#"FieldValueTypeInvalid spec.memory: Invalid value: "boolean": spec.memory in body must be of type integer,string: "boolean""#,
        ],
    );
    check(
        memory(
            json!({"type": "array", "maxItems": 1, "items": {"type": "object", "properties": {"n": {"type": "string"}}}}),
        ),
        json!({"memory": [{"n": 1}, {}]}),
        &[
            r#"FieldValueTypeInvalid spec.memory[0].n: Invalid value: "integer": spec.memory[0].n in body must be of type string: "integer""#,
            "FieldValueTooMany spec.memory: Too many: 2: must have at most 1 item",
        ],
    );
    check(
        memory(
            json!({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}),
        ),
        json!({"memory": {"a": "", "b": ""}}),
        &[
            r#"FieldValueInvalid <nil>: Invalid value: "": "spec.memory" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
        ],
    );
    check(
        memory(
            json!({"type": "integer", "not": {"enum": [4]}, "anyOf": [{"minimum": 3}, {"maximum": 1}]}),
        ),
        json!({"memory": 4}),
        &[
            r#"FieldValueInvalid <nil>: Invalid value: "": "spec.memory" must not validate the schema (not)"#,
        ],
    );
}

#[test]
fn lists_have_no_duplicates() {
    let set = json!({"type": "object", "properties": {"l": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}});
    check(
        set,
        json!({"l": ["a", "b", "a", "a"]}),
        &[r#"FieldValueDuplicate spec.l[2]: Duplicate value: "a""#],
    );
    let map = json!({"type": "object", "properties": {"l": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
    }}});
    check(
        map,
        json!({"l": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}),
        &[r#"FieldValueDuplicate spec.l[2]: Duplicate value: {"name":"a"}"#],
    );
}

#[test]
fn formats() {
    for (format, good, bad) in [
        (
            "date-time",
            "2026-11-21T04:00:00+01:00",
            "2026-11-21 04:00:00",
        ),
        ("date", "2026-02-28", "2026-02-30"),
        ("ipv4", "10.0.0.1", "10.0.0.256"),
        ("ipv6", "fe80::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
        ("uuid", "9be13fb5-1c1d-4b5b-9a4b-7b2f7a3cbb3b", "9be13fb5"),
        ("uri", "https://example.com/a", "a b"),
        ("email", "a@example.com", "a"),
        ("hostname", "a-b.example.com", "-a"),
        ("byte", "aGVsbG8=", "a"),
        ("duration", "1h30m", "soon"),
        ("mac", "00:1b:44:11:3a:b7", "00:1b"),
        ("hexcolor", "#ffaa00", "red"),
        ("k8s-short-name", "a-b", "A"),
    ] {
        assert!(super::format::matches(format, good), "{format} {good}");
        assert!(!super::format::matches(format, bad), "{format} {bad}");
    }
}

#[test]
fn every_definition_becomes_a_schema() {
    let names: Vec<&str> = crate::names().collect();
    assert!(names.len() > 400, "{}", names.len());
    for name in names {
        assert!(definition(name).is_some_and(Value::is_object), "{name}");
        assert!(builtin(name).is_some(), "{name}");
    }
    assert!(object_meta().properties.contains_key("ownerReferences"));
    assert!(crate::descriptions().contains_key("io.k8s.api.core.v1.Pod"));
}

#[test]
fn defaults_within_defaults_stop_where_their_memory_ends() {
    // A list of ten items, each of which gets such a list, seven times over.
    let mut items = json!({ "type": "object" });
    for _ in 0..7 {
        items = json!({ "type": "object", "properties": {
            "more": { "type": "array", "items": items, "default": vec![json!({}); 10] },
        } });
    }
    let schema = Schema::parse(&items).unwrap();
    let mut object = json!({});
    assert!(!schema.apply_defaults_within(&mut object, 1 << 20));
    let length = object.to_string().len();
    assert!(length > 50_000 && length < 1 << 20, "{length}");

    let few = json!({ "type": "object", "properties": {
        "size": { "type": "integer", "default": 3 },
        "name": { "type": "string", "default": "x" },
    } });
    let schema = Schema::parse(&few).unwrap();
    let mut object = json!({ "name": "mine" });
    assert!(schema.apply_defaults_within(&mut object, 32));
    assert_eq!(object, json!({ "name": "mine", "size": 3 }));
    assert!(
        !schema.apply_defaults_within(&mut json!({}), 32),
        "two do not fit"
    );
}

#[test]
fn a_built_in_kind_has_the_defaults_of_the_documents_and_of_the_code() {
    let schema = builtin("io.k8s.api.apps.v1.Deployment").unwrap();
    let mut object = json!({ "spec": {
        "selector": {}, "template": { "spec": { "containers": [{ "name": "c", "image": "i" }] } },
    } });
    schema.apply_defaults(&mut object);
    assert_eq!(object["status"], json!({}));
    assert_eq!(object["spec"]["replicas"], 1);
    assert_eq!(object["spec"]["template"]["metadata"], json!({}));
    let pod = &object["spec"]["template"]["spec"];
    assert_eq!(pod["dnsPolicy"], "ClusterFirst");
    assert_eq!(pod["containers"][0]["resources"], json!({}));
    assert!(schema.validate(&object).is_empty());
    let mut empty = json!({});
    schema.apply_defaults(&mut empty);
    assert_eq!(
        texts(schema.validate(&empty)),
        [
            "FieldValueRequired spec.template.spec.containers: Required value",
            "FieldValueRequired spec.selector: Required value",
        ]
    );
}

#[test]
fn what_go_prints_as_null_is_null() {
    for (name, fields) in NULLS {
        for field in fields {
            let found = &definition(name).unwrap()["properties"][field];
            let of = found["$ref"].as_str().unwrap_or_default();
            let is_time = of.ends_with(".Time") || of.ends_with(".MicroTime");
            let may_be_null = found["type"] == "array" || found["type"] == "string";
            assert!(is_time || may_be_null, "{name} {field}");
        }
    }
    let schema = builtin("io.k8s.api.rbac.v1.Role").unwrap();
    for mut object in [json!({}), json!({ "rules": null })] {
        assert!(schema.prune(&mut object).is_empty());
        schema.apply_defaults(&mut object);
        assert_eq!(object, json!({ "rules": null }));
        assert!(schema.validate(&object).is_empty());
    }
    let mut object = json!({ "rules": [] });
    schema.apply_defaults(&mut object);
    assert_eq!(object, json!({ "rules": [] }));
    // Of a custom kind, a default of null is none.
    let custom = json!({ "type": "array", "items": { "type": "string" }, "nullable": true, "default": null });
    let custom = json!({ "type": "object", "properties": { "list": custom } });
    let mut object = json!({});
    Schema::parse(&custom).unwrap().apply_defaults(&mut object);
    assert_eq!(object, json!({}));
}

#[test]
fn a_container_has_an_image_though_the_documents_do_not_require_it() {
    let schema = builtin("io.k8s.api.core.v1.Pod").unwrap();
    let list = json!([{ "name": "c" }]);
    let pod = json!({ "spec": {
        "containers": list, "initContainers": list, "ephemeralContainers": list,
    } });
    let mut said = texts(schema.validate(&pod));
    said.sort();
    assert_eq!(
        said,
        [
            "FieldValueRequired spec.containers[0].image: Required value",
            "FieldValueRequired spec.ephemeralContainers[0].image: Required value",
            "FieldValueRequired spec.initContainers[0].image: Required value",
        ]
    );
}

#[test]
fn only_the_status_may_lack_what_it_requires() {
    let schema = builtin("io.k8s.api.core.v1.Node").unwrap();
    let mut node = json!({ "spec": { "taints": [{ "key": "a" }] } });
    schema.apply_defaults(&mut node);
    assert_eq!(node["status"]["nodeInfo"]["machineID"], "");
    assert_eq!(
        texts(schema.validate(&node)),
        ["FieldValueRequired spec.taints[0].effect: Required value"]
    );
}

#[test]
fn a_list_may_repeat_keys_where_go_does_not_look() {
    let schema = builtin("io.k8s.api.core.v1.Pod").unwrap();
    let variables = json!([{ "name": "a" }, { "name": "a" }]);
    let container = json!({ "name": "c", "image": "i", "env": variables });
    let mut pod = json!({ "spec": { "containers": [container] } });
    assert_eq!(texts(schema.validate(&pod)), [""; 0]);
    pod["spec"]["schedulingGates"] = variables;
    assert_eq!(schema.validate(&pod).len(), 1);
}
