//! Tests which cases a plugin accepts, and which are refused because no host could bring them
//! about.

use std::path::Path;

use super::*;

const KINDS: &str = r#"{ "apiVersion": "vmhost/v1", "name": "p", "controllers": [
    { "name": "apps", "primary": { "group": "example.com", "version": "v1", "kind": "App" }, "previous": true, "finalizer": "example.com/app",
      "watches": [{ "version": "v1", "kind": "Secret", "map": "guest" }] },
    { "name": "pods", "primary": { "version": "v1", "kind": "Pod", "labelSelector": "app" } },
    { "name": "tick", "timer": { "everyMs": 10 } }] }"#;

/// Prepares a case with an object of this metadata and a request.
fn prepared(kind: &str, metadata: Value, request: Value) -> Result<Prepared, String> {
    let object = metadata.is_object().then(|| {
        let mut metadata = metadata.clone();
        metadata["name"] = json!("x");
        let (api_version, kind) = kind.split_once(' ').unwrap();
        let value = json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata });
        Given::new("object.json".into(), value).unwrap()
    });
    let case = Case {
        http: Vec::new(),
        folder: Path::new("c").into(),
        object,
        cache: Vec::new(),
        previous: None,
        reads: None,
        request: serde_json::from_value(request).unwrap(),
        review: None,
        expect: None,
    };
    prepare(&case, &Description::parse(KINDS).unwrap()).map_err(|error| format!("{error:#}"))
}

fn turn(prepared: Result<Prepared, String>) -> (String, Turn) {
    let prepared = prepared.unwrap();
    match prepared.call {
        Call::Turn(turn) => (prepared.controller, turn),
        Call::Map(_) => panic!("no turn"),
    }
}

#[test]
fn the_object_says_which_controller_is_called_and_with_what() {
    let previous = json!({ "apiVersion": "example.com/v1", "kind": "App", "metadata": { "name": "x" }, "spec": 1 });
    let request = json!({ "previous": previous, "attempt": 3, "last": { "code": 409, "reason": "Conflict" } });
    let (controller, turn) = turn(prepared("example.com/v1 App", json!({}), request));
    assert_eq!(
        (&*controller, turn.name.as_str(), turn.deleting),
        ("apps", "x", false)
    );
    let object = turn.object.unwrap();
    assert!(
        object.text.contains(r#""finalizers":["example.com/app"]"#),
        "as the host adds it"
    );
    let previous = turn.previous.unwrap();
    assert_eq!(previous.uid(), object.uid());
    assert!(!previous.text.contains("finalizers"));
    assert_eq!((turn.attempt, turn.last.unwrap().code), (3, 409));
}

#[test]
fn an_object_waits_for_its_clean_up_as_the_host_decides() {
    let app = "example.com/v1 App";
    let marked =
        json!({ "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/app"] });
    assert!(turn(prepared(app, marked.clone(), json!({}))).1.deleting);
    let asked = turn(prepared(app, json!({}), json!({ "deleting": true }))).1;
    assert!(asked.deleting);
    assert!(asked.object.unwrap().text.contains("deletionTimestamp"));
    for (metadata, request, says) in [
        (
            marked,
            json!({ "deleting": false }),
            "c/request.json: deleting is false",
        ),
        (
            json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }),
            json!({}),
            "object.json: the object is being deleted without",
        ),
    ] {
        let error = prepared(app, metadata, request).err().unwrap();
        assert!(error.starts_with(says), "{error}");
    }
}

#[test]
fn what_is_gone_has_a_key_and_a_timer_its_own() {
    let request = json!({ "controller": "pods", "key": { "namespace": "a", "name": "y" } });
    let (_, gone) = turn(prepared("", json!(null), request));
    assert_eq!((gone.name.as_str(), gone.object.is_none()), ("a/y", true));
    let (_, tick) = turn(prepared("", json!(null), json!({ "controller": "tick" })));
    assert_eq!((tick.name.as_str(), &*tick.kind.kind), ("tick", "Timer"));
}

#[test]
fn changes_are_mapped_and_nothing_else_in_their_case() {
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" } });
    let request = json!({ "controller": "apps", "mapChanges": [{ "new": secret }] });
    let Call::Map(changes) = prepared("", json!(null), request).unwrap().call else {
        panic!("no changes")
    };
    assert!(changes[0].old.is_none() && changes[0].new.is_some());
}

#[test]
fn a_case_that_cannot_be_is_refused_by_file_and_field() {
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "x" } });
    for (kind, metadata, request, says) in [
        (
            "",
            json!(null),
            json!({}),
            "c/request.json: controller is missing; available: apps, pods, tick",
        ),
        (
            "",
            json!(null),
            json!({ "controller": "jobs" }),
            "c/request.json: controller: the plugin has no controller \"jobs\"; available: apps",
        ),
        (
            "",
            json!(null),
            json!({ "controller": "pods" }),
            "c/request.json: key is missing",
        ),
        (
            "",
            json!(null),
            json!({ "controller": "apps", "key": { "name": "x" }, "deleting": true }),
            "c/request.json: deleting is true, but there",
        ),
        (
            "v1 Job",
            json!({}),
            json!({}),
            "object.json: the plugin has no controller for Job.v1",
        ),
        (
            "v1 Pod",
            json!({}),
            json!({}),
            "object.json: the description's labelSelector or fieldSelector",
        ),
        (
            "v1 Pod",
            json!({ "labels": { "app": "" } }),
            json!({ "controller": "apps" }),
            "c/request.json: controller: its kind is App",
        ),
        (
            "v1 Pod",
            json!({ "labels": { "app": "" } }),
            json!({ "key": { "name": "y" } }),
            "c/request.json: key is y, but the key of object.json is x",
        ),
        (
            "v1 Pod",
            json!({ "labels": { "app": "" } }),
            json!({ "deleting": true }),
            "c/request.json: deleting: the controller has no finalizer",
        ),
        (
            "v1 Pod",
            json!({ "labels": { "app": "" } }),
            json!({ "previous": pod }),
            "c/request.json: previous: the description does not set previous",
        ),
        (
            "example.com/v1 App",
            json!({}),
            json!({ "previous": pod }),
            "c/request.json: previous: Pod.v1 is not the controller's kind",
        ),
        (
            "example.com/v1 App",
            json!({}),
            json!({ "mapChanges": [] }),
            "c/request.json: mapChanges and object.json",
        ),
        (
            "",
            json!(null),
            json!({ "controller": "tick", "now": "soon" }),
            "c/request.json: now: \"soon\"",
        ),
        (
            "",
            json!(null),
            json!({ "controller": "apps", "mapChanges": [], "random": {} }),
            "c/request.json: mapChanges and random",
        ),
        (
            "",
            json!(null),
            json!({ "controller": "apps", "mapChanges": [{ "old": pod }] }),
            "c/request.json: mapChanges[0].old: the controller does not watch Pod.v1",
        ),
    ] {
        let error = prepared(kind, metadata, request).err().unwrap();
        assert!(error.starts_with(says), "{error}");
    }
}
