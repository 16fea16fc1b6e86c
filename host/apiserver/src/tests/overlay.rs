//! Tests of the overlay: an object that was put in is written as in its own cluster, and an object
//! that is missing is not taken for a deleted one.

use bytes::Bytes;

use super::*;
use crate::overlay::{Changed, Overlay};

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

async fn send(
    overlay: &Overlay,
    method: &str,
    path: &str,
    media: &str,
    body: &Value,
) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path);
    let request = request.header(CONTENT_TYPE, media);
    let body = Bytes::from(body.to_string());
    let answer = overlay.answer(request.body(body).unwrap()).await;
    let body = serde_json::from_slice(answer.body()).unwrap_or_default();
    (answer.status().as_u16(), body)
}

/// Returns a ConfigMap of a real cluster, with these owners.
fn brought(name: &str, owners: &[&str]) -> Value {
    let owner =
        |uid: &&str| json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": uid, "uid": uid });
    let owners: Vec<Value> = owners.iter().map(owner).collect();
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name, "namespace": "default", "uid": name, "resourceVersion": "700",
            "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": owners,
        },
        "data": { "x": "1" },
    })
}

fn namespace() -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "default", "uid": "n", "resourceVersion": "5" } })
}

fn has(overlay: &Overlay, name: &str) -> bool {
    let kind = ("", "v1", "ConfigMap");
    overlay.object(kind, ("default", name)).is_some()
}

#[tokio::test]
async fn a_write_changes_what_was_brought_in_and_tells_of_it() {
    let overlay = Overlay::default();
    assert!(overlay.bring(namespace()) && overlay.bring(brought("a", &[])));
    assert!(!overlay.serves("x.io", "v1", "Foo") && overlay.serves("", "v1", "ConfigMap"));
    assert!(!overlay.bring(json!({ "apiVersion": "x.io/v1", "kind": "Foo", "metadata": {} })));
    assert!(overlay.changed().is_empty(), "nothing was written");
    let patch = json!({ "data": { "x": "2" } });
    let path = format!("{CMS}/a");
    let (code, answer) = send(&overlay, "PATCH", &path, MERGE, &patch).await;
    assert_eq!(
        (code, &answer["metadata"]["resourceVersion"]),
        (200, &json!("701"))
    );
    let (code, _) = send(&overlay, "POST", CMS, JSON, &cm("b", "1")).await;
    assert_eq!(code, 201);
    let other = "/api/v1/namespaces/other/configmaps";
    let (code, _) = send(&overlay, "POST", other, JSON, &cm("b", "1")).await;
    assert_eq!(code, 404, "there is no such namespace");
    let changed = |name: &str| Changed {
        group: String::new(),
        kind: "ConfigMap".into(),
        namespace: "default".into(),
        name: name.into(),
    };
    assert_eq!(overlay.changed(), [changed("a"), changed("b")]);
    assert!(overlay.changed().is_empty(), "each is told once");
    let found = overlay
        .object(("", "v1", "ConfigMap"), ("default", "a"))
        .unwrap();
    assert_eq!(found["data"]["x"], "2");
}

#[tokio::test]
async fn only_a_deletion_here_leaves_an_object_without_an_owner() {
    let overlay = Overlay::default();
    overlay.bring(namespace());
    for (name, owners) in [
        ("child", &["a"][..]),
        ("both", &["a", "elsewhere"]),
        ("others", &["elsewhere"]),
        ("a", &[]),
    ] {
        assert!(overlay.bring(brought(name, owners)));
    }
    while overlay.collect() {}
    assert!(overlay.changed().is_empty(), "owners elsewhere exist");
    let path = format!("{CMS}/a");
    assert_eq!(
        send(&overlay, "DELETE", &path, JSON, &json!({})).await.0,
        200
    );
    while overlay.collect() {}
    assert!(!has(&overlay, "a") && !has(&overlay, "child"));
    assert!(has(&overlay, "both") && has(&overlay, "others"));
    let names: Vec<String> = overlay.changed().into_iter().map(|of| of.name).collect();
    assert_eq!(names, ["a", "both", "child"]);
}

#[tokio::test]
async fn a_custom_kind_keeps_the_owners_of_its_fields() {
    let cluster = Cluster::with_vms().await;
    let path = format!("{VMS}/x");
    cluster.post(VMS, &vm("x")).await.ok();
    let (definition, object) = (
        cluster
            .get(&format!("{CRDS}/virtualmachines.cloud.waibizi.com"))
            .await
            .ok(),
        cluster.get(&path).await.ok(),
    );
    let overlay = Overlay::default();
    assert!(!overlay.bring(object.clone()), "the kind is not known yet");
    overlay.define(definition);
    assert!(overlay.bring(object.clone()));
    let (kind, name) = (
        ("cloud.waibizi.com", "v1", "VirtualMachine"),
        ("default", "x"),
    );
    let untouched = overlay.untouched(kind, name).unwrap();
    assert_eq!(untouched["spec"], object["spec"]);
    let mut applied = vm("x");
    applied["spec"]["memory"] = json!(1);
    let apply = format!("{path}?fieldManager=other&force=false");
    let (code, answer) = send(&overlay, "PATCH", &apply, APPLY, &applied).await;
    assert_eq!(
        (code, &answer["reason"]),
        (409, &json!("Conflict")),
        "{answer}"
    );
    let forced = apply.replace("false", "true");
    assert_eq!(
        send(&overlay, "PATCH", &forced, APPLY, &applied).await.0,
        200
    );
    assert_eq!(overlay.object(kind, name).unwrap()["spec"]["memory"], 1);
    let there = cluster.get(&path).await.ok();
    assert_eq!(there["spec"]["memory"], 4096, "the cluster is as it was");
}

#[tokio::test]
async fn what_another_server_has_accepted_is_forgiven() {
    let cluster = Cluster::with_vms().await;
    let path = format!("{CRDS}/virtualmachines.cloud.waibizi.com");
    let overlay = Overlay::default();
    overlay.define(cluster.get(&path).await.ok());
    let mut object = vm("x");
    object["metadata"] =
        json!({ "name": "x", "namespace": "default", "uid": "u", "resourceVersion": "9" });
    object["spec"]["memory"] = json!("plenty");
    assert!(overlay.bring(object));
    let path = format!("{VMS}/x");
    let good = json!({ "spec": { "status": "complete" } });
    let (code, answer) = send(&overlay, "PATCH", &path, MERGE, &good).await;
    assert_eq!(code, 200, "{answer}");
    let bad = json!({ "spec": { "replicas": "two" } });
    let (code, answer) = send(&overlay, "PATCH", &path, MERGE, &bad).await;
    assert_eq!(code, 422, "{answer}");
}

#[tokio::test]
async fn what_the_cluster_accepted_may_stay_in_what_is_written() {
    let overlay = Overlay::default();
    let mut map = brought("a", &[]);
    map["data"]["a b"] = json!("1");
    let mut pod = brought("p", &[]);
    pod["kind"] = json!("Pod");
    pod.as_object_mut().unwrap().remove("data");
    let variables = json!([{ "name": "a=b" }]);
    let container = json!({ "name": "c", "image": "i", "env": variables });
    pod["spec"] = json!({ "containers": [container], "nodeSelector": { "a": "b" } });
    assert!(overlay.bring(namespace()) && overlay.bring(map) && overlay.bring(pod));
    let other =
        json!({ "spec": { "containers": [{ "name": "c", "image": "j", "env": variables }] } });
    let moved = json!({ "spec": { "nodeSelector": { "a": "c" } } });
    for (plural, patch, expected) in [
        ("configmaps/a", json!({ "data": { "x": "2" } }), 200),
        ("configmaps/a", json!({ "data": { "c d": "2" } }), 422),
        ("pods/p", other, 200),
        ("pods/p", moved, 422),
    ] {
        let path = format!("/api/v1/namespaces/default/{plural}");
        let (code, answer) = send(&overlay, "PATCH", &path, MERGE, &patch).await;
        assert_eq!(code, expected, "{answer}");
    }
}
