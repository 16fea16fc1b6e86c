//! Who owns which fields after a write to a built-in kind, as kube-apiserver 1.36 records it.

use serde_json::json;

use super::*;

const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const REVISIONS: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";

/// Returns what the writer through a subresource owns.
fn owned(object: &Value, subresource: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let of = |entry: &&Value| entry["subresource"].as_str().unwrap_or_default() == subresource;
    entries.iter().find(of).unwrap()["fieldsV1"].clone()
}

#[tokio::test]
async fn nobody_owns_what_the_server_allocates_or_go_has_from_the_start() {
    let c = Cluster::new();
    let service = json!({ "metadata": { "name": "s" }, "spec": { "ports": [{ "port": 80 }] } });
    let made = c.post(SERVICES, &service).await.ok();
    assert!(made["spec"]["clusterIP"].is_string());
    let port = json!({ ".": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {} });
    assert_eq!(
        owned(&made, ""),
        json!({ "f:spec": {
            "f:internalTrafficPolicy": {},
            "f:ports": { ".": {}, "k:{\"port\":80,\"protocol\":\"TCP\"}": port },
            "f:sessionAffinity": {},
            "f:type": {},
        } })
    );
}

#[tokio::test]
async fn nobody_owns_what_admission_plugins_add_to_a_pod() {
    let c = Cluster::new();
    let pod = json!({
        "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "c", "image": "i" }] },
    });
    let made = c.post(PODS, &pod).await.ok();
    assert_eq!(made["spec"]["priority"], 0);
    assert_eq!(
        made["spec"]["tolerations"].as_array().map(Vec::len),
        Some(2)
    );
    let spec = &owned(&made, "")["f:spec"];
    assert_eq!(spec["f:restartPolicy"], json!({}));
    for field in [".", "f:priority", "f:preemptionPolicy", "f:tolerations"] {
        assert_eq!(spec.get(field), None, "{field}");
    }
    // An update gets them again, so that nothing changes.
    let mut put = made.clone();
    for field in ["priority", "preemptionPolicy", "tolerations"] {
        put["spec"].as_object_mut().unwrap().remove(field);
    }
    assert_eq!(c.put(&format!("{PODS}/p"), &put).await.ok(), made);
    // A write to the status may set labels.
    let labels = json!({ "metadata": { "labels": { "a": "b" } } });
    let labelled = c.merge(&format!("{PODS}/p/status"), &labels).await.ok();
    assert_eq!(
        owned(&labelled, "status"),
        json!({ "f:metadata": { "f:labels": { ".": {}, "f:a": {} } } })
    );
    assert_eq!(labelled["metadata"]["generation"], 1);
}

#[tokio::test]
async fn an_object_of_an_unknown_type_is_owned_whole() {
    let c = Cluster::new();
    let revision =
        json!({ "metadata": { "name": "r" }, "revision": 1, "data": { "a": { "b": 1 } } });
    let made = c.post(REVISIONS, &revision).await.ok();
    assert_eq!(owned(&made, ""), json!({ "f:data": {}, "f:revision": {} }));
}
