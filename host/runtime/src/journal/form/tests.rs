//! Tests of the form of effects, and of what they change.

use vmhost_core::{Apply, Create, Delete, Event, EventType, Gvk, ObjectName, Other, Propagation};

use super::*;

fn pod(name: &str) -> ObjectKey {
    ObjectKey {
        kind: Gvk::new("", "v1", "Pod"),
        name: ObjectName::new(Some("a"), name),
    }
}

fn patch(kind: PatchType, body: Value) -> Effect {
    Effect::Patch(Patch {
        key: pod("x"),
        subresource: None,
        kind,
        body: body.to_string(),
        if_version: None,
    })
}

fn apply(object: &Value) -> Effect {
    Effect::Apply(Apply {
        object: object.to_string(),
        subresource: Some("status".into()),
        force: true,
        create_if_absent: false,
        if_version: None,
    })
}

/// An effect for the cluster that this JSON names.
fn in_cluster_named(cluster: &str, effect: &str) -> Effect {
    Effect::Other(Other {
        name: "in-cluster".into(),
        body: format!(r#"{{"cluster":{cluster},"effect":{effect}}}"#),
    })
}

/// The paths with the values before and after.
fn lines(effect: &Effect, before: Option<&Value>) -> Vec<String> {
    let text = |value: Option<Value>| value.map_or("-".to_owned(), |value| value.to_string());
    let fields = change(effect, before).0.into_iter();
    fields
        .map(|field| format!("{} {} {}", field.path, text(field.old), text(field.new)))
        .collect()
}

#[test]
fn each_effect_has_the_form_of_a_test_case() {
    let key = json!({ "apiVersion": "v1", "kind": "Pod", "namespace": "a", "name": "x" });
    let object = json!({ "kind": "Pod" });
    let delete = Delete {
        key: pod("x"),
        uid: Some("u".into()),
        if_version: None,
        propagation: Some(Propagation::Orphan),
    };
    let event = Event {
        kind: EventType::Warning,
        reason: "Odd".into(),
        action: String::new(),
        note: "odd".into(),
        related: Some(ObjectKey {
            kind: Gvk::new("apps", "v1", "Deployment"),
            name: ObjectName::new(None, "d"),
        }),
    };
    for (effect, form) in [
        (
            apply(&object),
            json!({ "apply": {
                "object": object, "subresource": "status", "force": true, "createIfAbsent": false,
            } }),
        ),
        (
            patch(PatchType::Merge, json!({ "a": 1 })),
            json!({ "patch": { "key": key, "type": "merge", "body": { "a": 1 } } }),
        ),
        (
            Effect::Create(Create {
                object: "no json".into(),
            }),
            json!({ "create": { "object": "no json" } }),
        ),
        (
            Effect::Delete(delete),
            json!({ "delete": { "key": key, "uid": "u", "propagation": "orphan" } }),
        ),
        (
            Effect::Event(event),
            json!({ "event": {
                "type": "warning", "reason": "Odd", "note": "odd",
                "related": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "d" },
            } }),
        ),
        (
            Effect::Other(Other {
                name: "teleport".into(),
                body: "{}".into(),
            }),
            json!({ "other": { "name": "teleport" } }),
        ),
        (
            in_cluster_named("null", r#"{"apply":{"object":{"b":1}}}"#),
            json!({ "other": { "name": "in-cluster", "body": {
                "cluster": null,
                "effect": {
                    "apply": { "object": { "b": 1 }, "force": false, "createIfAbsent": false },
                },
            } } }),
        ),
        (
            in_cluster_named("7", r#"{"apply":{"object":{"b":1}}}"#),
            json!({ "other": { "name": "in-cluster" } }),
        ),
    ] {
        assert_eq!(of(&effect), form);
    }
}

#[test]
fn a_merge_patch_changes_what_differs_and_removes_what_is_null() {
    let before = json!({ "spec": { "a": 1, "b": 2, "same": 3 } });
    let effect = patch(
        PatchType::Merge,
        json!({ "spec": { "a": 9, "b": null, "same": 3 } }),
    );
    assert_eq!(lines(&effect, Some(&before)), ["spec.a 1 9", "spec.b 2 -"]);
    assert_eq!(
        change(&effect, Some(&before)).1,
        Some(json!({ "spec": { "a": 9, "same": 3 } }))
    );
    assert_eq!(
        lines(&effect, None),
        ["spec.a - 9", "spec.b - null", "spec.same - 3"]
    );
}

#[test]
fn a_json_patch_is_carried_out_or_shown_by_its_operations() {
    let before = json!({ "spec": { "a": 1, "list": ["x"] } });
    let operations = json!([
        { "op": "test", "path": "/spec/a", "value": 1 },
        { "op": "replace", "path": "/spec/a", "value": 2 },
        { "op": "add", "path": "/spec/list/-", "value": "y" },
    ]);
    let effect = patch(PatchType::Json, operations);
    assert_eq!(
        lines(&effect, Some(&before)),
        ["spec.a 1 2", "spec.list[1] - \"y\""]
    );
    let named = ["spec.a - 2", "spec.list[-] - \"y\""];
    assert_eq!(lines(&effect, None), named);
    let other = json!({ "spec": { "a": 7, "list": [] } });
    assert_eq!(lines(&effect, Some(&other)), named, "the test fails");
    let removal = json!([{ "op": "remove", "path": "/spec/a" }]);
    assert_eq!(
        lines(&patch(PatchType::Json, removal), None),
        ["spec.a - -"]
    );
}

#[test]
fn a_json_patch_cannot_blow_up_the_host() {
    let before = json!({ "a": "x".repeat(100) });
    let copy = json!({ "op": "copy", "from": "", "path": "/a" });
    let copies = Value::Array(vec![copy; 200]);
    let deep = json!([{ "op": "add", "path": "/a".repeat(1000), "value": 1 }]);
    for body in [copies, deep] {
        let (fields, after) = change(&patch(PatchType::Json, body), Some(&before));
        assert!(fields.len() <= diff::SHOWN && after.is_none());
    }
}

#[test]
fn an_apply_is_compared_by_its_own_leaves() {
    let before = json!({
        "metadata": { "name": "x", "creationTimestamp": "then", "finalizers": ["f"] },
        "status": {
            "phase": "old", "other": 1,
            "conditions": [
                { "type": "Ready", "status": "True" }, { "type": "Synced", "status": "True" },
            ],
        },
    });
    let effect = apply(&json!({
        "metadata": { "name": "x", "creationTimestamp": null },
        "status": {
            "phase": "new",
            "conditions": [
                { "type": "Synced", "status": "False" }, { "type": "New", "status": "True" },
            ],
        },
    }));
    assert_eq!(
        lines(&effect, Some(&before)),
        [
            "status.conditions[1].status \"True\" \"False\"",
            "status.conditions[2].status - \"True\"",
            "status.conditions[2].type - \"New\"",
            "status.phase \"old\" \"new\"",
        ]
    );
    assert_eq!(lines(&effect, None).len(), 5);
}

#[test]
fn a_created_object_is_known_afterwards() {
    let effect = Effect::Create(Create {
        object: r#"{"kind":"Pod","spec":{"a":1}}"#.into(),
    });
    let (fields, after) = change(&effect, Some(&json!({ "spec": { "a": 2 } })));
    assert_eq!(fields[0].path, "spec.a");
    assert_eq!(
        (&fields[0].old, after.unwrap()["kind"].as_str()),
        (&None, Some("Pod"))
    );
    for effect in [
        Effect::Other(Other {
            name: "x".into(),
            body: "{}".into(),
        }),
        Effect::Create(Create { object: "?".into() }),
        patch(PatchType::Json, json!("odd")),
        patch(PatchType::Json, json!([1, { "op": "add" }, { "path": 7 }])),
    ] {
        let (_, after) = change(&effect, Some(&json!({})));
        assert_eq!(after, None);
    }
}

#[test]
fn an_effect_in_another_cluster_names_its_fields_and_no_object_of_this_one() {
    let effect = in_cluster_named("\"east\"", r#"{"create":{"object":{"spec":{"a":1}}}}"#);
    let before = json!({ "spec": { "a": 2 } });
    assert_eq!(lines(&effect, Some(&before)), ["spec.a - 1"]);
    assert_eq!(change(&effect, Some(&before)).1, None);
}
