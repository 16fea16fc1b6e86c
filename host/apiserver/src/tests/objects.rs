//! Create, get, update, delete.

use http::header::{AUTHORIZATION, CONTENT_TYPE};
use serde_json::json;

use super::*;

#[tokio::test]
async fn an_object_is_created_and_read_back() {
    let c = Cluster::new();
    let made = c.post(CMS, &cm("one", "1")).await;
    assert_eq!(made.code, 201);
    assert!(
        made.text
            .starts_with(r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":"#)
    );
    let meta = &made.body["metadata"];
    assert_eq!(meta["namespace"], "default");
    assert!(meta["uid"].as_str().unwrap().len() == 36 && meta["creationTimestamp"].is_string());
    assert!(meta.get("generation").is_none());
    assert_eq!(c.get(&format!("{CMS}/one")).await.ok(), made.body);
    c.post(CMS, &cm("one", "1")).await.refused(
        409,
        "AlreadyExists",
        "configmaps \"one\" already exists",
    );
    c.get(&format!("{CMS}/two"))
        .await
        .refused(404, "NotFound", "configmaps \"two\" not found");
    let dry = c.post(&format!("{CMS}?dryRun=All"), &cm("dry", "1")).await;
    assert_eq!(dry.code, 201);
    assert_eq!(c.get(&format!("{CMS}/dry")).await.code, 404);
}

#[tokio::test]
async fn names_and_places_are_checked() {
    let c = Cluster::new();
    c.post(CMS, &cm("Bad_Name", "1"))
        .await
        .refused(422, "Invalid", "lowercase RFC 1123 subdomain");
    c.post(CMS, &json!({ "metadata": {} })).await.refused(
        422,
        "Invalid",
        "name or generateName is required",
    );
    let made = c
        .post(CMS, &json!({ "metadata": { "generateName": "x-" } }))
        .await
        .ok();
    assert!(made["metadata"]["name"].as_str().unwrap().starts_with("x-"));
    assert_eq!(made["kind"], "ConfigMap");
    let other = "/api/v1/namespaces/none/configmaps";
    c.post(other, &cm("x", "1"))
        .await
        .refused(404, "NotFound", "namespaces \"none\" not found");
    let mut elsewhere = cm("x", "1");
    elsewhere["metadata"]["namespace"] = json!("kube-system");
    c.post(CMS, &elsewhere).await.refused(
        400,
        "BadRequest",
        "namespace of the provided object does not match",
    );
    let mut wrong = cm("x", "1");
    wrong["kind"] = json!("Secret");
    c.post(CMS, &wrong)
        .await
        .refused(400, "BadRequest", "ConfigMap");
    wrong = cm("x", "1");
    wrong["metadata"]["resourceVersion"] = json!("5");
    c.post(CMS, &wrong)
        .await
        .refused(500, "", "resourceVersion should not be set");
    c.put(&format!("{CMS}/y"), &cm("x", "1"))
        .await
        .refused(404, "NotFound", "");
    c.post("/api/v1/configmaps", &cm("x", "1"))
        .await
        .refused(405, "MethodNotAllowed", "");
}

#[tokio::test]
async fn requests_of_unknown_form_are_refused() {
    let c = Cluster::with_vms().await;
    let body = cm("x", "1").to_string();
    let protobuf = [(CONTENT_TYPE, "application/vnd.kubernetes.protobuf")];
    c.send("POST", CMS, &protobuf, &body).await.refused(
        400,
        "BadRequest",
        "protobuf: the prefix is missing",
    );
    let text = [(CONTENT_TYPE, "text/plain")];
    c.send("POST", CMS, &text, &body).await.refused(
        415,
        "UnsupportedMediaType",
        "application/json, application/yaml, application/vnd.kubernetes.protobuf",
    );
    c.send("POST", VMS, &protobuf, &body).await.refused(
        415,
        "UnsupportedMediaType",
        "application/json, application/yaml",
    );
    c.send("POST", CMS, &[], "{")
        .await
        .refused(400, "BadRequest", "");
    c.send("POST", CMS, &[], "[]")
        .await
        .refused(400, "BadRequest", "");
    c.send(
        "POST",
        CMS,
        &[(CONTENT_TYPE, "application/yaml")],
        "metadata: {name: y}",
    )
    .await
    .ok();
    c.send("POST", CMS, &[], &format!("\"{}\"", "x".repeat(4 << 20)))
        .await
        .refused(413, "RequestEntityTooLarge", "");
    c.get_as(CMS, "text/html")
        .await
        .refused(406, "NotAcceptable", "application/json");
    for header in ["", "Bearer wrong", "Basic secret"] {
        let answer = c.send("GET", CMS, &[(AUTHORIZATION, header)], "").await;
        answer.refused(401, "Unauthorized", "Unauthorized");
    }
    c.get("/api/v1/namespaces/default/nothings").await.refused(
        404,
        "NotFound",
        "could not find the requested resource",
    );
    c.get("/apis/nothing/v1").await.refused(404, "NotFound", "");
    c.get("/api/v1/namespaces/default/namespaces")
        .await
        .refused(404, "NotFound", "");
    c.send("POST", &format!("{CMS}/x"), &[], &body)
        .await
        .refused(405, "MethodNotAllowed", "");
    c.post(&format!("{CMS}?dryRun=Some"), &cm("x", "1"))
        .await
        .refused(422, "Invalid", "dryRun");
}

#[tokio::test]
async fn updates_carry_versions() {
    let c = Cluster::with_vms().await;
    let path = format!("{VMS}/x");
    let first = c.post(VMS, &vm("x")).await.ok();
    assert_eq!(first["metadata"]["generation"], 1);
    let mut new = first.clone();
    new["spec"]["memory"] = json!(8192);
    new["metadata"]["creationTimestamp"] = json!("2000-01-01T00:00:00Z");
    new["metadata"]["generation"] = json!(77);
    let second = c.put(&path, &new).await.ok();
    assert_eq!(second["metadata"]["generation"], 2);
    assert_eq!(
        second["metadata"]["creationTimestamp"],
        first["metadata"]["creationTimestamp"]
    );
    let stale = c.put(&path, &new).await;
    stale.refused(
        409,
        "Conflict",
        "Operation cannot be fulfilled on virtualmachines.cloud.waibizi.com \"x\": the object has been modified; please apply your changes to the latest version and try again",
    );
    assert_eq!(stale.body["details"]["name"], "x");
    // Nothing changes, so nothing is written.
    assert_eq!(c.put(&path, &second).await.ok(), second);
    let mut labelled = second.clone();
    labelled["metadata"]["labels"] = json!({ "a": "b" });
    assert_eq!(
        c.put(&path, &labelled).await.ok()["metadata"]["generation"],
        2
    );
    c.put(&path, &vm("x"))
        .await
        .refused(422, "Invalid", "metadata.resourceVersion");
    let mut other = c.get(&path).await.ok();
    other["metadata"]["uid"] = json!("other");
    c.put(&path, &other)
        .await
        .refused(409, "Conflict", "UID in precondition: other");
    let mut deleted = c.get(&path).await.ok();
    deleted["metadata"]["deletionTimestamp"] = json!("2000-01-01T00:00:00Z");
    c.put(&path, &deleted)
        .await
        .refused(422, "Invalid", "field is immutable");
    // A built-in kind accepts an update without a version.
    c.post(CMS, &cm("one", "1")).await.ok();
    assert_eq!(
        c.put(&format!("{CMS}/one"), &cm("one", "2")).await.ok()["data"]["a"],
        "2"
    );
}

#[tokio::test]
async fn deletes_check_preconditions_and_wait_for_finalizers() {
    let c = Cluster::with_vms().await;
    let mut new = vm("x");
    new["metadata"]["finalizers"] = json!(["vmhost.dev/clean"]);
    let made = c.post(VMS, &new).await.ok();
    let path = format!("{VMS}/x");
    let with = |preconditions| json!({ "kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions });
    c.delete(&path, &with(json!({ "uid": "no" })))
        .await
        .refused(409, "Conflict", "the UID in the precondition (no)");
    let answer = c
        .delete(&path, &with(json!({ "resourceVersion": "1" })))
        .await;
    answer.refused(
        409,
        "Conflict",
        "the ResourceVersion in the precondition (1)",
    );
    let uid = made["metadata"]["uid"].clone();
    let marked = c.delete(&path, &with(json!({ "uid": uid }))).await.ok();
    assert_eq!(marked["metadata"]["generation"], 2);
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    // A second delete changes nothing.
    assert_eq!(c.delete(&path, &json!({})).await.ok(), marked);
    let more = json!({ "metadata": { "finalizers": ["vmhost.dev/clean", "vmhost.dev/more"] } });
    c.merge(&path, &more)
        .await
        .refused(422, "Invalid", "no new finalizers can be added");
    c.merge(&path, &json!({ "metadata": { "finalizers": null } }))
        .await
        .ok();
    c.get(&path).await.refused(404, "NotFound", "");
    let made = c.post(VMS, &vm("y")).await.ok();
    let status = c
        .delete(
            &format!("{VMS}/y"),
            &json!({ "propagationPolicy": "Background" }),
        )
        .await
        .ok();
    assert_eq!(status["status"], "Success");
    assert_eq!(
        status["details"],
        json!({ "name": "y", "group": "cloud.waibizi.com", "kind": "virtualmachines", "uid": made["metadata"]["uid"] })
    );
    let bad = c
        .delete(
            &format!("{VMS}/y"),
            &json!({ "propagationPolicy": "Sideways" }),
        )
        .await;
    bad.refused(422, "Invalid", "propagationPolicy");
}

#[tokio::test]
async fn many_are_deleted_at_once() {
    let c = Cluster::new();
    for name in ["a", "b", "c"] {
        let mut new = cm(name, "1");
        new["metadata"]["labels"] = json!({ "keep": if name == "b" { "yes" } else { "no" } });
        c.post(CMS, &new).await.ok();
    }
    let deleted = c
        .delete(&format!("{CMS}?labelSelector=keep%3Dno"), &json!({}))
        .await
        .ok();
    assert_eq!(deleted["items"].as_array().unwrap().len(), 2);
    let left = c.get(CMS).await.ok();
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_namespace_goes_with_what_lies_in_it() {
    let c = Cluster::with_vms().await;
    let made = c
        .post(
            "/api/v1/namespaces",
            &json!({ "metadata": { "name": "n" } }),
        )
        .await
        .ok();
    assert_eq!(made["status"]["phase"], "Active");
    assert_eq!(
        made["metadata"]["labels"]["kubernetes.io/metadata.name"],
        "n"
    );
    let vms = "/apis/cloud.waibizi.com/v1/namespaces/n/virtualmachines";
    let mut held = vm("held");
    held["metadata"]["finalizers"] = json!(["a/b"]);
    c.post(vms, &held).await.ok();
    c.post(vms, &vm("free")).await.ok();
    let going = c.delete("/api/v1/namespaces/n", &json!({})).await.ok();
    assert_eq!(going["status"]["phase"], "Terminating");
    assert_eq!(c.get(&format!("{vms}/free")).await.code, 404);
    let refused = c.post(vms, &vm("late")).await;
    refused.refused(403, "Forbidden", "because it is being terminated");
    assert_eq!(
        refused.body["details"]["causes"][0]["reason"],
        "NamespaceTerminating"
    );
    c.merge(
        &format!("{vms}/held"),
        &json!({ "metadata": { "finalizers": [] } }),
    )
    .await
    .ok();
    c.get("/api/v1/namespaces/n")
        .await
        .refused(404, "NotFound", "namespaces \"n\" not found");
    // A finalizer in the namespace's own metadata holds it too.
    let second = json!({ "metadata": { "name": "m", "finalizers": ["a/b"] } });
    c.post("/api/v1/namespaces", &second).await.ok();
    c.delete("/api/v1/namespaces/m", &json!({})).await.ok();
    let free = json!({ "metadata": { "finalizers": null } });
    c.merge("/api/v1/namespaces/m", &free).await.ok();
    c.get("/api/v1/namespaces/m")
        .await
        .refused(404, "NotFound", "");
    c.delete("/api/v1/namespaces/default", &json!({}))
        .await
        .refused(403, "Forbidden", "may not be deleted");
}

#[tokio::test]
async fn both_groups_of_events_are_one_storage() {
    let c = Cluster::new();
    let new = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": { "name": "e" },
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "vmhost", "reportingInstance": "i",
        "action": "Create", "reason": "Created", "note": "done", "type": "Normal",
        "regarding": { "kind": "VirtualMachine", "name": "x", "namespace": "default", "uid": "u" },
    });
    let made = c
        .post("/apis/events.k8s.io/v1/namespaces/default/events", &new)
        .await
        .ok();
    assert_eq!(made["note"], "done");
    let selector = "fieldSelector=involvedObject.uid%3Du,involvedObject.kind%3DVirtualMachine";
    let list = c
        .get(&format!("/api/v1/namespaces/default/events?{selector}"))
        .await
        .ok();
    let event = &list["items"][0];
    assert_eq!(event["message"], "done");
    assert_eq!(event["involvedObject"]["name"], "x");
    assert_eq!(event["reportingComponent"], "vmhost");
    let one = c.get("/api/v1/namespaces/default/events/e").await.ok();
    assert_eq!(one["apiVersion"], "v1");
    assert_eq!(
        c.get("/apis/events.k8s.io/v1/namespaces/default/events/e")
            .await
            .ok(),
        made
    );
    let path = "/api/v1/namespaces/default/events";
    let table = c.get_as(path, TABLE).await.ok();
    let first: Vec<_> = table["rows"][0]["cells"].as_array().unwrap()[1..4].to_vec();
    assert_eq!(first, ["Normal", "Created", "virtualmachine/x"]);
    c.get("/api/v1/events?fieldSelector=spec.x%3D1")
        .await
        .refused(400, "BadRequest", "field label not supported");
}

#[tokio::test]
async fn kinds_have_the_defaults_of_their_data() {
    let c = Cluster::new();
    let secret = json!({ "metadata": { "name": "s" }, "stringData": { "a": "b" } });
    let made = c
        .post("/api/v1/namespaces/default/secrets", &secret)
        .await
        .ok();
    assert_eq!(
        (&made["type"], &made["data"]["a"]),
        (&json!("Opaque"), &json!("Yg=="))
    );
    assert!(made.get("stringData").is_none());
    let review =
        json!({ "spec": { "resourceAttributes": { "verb": "create", "resource": "pods" } } });
    let answer = c
        .post(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            &review,
        )
        .await;
    assert_eq!(
        (answer.code, &answer.body["status"]["allowed"]),
        (201, &json!(true))
    );
    c.get("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        .await
        .refused(405, "MethodNotAllowed", "");
    // A PUT can create a lease.
    let lease = json!({ "metadata": { "name": "l" }, "spec": { "holderIdentity": "me" } });
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    assert_eq!(c.put(path, &lease).await.code, 201);
    assert_eq!(c.get(path).await.ok()["spec"]["holderIdentity"], "me");
}
