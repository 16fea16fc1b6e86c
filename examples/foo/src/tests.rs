//! Single turns without a host: the requested effects, given a Foo and the existing Deployments.

use vmhost_plugin::testing::TestHost;
use vmhost_plugin::{Effect, EventType, Next};

use super::*;

fn foo(spec: Value, status: Value) -> Value {
    json!({ "apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo",
        "metadata": { "name": "web", "namespace": "default", "uid": "u-foo" }, "spec": spec, "status": status })
}

fn three() -> Value {
    json!({ "deploymentName": "nginx", "replicas": 3 })
}

/// Returns the Deployment that the controller created, as the API server returns it.
fn deployment(owner: &str, replicas: i32, available: i32) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "nginx", "namespace": "default", "uid": "u-deployment",
            "ownerReferences": [{ "apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo", "name": "web", "uid": owner, "controller": true }] },
        "spec": { "replicas": replicas }, "status": { "availableReplicas": available } })
}

/// Runs one turn, and returns the logged lines too.
fn turn(foo: Option<Value>, deployment: Option<Value>) -> (Outcome, Vec<String>) {
    let host = deployment
        .into_iter()
        .fold(TestHost::new(), TestHost::object);
    let key = ObjectKey::of(&FOO, Some("default"), "web");
    let text = foo.map(|foo| foo.to_string());
    let request = Request::of("foos", key, text.as_deref());
    let (outcome, lines) = host.run(|| SampleController::reconcile(&request));
    (outcome.unwrap(), lines)
}

fn effects(foo: Value, deployment: Option<Value>) -> Vec<Effect> {
    let (outcome, lines) = turn(Some(foo), deployment);
    assert_eq!(outcome.next, Next::AwaitChange);
    assert!(lines.is_empty(), "{lines:?}");
    outcome.effects
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[track_caller]
fn is_status(effect: &Effect, available: i32) {
    let Effect::Patch(patch) = effect else {
        panic!("a patch and not {effect:?}")
    };
    assert_eq!(
        (patch.subresource.as_deref(), patch.key.name.as_str()),
        (Some("status"), "web")
    );
    assert_eq!(
        read(&patch.body),
        json!({ "status": { "availableReplicas": available } })
    );
}

#[track_caller]
fn is_synced(effect: &Effect) {
    let Effect::Event(event) = effect else {
        panic!("an Event and not {effect:?}")
    };
    assert_eq!(event.type_, EventType::Normal);
    assert_eq!(
        (event.reason.as_str(), event.note.as_str()),
        ("Synced", "Foo synced successfully")
    );
}

#[test]
fn the_deployment_is_made_and_owned() {
    let all = effects(foo(three(), json!({})), None);
    let [Effect::Create(create), status, event] = &all[..] else {
        panic!("{all:?}")
    };
    let labels = json!({ "app": "nginx", "controller": "web" });
    assert_eq!(
        read(&create.object),
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {
                "name": "nginx",
                "namespace": "default",
                "ownerReferences": [{
                    "apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo", "name": "web", "uid": "u-foo",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "replicas": 3,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": { "containers": [{ "name": "nginx", "image": "nginx:latest" }] },
                },
            },
        })
    );
    is_status(status, 0);
    is_synced(event);
}

#[test]
fn without_replicas_the_api_server_decides() {
    let spec = json!({ "deploymentName": "nginx" });
    let all = effects(foo(spec.clone(), json!({})), None);
    let [Effect::Create(create), ..] = &all[..] else {
        panic!("{all:?}")
    };
    assert_eq!(read(&create.object)["spec"].get("replicas"), None);
    let all = effects(
        foo(spec, json!({ "availableReplicas": 4 })),
        Some(deployment("u-foo", 4, 4)),
    );
    let [event] = &all[..] else { panic!("{all:?}") };
    is_synced(event);
}

#[test]
fn other_replicas_are_overwritten_with_all_the_rest() {
    let all = effects(
        foo(three(), json!({ "availableReplicas": 5 })),
        Some(deployment("u-foo", 5, 5)),
    );
    let [Effect::Patch(patch), event] = &all[..] else {
        panic!("{all:?}")
    };
    assert_eq!(
        (patch.key.name.as_str(), &patch.subresource),
        ("nginx", &None)
    );
    let operations = read(&patch.body);
    let paths: Vec<_> = operations
        .as_array()
        .unwrap()
        .iter()
        .map(|operation| (operation["op"].as_str(), operation["path"].as_str()))
        .collect();
    assert_eq!(
        paths,
        [
            (Some("test"), Some("/metadata/uid")),
            (Some("add"), Some("/metadata/labels")),
            (Some("add"), Some("/metadata/annotations")),
            (Some("replace"), Some("/metadata/ownerReferences")),
            (Some("replace"), Some("/spec")),
        ]
    );
    assert_eq!(operations[0]["value"], "u-deployment");
    assert_eq!(operations[3]["value"][0]["uid"], "u-foo");
    assert_eq!(operations[4]["value"]["replicas"], 3);
    is_synced(event);
}

#[test]
fn what_is_right_is_left_alone() {
    let all = effects(
        foo(three(), json!({ "availableReplicas": 2 })),
        Some(deployment("u-foo", 3, 2)),
    );
    let [event] = &all[..] else { panic!("{all:?}") };
    is_synced(event);
}

#[test]
fn available_replicas_are_copied() {
    let all = effects(
        foo(three(), json!({ "availableReplicas": 0 })),
        Some(deployment("u-foo", 3, 2)),
    );
    let [status, event] = &all[..] else {
        panic!("{all:?}")
    };
    is_status(status, 2);
    is_synced(event);
}

#[test]
fn a_deployment_of_another_owner_is_not_taken() {
    let (outcome, _) = turn(
        Some(foo(three(), json!({}))),
        Some(deployment("u-another", 5, 5)),
    );
    let message = r#"Resource "nginx" already exists and is not managed by Foo"#;
    let [Effect::Event(event)] = &outcome.effects[..] else {
        panic!("{:?}", outcome.effects)
    };
    assert_eq!(event.type_, EventType::Warning);
    assert_eq!(
        (event.reason.as_str(), event.note.as_str()),
        ("ErrResourceExists", message)
    );
    let related = event.related.as_ref().map(|key| key.name.as_str());
    assert_eq!(related, Some("nginx"));
    assert_eq!(outcome.next, Next::Retry(message.into()));
}

#[test]
fn a_missing_name_is_reported_and_not_retried() {
    for spec in [json!({}), json!({ "deploymentName": "", "replicas": 1 })] {
        let (outcome, lines) = turn(Some(foo(spec, json!({}))), None);
        assert_eq!(outcome, Outcome::await_change());
        assert_eq!(lines, ["error: spec.deploymentName is missing"]);
    }
}

#[test]
fn a_foo_that_is_gone_needs_nothing() {
    let (outcome, _) = turn(None, Some(deployment("u-foo", 3, 3)));
    assert_eq!(outcome, Outcome::await_change());
}
