//! What expressions make, as JSON.

use serde_json::json;

use crate::{Scope, Seen, Unevaluated, Wanted};

use super::*;

fn made(source: &str, wanted: Wanted) -> Result<Value, String> {
    let scope = Scope::new(&["object", "params"]);
    let object = json!({
        "metadata": { "name": "a", "labels": { "x/y~z": "1" } },
        "spec": { "containers": [{ "name": "c", "args": ["1", "2"] }], "replicas": 3 },
    });
    let expression = scope.compile(source, wanted)?;
    let values = [&object, &Value::Null];
    let made = scope.make(&expression, &Seen::of(&values), &mut 10_000_000);
    made.map_err(|why| match why {
        Unevaluated::OverBudget => "over budget".to_owned(),
        Unevaluated::Failed(why) | Unevaluated::Unfit(why) => why,
    })
}

#[test]
fn objects_become_json() {
    for (source, expected) in [
        ("Object{}", json!({})),
        (
            "Object{spec: Object.spec{replicas: object.spec.replicas + 1, share: 0.5, on: true}}",
            json!({ "spec": { "replicas": 4, "share": 0.5, "on": true } }),
        ),
        (
            "Object{metadata: Object.metadata{annotations: {'k': 'b', object.metadata.name: 'c'}}}",
            json!({ "metadata": { "annotations": { "k": "b", "a": "c" } } }),
        ),
        (
            "Object{?kind: object.?kind, ?spec: optional.of(object.spec.containers)}",
            json!({ "spec": [{ "name": "c", "args": ["1", "2"] }] }),
        ),
        (
            "Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, image: 'i'})}}",
            json!({ "spec": { "containers": [{ "name": "c", "image": "i" }] } }),
        ),
        (
            "has(object.spec.none) ? Object{} : Object{at: timestamp('2024-01-01T00:00:00Z'), bytes: b'a'}",
            json!({ "at": "2024-01-01T00:00:00Z", "bytes": "YQ==" }),
        ),
    ] {
        assert_eq!(made(source, Wanted::Object), Ok(expected), "{source}");
    }
}

#[test]
fn patches_become_operations() {
    let source = "[
        JSONPatch{op: 'test', path: '/spec/replicas', value: 3},
        JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('x/y~z'), value: '2'},
        JSONPatch{op: 'move', from: '/a', path: '/b'},
    ] + (params == null ? [] : [JSONPatch{op: 'remove', path: '/c'}])
      + [JSONPatch{op: 'add', path: '/spec/x', value: Object.spec.x{a: Object.spec.x.a{b: 1}}}]";
    let expected = json!([
        { "op": "test", "path": "/spec/replicas", "value": 3 },
        { "op": "add", "path": "/metadata/labels/x~1y~0z", "value": "2" },
        { "op": "move", "from": "/a", "path": "/b" },
        { "op": "add", "path": "/spec/x", "value": { "a": { "b": 1 } } },
    ]);
    assert_eq!(made(source, Wanted::Patch), Ok(expected));
}

#[test]
fn wrong_names_and_types_are_told() {
    let name = |name: &str, expected: &str| {
        format!(
            "type mismatch: unexpected type name {name:?}, expected {expected:?}, which matches field name path from root Object type"
        )
    };
    for (source, wanted, error) in [
        (
            "Object{spec: Object.wrong{}}",
            Wanted::Object,
            name("Object.wrong", "Object.spec"),
        ),
        (
            "Object{spec: Object.spec{list: [Object.spec{}]}}",
            Wanted::Object,
            name("Object.spec", "Object.spec.list"),
        ),
        (
            "[JSONPatch{op: 'add', path: '/a', value: Object.a{b: Object.b{}}}]",
            Wanted::Patch,
            name("Object.b", "Object.a.b"),
        ),
        (
            "{'spec': 1}",
            Wanted::Object,
            "must evaluate to Object but got map(string, int)".to_owned(),
        ),
        (
            "Object.spec{}",
            Wanted::Object,
            "must evaluate to Object but got Object.spec".to_owned(),
        ),
        (
            "[]",
            Wanted::Patch,
            "must evaluate to list(JSONPatch) but got list(dyn)".to_owned(),
        ),
        (
            "[JSONPatch{op: object.spec.replicas, path: '/a'}]",
            Wanted::Patch,
            "unexpected type int for JSONPatchType 'op' field".to_owned(),
        ),
    ] {
        assert_eq!(made(source, wanted), Err(error), "{source}");
    }
    for (source, error) in [
        (
            "[JSONPatch{op: 1, path: '/a'}]",
            "expected type of field 'op' is 'string' but provided type is 'int'",
        ),
        ("[JSONPatch{op: 'add', to: '/a'}]", "undefined field 'to'"),
        ("[Patch{}]", "undeclared reference to 'Patch'"),
        ("[Objects{}]", "undeclared reference to 'Objects'"),
    ] {
        let why = made(source, Wanted::Patch).unwrap_err();
        assert!(why.contains(error), "{source}: {why}");
    }
}

#[test]
fn only_mutations_make_objects() {
    let scope = Scope::new(&["object"]);
    for (source, name) in [
        ("Object{} == Object{}", "Object"),
        ("jsonpatch.escapeKey('a') == 'a'", "jsonpatch"),
    ] {
        let why = scope.compile(source, Wanted::Bool).unwrap_err();
        let undeclared = format!("undeclared reference to '{name}'");
        assert!(why.contains(&undeclared), "{why}");
    }
}

#[test]
fn copies_stay_within_a_limit() {
    let text = "a".repeat(50_000);
    let object = json!({ "text": text });
    let scope = Scope::new(&["object"]);
    let source = "Object{list: lists.range(1000).map(i, object)}";
    let expression = scope.compile(source, Wanted::Object).unwrap();
    let made = scope.make(&expression, &Seen::of(&[&object]), &mut 10_000_000);
    let Err(Unevaluated::Unfit(why)) = made else {
        panic!("the copies are made");
    };
    assert!(why.contains("the result has more than"), "{why}");
}

#[test]
fn shared_parts_stay_within_the_limit() {
    let doubling = |at: usize| format!(".map(v{at}, [v{at}, v{at}])");
    let doubled: String = (0..32).map(doubling).collect();
    let spec = format!("[Object.wrong{{}}]{doubled}");
    let object = format!("Object{{spec: {spec}}}");
    let value = format!("[JSONPatch{{op: 'add', path: '/a', value: Object.a{{b: {spec}}}}}]");
    for (source, wanted) in [(object, Wanted::Object), (value, Wanted::Patch)] {
        let why = made(&source, wanted).unwrap_err();
        assert!(why.contains("the result has more than"), "{why}");
    }
}
