//! CustomResourceDefinitions.

use serde_json::json;

use super::*;
use crate::call::{Call, Door};
use crate::questions::Questions;
use crate::request::Options;
use crate::state::Inner;
use crate::write;

#[tokio::test]
async fn a_write_that_outlives_its_definition_stores_nothing() {
    let c = Cluster::with_vms().await;
    let find = |inner: &Inner| {
        let (group, plural) = ("cloud.waibizi.com", "virtualmachines");
        inner.registry.find(group, "v1", plural)
    };
    let target = c.state.read(find).unwrap();
    let path = format!("{CRDS}/virtualmachines.cloud.waibizi.com");
    c.delete(&path, &json!({})).await.ok();
    // What a request does that asked webhooks in the meantime.
    let (options, questions) = (Options::default(), Questions::default());
    let call = Call {
        target: &target,
        namespace: "default",
        name: "",
        door: Door::Main,
        part: "",
        options: &options,
        manager: "tester",
        now: "2026-01-01T00:00:00Z",
        is_patch: false,
        duplicates: &[],
        body: None,
        questions: &questions,
    };
    let create = |inner: &mut Inner| write::create(inner, &call, vm("late"), false);
    assert_eq!(c.state.write(create).unwrap_err().code, 404);
    // The same name of another definition is another kind.
    c.post(CRDS, &definition()).await.ok();
    let create = |inner: &mut Inner| write::create(inner, &call, vm("late"), false);
    assert_eq!(c.state.write(create).unwrap_err().code, 404);
    assert_eq!(c.get(VMS).await.ok()["items"], json!([]));
}

#[tokio::test]
async fn a_definition_is_established_and_served() {
    let c = Cluster::new();
    c.get(VMS).await.refused(404, "NotFound", "");
    let made = c.post(CRDS, &definition()).await.ok();
    assert_eq!(made["spec"]["names"]["singular"], "virtualmachine");
    assert_eq!(made["spec"]["names"]["listKind"], "VirtualMachineList");
    let path = format!("{CRDS}/virtualmachines.cloud.waibizi.com");
    let live = c.get(&path).await.ok();
    let conditions = live["status"]["conditions"].as_array().unwrap();
    let types: Vec<_> = conditions
        .iter()
        .map(|c| (c["type"].as_str().unwrap(), c["status"].as_str().unwrap()))
        .collect();
    assert_eq!(types, [("NamesAccepted", "True"), ("Established", "True")]);
    assert_eq!(live["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(live["status"]["acceptedNames"]["kind"], "VirtualMachine");
    assert_eq!(c.get(VMS).await.ok()["items"], json!([]));
    let resources = c.get("/apis/cloud.waibizi.com/v1").await.ok();
    assert_eq!(resources["resources"][0]["shortNames"], json!(["vm"]));
    // Without the subresource, the path does not exist.
    c.post(VMS, &vm("x")).await.ok();
    c.get(&format!("{VMS}/x/status"))
        .await
        .refused(404, "NotFound", "");
    c.get(&format!("{VMS}/x/scale"))
        .await
        .refused(404, "NotFound", "");
    c.post(VMS, &json!({ "metadata": { "name": "y" } }))
        .await
        .refused(400, "BadRequest", "is missing in");
    let mut wrong = vm("y");
    wrong["apiVersion"] = json!("cloud.waibizi.com/v2");
    c.post(VMS, &wrong)
        .await
        .refused(400, "BadRequest", "does not match the expected API version");
}

#[tokio::test]
async fn bad_definitions_are_refused_with_the_field_at_fault() {
    let c = Cluster::new();
    let bad = async |change: fn(&mut Value), field: &str| {
        let mut new = definition();
        change(&mut new);
        let answer = c.post(CRDS, &new).await;
        assert_eq!(answer.code, 422, "{field}: {}", answer.text);
        let causes = answer.body["details"]["causes"].as_array().unwrap();
        assert!(
            causes.iter().any(|c| c["field"] == field),
            "{field}: {causes:?}"
        );
    };
    bad(|d| d["metadata"]["name"] = json!("other"), "metadata.name").await;
    bad(|d| d["spec"]["scope"] = json!("World"), "spec.scope").await;
    bad(|d| d["spec"]["versions"] = json!([]), "spec.versions").await;
    bad(
        |d| d["spec"]["versions"][0]["storage"] = json!(false),
        "spec.versions",
    )
    .await;
    bad(
        |d| d["spec"]["versions"][0]["schema"] = json!({}),
        "spec.versions[0].schema.openAPIV3Schema",
    )
    .await;
    bad(
        |d| d["spec"]["conversion"] = json!({ "strategy": "Webhook" }),
        "spec.conversion.webhookClientConfig",
    )
    .await;
    bad(
        |d| d["spec"]["conversion"] = json!({ "strategy": "Other" }),
        "spec.conversion.strategy",
    )
    .await;
    bad(
        |d| d["spec"]["versions"][0]["additionalPrinterColumns"][0]["type"] = json!("colour"),
        "spec.additionalPrinterColumns[0].type",
    )
    .await;
    bad(
        |d| {
            let schema = &mut d["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            schema["properties"]["spec"] = json!({ "properties": {} });
        },
        "spec.validation.openAPIV3Schema.properties[spec].type",
    )
    .await;
}

#[tokio::test]
async fn status_has_a_door_of_its_own() {
    let c = Cluster::new();
    c.post(CRDS, &definition_with_subresources()).await.ok();
    let mut new = vm("x");
    new["status"] = json!({ "phase": "Early" });
    let made = c.post(VMS, &new).await.ok();
    assert!(made.get("status").is_none());
    let path = format!("{VMS}/x");
    let patched = c
        .merge(&path, &json!({ "status": { "phase": "No" } }))
        .await
        .ok();
    assert_eq!(patched, made);
    let up = json!({ "status": { "phase": "Up" }, "spec": { "memory": 1 } });
    let status = c.merge(&format!("{path}/status"), &up).await.ok();
    assert_eq!(
        (&status["status"]["phase"], &status["spec"]["memory"]),
        (&json!("Up"), &json!(4096))
    );
    assert_eq!(status["metadata"]["generation"], 1);
    let mut both = status.clone();
    both["status"]["phase"] = json!("Down");
    both["spec"]["memory"] = json!(7);
    let main = c.put(&path, &both).await.ok();
    assert_eq!(
        (&main["status"]["phase"], &main["metadata"]["generation"]),
        (&json!("Up"), &json!(2))
    );
    c.put(&format!("{path}/status"), &both)
        .await
        .refused(409, "Conflict", "modified");
    assert_eq!(c.get(&format!("{path}/status")).await.ok(), main);
    c.send("DELETE", &format!("{path}/status"), &[], "")
        .await
        .refused(405, "MethodNotAllowed", "");
}

#[tokio::test]
async fn scale_is_one_number() {
    let c = Cluster::new();
    c.post(CRDS, &definition_with_subresources()).await.ok();
    let mut new = vm("x");
    new["spec"]["replicas"] = json!(1);
    c.post(VMS, &new).await.ok();
    let path = format!("{VMS}/x/scale");
    let scale = c.get(&path).await.ok();
    assert_eq!(
        (&scale["kind"], &scale["apiVersion"]),
        (&json!("Scale"), &json!("autoscaling/v1"))
    );
    let done = c
        .merge(&path, &json!({ "spec": { "replicas": 3 } }))
        .await
        .ok();
    assert_eq!(done["spec"]["replicas"], 3);
    let live = c.get(&format!("{VMS}/x")).await.ok();
    let noted = live["metadata"]["managedFields"].as_array().unwrap();
    assert!(noted.iter().any(|entry| entry["subresource"] == "scale"));
    let mut put = c.get(&path).await.ok();
    put["spec"]["replicas"] = json!(5);
    c.send("PUT", &path, &[], &put.to_string()).await.ok();
    assert_eq!(c.get(&format!("{VMS}/x")).await.ok()["spec"]["replicas"], 5);
    c.send("PUT", &path, &[], &put.to_string())
        .await
        .refused(409, "Conflict", "");
    c.merge(&path, &json!({ "spec": { "replicas": -1 } }))
        .await
        .refused(422, "Invalid", "spec.replicas");
}

#[tokio::test]
async fn versions_share_one_storage() {
    let c = Cluster::new();
    let mut new = definition();
    let mut second = new["spec"]["versions"][0].clone();
    second["name"] = json!("v1beta1");
    second["storage"] = json!(false);
    new["spec"]["versions"].as_array_mut().unwrap().push(second);
    c.post(CRDS, &new).await.ok();
    let made = c.post(VMS, &vm("x")).await.ok();
    let old = VMS.replace("/v1/", "/v1beta1/");
    let seen = c.get(&format!("{old}/x")).await.ok();
    assert_eq!(seen["apiVersion"], "cloud.waibizi.com/v1beta1");
    assert_eq!(seen["metadata"]["uid"], made["metadata"]["uid"]);
    let mut changed = seen.clone();
    changed["spec"]["memory"] = json!(1);
    c.put(&format!("{old}/x"), &changed).await.ok();
    let stored = c.get(&format!("{VMS}/x")).await.ok();
    assert_eq!(
        (&stored["apiVersion"], &stored["spec"]["memory"]),
        (&json!("cloud.waibizi.com/v1"), &json!(1))
    );
    let group = c.get("/apis/cloud.waibizi.com").await.ok();
    assert_eq!(group["preferredVersion"]["version"], "v1");
}

#[tokio::test]
async fn a_changed_schema_is_followed() {
    let c = Cluster::with_vms().await;
    c.post(VMS, &vm("x")).await.ok();
    let path = format!("{CRDS}/virtualmachines.cloud.waibizi.com");
    let patch = json!([{
        "op": "add",
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/zone",
        "value": { "type": "string", "default": "here" },
    }]);
    let done = c.patch(&path, "json-patch", &patch).await.ok();
    assert_eq!(done["metadata"]["generation"], 2);
    let seen = c.get(&format!("{VMS}/x")).await.ok();
    assert_eq!(seen["spec"]["zone"], "here");
    let scope = json!({ "spec": { "scope": "Cluster" } });
    c.merge(&path, &scope)
        .await
        .refused(422, "Invalid", "spec.scope");
}

#[tokio::test]
async fn a_definition_waits_for_its_objects() {
    let c = Cluster::with_vms().await;
    let mut held = vm("held");
    held["metadata"]["finalizers"] = json!(["a/b"]);
    c.post(VMS, &held).await.ok();
    let path = format!("{CRDS}/virtualmachines.cloud.waibizi.com");
    let going = c.delete(&path, &json!({})).await.ok();
    assert!(going["metadata"]["deletionTimestamp"].is_string());
    c.post(VMS, &vm("late"))
        .await
        .refused(405, "MethodNotAllowed", "terminating");
    c.merge(
        &format!("{VMS}/held"),
        &json!({ "metadata": { "finalizers": null } }),
    )
    .await
    .ok();
    c.get(&path).await.refused(404, "NotFound", "");
    // A definition that another controller's finalizer held is removed too.
    let mut owned = definition();
    owned["metadata"]["finalizers"] = json!(["c/d"]);
    c.post(CRDS, &owned).await.ok();
    c.delete(&path, &json!({})).await.ok();
    let free = json!([{ "op": "remove", "path": "/metadata/finalizers/0" }]);
    c.patch(&path, "json-patch", &free).await.ok();
    c.get(&path).await.refused(404, "NotFound", "");
    // A new definition of the same name starts with no objects.
    c.post(CRDS, &definition()).await.ok();
    assert_eq!(c.get(VMS).await.ok()["items"], json!([]));
}

#[tokio::test]
async fn names_belong_to_the_first() {
    let c = Cluster::with_vms().await;
    let mut other = definition();
    other["metadata"]["name"] = json!("machines.cloud.waibizi.com");
    other["spec"]["names"]["plural"] = json!("machines");
    c.post(CRDS, &other).await.ok();
    let live = c
        .get(&format!("{CRDS}/machines.cloud.waibizi.com"))
        .await
        .ok();
    let refused = &live["status"]["conditions"][0];
    assert_eq!(
        (&refused["type"], &refused["status"]),
        (&json!("NamesAccepted"), &json!("False"))
    );
    c.get("/apis/cloud.waibizi.com/v1/machines")
        .await
        .refused(404, "NotFound", "");
}
