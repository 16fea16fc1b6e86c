//! Tests that two outcomes differ only where they should.

use std::time::Duration;

use serde_json::json;
use vmhost_core::{
    Apply, Create, Delete, Event, EventType, Gvk, ObjectKey, ObjectName, Other, Outcome, Patch,
    PatchType,
};

use super::*;
use crate::shadow::job::tests::job;

const OBJECT: &str = r#"{"apiVersion":"example.com/v1","kind":"Machine","metadata":{"name":"x","namespace":"default"},"spec":{"status":"creating","size":1}}"#;

fn own_key() -> ObjectKey {
    ObjectKey {
        kind: Gvk::new("example.com", "v1", "Machine"),
        name: ObjectName::new(Some("default"), "x"),
    }
}

fn patch(kind: PatchType, body: Value) -> Effect {
    Effect::Patch(Patch {
        key: own_key(),
        subresource: None,
        kind,
        body: body.to_string(),
        if_version: None,
    })
}

fn merge(body: Value) -> Effect {
    patch(PatchType::Merge, body)
}

fn config_map(name: &str, data: Value) -> Effect {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": "default" }, "data": data,
    });
    Effect::Create(Create {
        object: object.to_string(),
    })
}

fn event(reason: &str, note: &str) -> Effect {
    Effect::Event(Event {
        kind: EventType::Normal,
        reason: reason.into(),
        action: String::new(),
        note: note.into(),
        related: None,
    })
}

fn returned(effects: Vec<Effect>, next: Next) -> Called {
    Ok(Outcome { effects, next })
}

/// Formats each difference as `what verb kind object: path old new, ...`.
fn lines(differences: &[Difference]) -> Vec<String> {
    let value = |value: &Option<Value>| {
        let value = value.as_ref();
        value.map_or("-".to_owned(), ToString::to_string)
    };
    let line = |one: &Difference| {
        let effect = &one.effect;
        let fields = effect.fields.iter();
        let fields: Vec<String> = fields
            .map(|field| format!("{} {} {}", field.path, value(&field.old), value(&field.new)))
            .collect();
        let (verb, kind, object) = (&effect.verb, &one.kind, &effect.object);
        format!(
            "{:?} {verb} [{kind}] [{object}]: {}",
            one.what,
            fields.join(", ")
        )
    };
    differences.iter().map(line).collect()
}

/// Compares two lists of effects; the first one is the live version's.
fn differences(live: Vec<Effect>, other: Vec<Effect>) -> Vec<String> {
    let other = returned(other, Next::AwaitChange);
    lines(&compare(&job(Some(OBJECT), live), &other))
}

#[test]
fn the_text_of_a_body_does_not_matter() {
    let body = |text: &str| {
        Effect::Patch(Patch {
            key: own_key(),
            subresource: None,
            kind: PatchType::Merge,
            body: text.into(),
            if_version: None,
        })
    };
    let (one, other) = (
        body(r#"{"spec":{"a":1,"b":[2]}}"#),
        body("{ \"spec\": {\"b\": [2], \"a\": 1} }"),
    );
    assert!(differences(vec![one], vec![other]).is_empty());
}

#[test]
fn an_effect_in_another_cluster_is_compared_as_any_other() {
    let there = |cluster: &str, kind: &str, value: &str| {
        let key = json!({ "apiVersion": "v1", "kind": kind, "namespace": "a", "name": "c" });
        let patch = json!({ "key": key, "type": "merge", "body": { "data": { "k": value } } });
        let body = json!({ "cluster": cluster, "effect": { "patch": patch } });
        Effect::Other(Other {
            name: "in-cluster".into(),
            body: body.to_string(),
        })
    };
    let live = || vec![there("east", "ConfigMap", "1")];
    let same = there("east", "ConfigMap", "1");
    assert!(differences(live(), vec![same]).is_empty());
    assert_eq!(
        differences(live(), vec![there("east", "ConfigMap", "2")]),
        ["Changed other [ConfigMap] [ConfigMap a/c in cluster east]: data.k \"1\" \"2\""]
    );
    assert_eq!(
        differences(live(), vec![there("west", "Secret", "1")]),
        [
            "Missing other [ConfigMap] [ConfigMap a/c in cluster east]: data.k - \"1\"",
            "Extra other [Secret] [Secret a/c in cluster west]: data.k - \"1\"",
        ]
    );
}

#[test]
fn a_body_that_names_no_cluster_is_compared_and_not_shown() {
    let there = |body: &str| {
        Effect::Other(Other {
            name: "in-cluster".into(),
            body: body.into(),
        })
    };
    let live = there(r#"{"cluster":"east","effect":{"delete":{}}}"#);
    let same = there(r#"{ "effect": { "delete": {} }, "cluster": "east" }"#);
    assert!(differences(vec![live.clone()], vec![same]).is_empty());
    let other = there(r#"{"cluster":"west","effect":{"delete":{}}}"#);
    let form = r#"{"other":{"name":"in-cluster"}}"#;
    assert_eq!(
        differences(vec![live], vec![other]),
        [format!("Changed other [in-cluster] []:  {form} {form}")]
    );
}

#[test]
fn a_field_is_named_with_both_values() {
    let live = merge(json!({ "spec": { "replicas": 2, "same": true } }));
    let other = merge(json!({ "spec": { "replicas": 3, "same": true, "more": "x" } }));
    assert_eq!(
        differences(vec![live], vec![other]),
        ["Changed patch [Machine] [Machine default/x]: spec.more - \"x\", spec.replicas 2 3"]
    );
    let live = config_map("a", json!({ "k": "1" }));
    let other = config_map("a", json!({ "k": "2" }));
    assert_eq!(
        differences(vec![live], vec![other]),
        ["Changed create [ConfigMap] [ConfigMap default/a]: data.k \"1\" \"2\""]
    );
}

#[test]
fn operations_are_compared_by_their_path() {
    let steps = |status: &str| {
        json!([
            { "op": "test", "path": "/spec/status", "value": "creating" },
            { "op": "replace", "path": "/spec/status", "value": status },
            { "op": "add", "path": "/metadata/annotations", "value": { "a": status } },
        ])
    };
    let (live, other) = (steps("complete"), steps("done"));
    let of = |body: &Value| vec![patch(PatchType::Json, body.clone())];
    assert_eq!(
        differences(of(&live), of(&other)),
        [
            "Changed patch [Machine] [Machine default/x]: metadata.annotations.a \"complete\" \"done\", spec.status \"complete\" \"done\""
        ]
    );
    let shorter = json!([live[0], live[1]]);
    assert_eq!(
        differences(of(&live), of(&shorter)),
        [
            "Changed patch [Machine] [Machine default/x]: metadata.annotations {\"a\":\"complete\"} -"
        ]
    );
    let reordered = json!([live[1], live[0], live[2]]);
    let found = differences(of(&live), of(&reordered));
    assert!(found[0].contains("]:  {\"patch\":"), "{found:?}");
}

#[test]
fn the_way_of_a_write_matters() {
    let apply = |force: bool, subresource: Option<&str>| {
        Effect::Apply(Apply {
            object: OBJECT.into(),
            subresource: subresource.map(str::to_owned),
            force,
            create_if_absent: false,
            if_version: None,
        })
    };
    assert_eq!(
        differences(vec![apply(false, None)], vec![apply(true, None)]),
        ["Changed apply [Machine] [Machine default/x]: force false true"]
    );
    let found = differences(vec![apply(true, None)], vec![apply(true, Some("status"))]);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("Missing apply [Machine]"), "{found:?}");
    assert!(
        found[1].starts_with("Extra apply [Machine/status] [Machine default/x/status]"),
        "{found:?}"
    );
    let merge = merge(json!({ "spec": {} }));
    let json_patch = patch(PatchType::Json, json!([]));
    assert_eq!(
        differences(vec![merge], vec![json_patch]),
        ["Changed patch [Machine] [Machine default/x]: type \"merge\" \"json\""]
    );
}

#[test]
fn an_effect_of_one_version_shows_what_it_would_change() {
    let merge = merge(json!({ "spec": { "status": "complete", "size": 1 } }));
    assert_eq!(
        differences(vec![], vec![merge.clone()]),
        ["Extra patch [Machine] [Machine default/x]: spec.status \"creating\" \"complete\""]
    );
    let delete = Effect::Delete(Delete {
        key: own_key(),
        uid: None,
        if_version: None,
        propagation: None,
    });
    let found = differences(vec![merge], vec![delete]);
    assert!(found[0].starts_with("Missing patch"), "{found:?}");
    assert!(
        found[1].starts_with("Extra delete [Machine] [Machine default/x]"),
        "{found:?}"
    );
}

#[test]
fn equal_names_are_paired_in_order_and_the_order_counts() {
    let (one, other) = (merge(json!({ "a": 1 })), merge(json!({ "a": 2 })));
    let map = config_map("m", json!({}));
    assert!(
        differences(
            vec![one.clone(), other.clone()],
            vec![one.clone(), other.clone()]
        )
        .is_empty()
    );
    assert_eq!(
        differences(vec![one.clone(), other], vec![one.clone(), one.clone()]),
        ["Changed patch [Machine] [Machine default/x]: a 2 1"]
    );
    let found = differences(vec![one.clone(), map.clone()], vec![map, one]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("Changed order [] []:  ["), "{found:?}");
}

#[test]
fn events_are_data() {
    let live = vec![event("Done", "in 1 s")];
    assert_eq!(
        differences(live.clone(), vec![event("Done", "in 2 s")]),
        ["Changed event [Machine] [Machine default/x]: note \"in 1 s\" \"in 2 s\""]
    );
    let found = differences(live, vec![event("Failed", "in 1 s")]);
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn what_comes_next_counts() {
    let job = job(None, Vec::new());
    let found = |next: Next| lines(&compare(&job, &returned(Vec::new(), next)));
    assert_eq!(
        found(Next::RequeueAfterMs(5)),
        ["Changed next [] []:  \"awaitChange\" {\"requeueAfterMs\":5}"]
    );
    assert!(found(Next::AwaitChange).is_empty());
    let mut job = job;
    job.called = returned(Vec::new(), Next::Retry("a".into()));
    let other = returned(Vec::new(), Next::Retry("b".into()));
    assert_eq!(
        lines(&compare(&job, &other)),
        ["Changed next [] []: retry \"a\" \"b\""]
    );
}

#[test]
fn failures_are_equal_if_their_kind_is() {
    let trap = |reason: &str| {
        Err(CallError::Trap {
            reason: reason.into(),
        })
    };
    let mut job = job(None, Vec::new());
    let found = compare(&job, &trap("panic at x\n"));
    assert_eq!(
        lines(&found),
        ["Changed call [] []:  \"returned\" \"trap\""]
    );
    let message = found[0].effect.message.as_deref();
    assert!(
        message.is_some_and(|text| text.ends_with("panic at x ")),
        "{message:?}"
    );
    job.called = trap("a");
    assert!(compare(&job, &trap("b")).is_empty());
    let deadline = Err(CallError::Deadline(Duration::from_secs(1)));
    assert_eq!(
        lines(&compare(&job, &deadline)),
        ["Changed call [] []:  \"trap\" \"deadline\""]
    );
    let fine = returned(Vec::new(), Next::AwaitChange);
    assert_eq!(
        lines(&compare(&job, &fine)),
        ["Changed call [] []:  \"trap\" \"returned\""]
    );
}
