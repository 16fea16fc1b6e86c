//! Patches of all kinds.

use serde_json::json;

use super::*;

#[tokio::test]
async fn merge_and_json_patches() {
    let c = Cluster::with_vms().await;
    let path = format!("{VMS}/x");
    let made = c.post(VMS, &vm("x")).await.ok();
    let done = c
        .merge(&path, &json!({ "spec": { "status": "complete" } }))
        .await
        .ok();
    assert_eq!(
        (&done["spec"]["status"], &done["metadata"]["generation"]),
        (&json!("complete"), &json!(2))
    );
    let test = |value| {
        json!([
            { "op": "test", "path": "/spec/status", "value": value },
            { "op": "replace", "path": "/spec/memory", "value": 1 },
        ])
    };
    c.patch(&path, "json-patch", &test("creating"))
        .await
        .refused(422, "Invalid", "");
    assert_eq!(
        c.patch(&path, "json-patch", &test("complete")).await.ok()["spec"]["memory"],
        1
    );
    let missing = json!([{ "op": "replace", "path": "/spec/none", "value": 1 }]);
    c.patch(&path, "json-patch", &missing)
        .await
        .refused(422, "Invalid", "");
    c.patch(&path, "json-patch", &json!({}))
        .await
        .refused(400, "BadRequest", "");
    c.merge(&path, &json!([]))
        .await
        .refused(400, "BadRequest", "");
    c.merge(&format!("{VMS}/none"), &json!({}))
        .await
        .refused(404, "NotFound", "");
    c.patch(&path, "strategic-merge-patch", &json!({}))
        .await
        .refused(415, "UnsupportedMediaType", "merge-patch");
    c.patch(&path, "x-patch", &json!({}))
        .await
        .refused(415, "UnsupportedMediaType", "");
    // The version and uid in a patch are preconditions.
    let old =
        json!({ "metadata": { "resourceVersion": version_of(&made) }, "spec": { "memory": 2 } });
    c.merge(&path, &old)
        .await
        .refused(409, "Conflict", "the object has been modified");
    c.merge(&path, &json!({ "metadata": { "uid": "u" } }))
        .await
        .refused(
            422,
            "Invalid",
            "metadata.uid: Invalid value: \"u\": field is immutable",
        );
    c.merge(&path, &json!({ "metadata": { "name": "y" } }))
        .await
        .refused(400, "BadRequest", "does not match");
    let free = json!({ "metadata": { "resourceVersion": null }, "spec": { "memory": 3 } });
    assert_eq!(c.merge(&path, &free).await.ok()["spec"]["memory"], 3);
    let dry = c
        .merge(
            &format!("{path}?dryRun=All"),
            &json!({ "spec": { "memory": 4 } }),
        )
        .await
        .ok();
    assert_eq!(dry["spec"]["memory"], 4);
    assert_eq!(c.get(&path).await.ok()["spec"]["memory"], 3);
}

#[tokio::test]
async fn a_json_patch_does_not_explode() {
    let c = Cluster::new();
    c.post(CMS, &cm("a", "1")).await.ok();
    let path = format!("{CMS}/a");
    let mut copies = vec![json!({ "op": "add", "path": "/data/b", "value": "x".repeat(1 << 18) })];
    for n in 0..20 {
        copies.push(json!({ "op": "copy", "from": "/data/b", "path": format!("/data/c{n}") }));
    }
    c.patch(&path, "json-patch", &json!(copies)).await.refused(
        422,
        "Invalid",
        "the server rejected our request",
    );
    // Each copy is one level deeper than its source.
    let deeper = vec![json!({ "op": "copy", "from": "", "path": "/x" }); 150];
    let deeper = c.patch(&path, "json-patch", &json!(deeper)).await;
    assert_eq!(deeper.code, 422, "{}", deeper.text);
    let test = json!({ "op": "test", "path": "/data/a", "value": "1" });
    let many = c
        .patch(&path, "json-patch", &json!(vec![test; 10_001]))
        .await;
    many.refused(413, "RequestEntityTooLarge", "got 10001");
}

#[tokio::test]
async fn built_in_kinds_take_strategic_patches() {
    let c = Cluster::new();
    c.post(CMS, &cm("one", "1")).await.ok();
    let patch = json!({ "data": { "a": null, "b": "2" }, "metadata": { "finalizers": ["a/b"] } });
    let path = format!("{CMS}/one");
    let done = c.patch(&path, "strategic-merge-patch", &patch).await.ok();
    assert_eq!(done["data"], json!({ "b": "2" }));
    assert_eq!(done["metadata"]["finalizers"], json!(["a/b"]));
}

#[tokio::test]
async fn unknown_fields_are_refused_told_or_dropped() {
    let c = Cluster::with_vms().await;
    let mut new = vm("x");
    new["spec"]["color"] = json!("red");
    let strict = c.post(&format!("{VMS}?fieldValidation=Strict"), &new).await;
    strict.refused(
        400,
        "BadRequest",
        "strict decoding error: unknown field \"spec.color\"",
    );
    let warned = c.post(VMS, &new).await;
    assert_eq!(
        warned.headers["warning"],
        "299 - \"unknown field \\\"spec.color\\\"\""
    );
    assert!(warned.ok()["spec"].get("color").is_none());
    let patch = json!({ "spec": { "color": "red" } });
    let path = format!("{VMS}/x");
    let strict = c
        .merge(&format!("{path}?fieldValidation=Strict"), &patch)
        .await;
    strict.refused(
        422,
        "Invalid",
        "strict decoding error: unknown field \"spec.color\"",
    );
    let ignored = c
        .merge(&format!("{path}?fieldValidation=Ignore"), &patch)
        .await;
    assert!(ignored.headers.get("warning").is_none());
    let bad = c
        .merge(&path, &json!({ "spec": { "memory": "much" } }))
        .await;
    bad.refused(422, "Invalid", "spec.memory");
    assert_eq!(bad.body["details"]["causes"][0]["field"], "spec.memory");
    assert_eq!(bad.body["details"]["kind"], "VirtualMachine");
}

#[tokio::test]
async fn who_wrote_what_is_kept() {
    let c = Cluster::with_vms().await;
    let made = c
        .post(&format!("{VMS}?fieldManager=one"), &vm("x"))
        .await
        .ok();
    let managers = |object: &Value| {
        let entries = object["metadata"]["managedFields"].as_array().unwrap();
        entries
            .iter()
            .map(|e| e["manager"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(managers(&made), ["one"]);
    let path = format!("{VMS}/x");
    let changed = c
        .merge(&path, &json!({ "spec": { "memory": 1 } }))
        .await
        .ok();
    assert_eq!(managers(&changed), ["one", "tester"]);
    let mut applied = vm("x");
    applied["spec"] = json!({ "status": "creating", "memory": 1 });
    let apply =
        async |query: &str, body: &Value| c.patch(&format!("{path}?{query}"), "apply", body).await;
    apply("", &applied)
        .await
        .refused(422, "Invalid", "is required for apply patch");
    let done = apply("fieldManager=two", &applied).await.ok();
    assert!(managers(&done).contains(&"two".to_owned()));
    applied["spec"]["memory"] = json!(2);
    let conflict = apply("fieldManager=two", &applied).await;
    conflict.refused(409, "Conflict", "conflict with \"tester\"");
    assert_eq!(
        conflict.body["details"]["causes"][0]["reason"],
        "FieldManagerConflict"
    );
    assert_eq!(
        conflict.body["details"]["causes"][0]["field"],
        ".spec.memory"
    );
    assert_eq!(
        apply("fieldManager=two&force=true", &applied).await.ok()["spec"]["memory"],
        2
    );
    let again = apply("fieldManager=two&force=true", &applied).await.ok();
    assert_eq!(c.get(&path).await.ok(), again);
    applied["spec"] = json!({ "color": "red" });
    apply("fieldManager=two&fieldValidation=Ignore", &applied)
        .await
        .refused(500, "", "not declared");
    applied = json!({ "apiVersion": "cloud.waibizi.com/v1", "kind": "VirtualMachine",
        "metadata": { "managedFields": [{}] } });
    apply("fieldManager=two", &applied).await.refused(
        400,
        "BadRequest",
        "metadata.managedFields must be nil",
    );
}

#[tokio::test]
async fn an_apply_creates_unless_it_names_a_uid() {
    let c = Cluster::with_vms().await;
    let path = format!("{VMS}/new?fieldManager=one");
    let mut new = vm("new");
    new["metadata"]["uid"] = json!("u");
    let refused = c.patch(&path, "apply", &new).await;
    refused.refused(
        409,
        "Conflict",
        "uid mismatch: the provided object specified uid u, and no existing object was found",
    );
    let made = c.patch(&path, "apply", &vm("new")).await;
    assert_eq!(
        (made.code, &made.body["metadata"]["generation"]),
        (201, &json!(1))
    );
    assert_eq!(
        made.body["metadata"]["managedFields"][0]["operation"],
        "Apply"
    );
    assert_eq!(made.body["spec"]["size"], "small");
    // A second apply without changes writes nothing.
    assert_eq!(c.patch(&path, "apply", &vm("new")).await.ok(), made.body);
    let mut less = vm("new");
    less["spec"] = json!({ "status": "creating" });
    assert!(
        c.patch(&path, "apply", &less).await.ok()["spec"]
            .get("memory")
            .is_none()
    );
}
