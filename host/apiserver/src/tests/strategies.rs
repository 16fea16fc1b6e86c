//! What kinds do in ways of their own: how they are deleted, refuse requests and warn. The words
//! are those of kube-apiserver 1.36.

use serde_json::json;

use super::*;

const PODS: &str = "/api/v1/namespaces/default/pods";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const ENDPOINTS: &str = "/api/v1/namespaces/default/endpoints";

fn job(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "spec": { "template": { "spec": {
        "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i" }],
    } } } })
}

#[tokio::test]
async fn a_deleted_pod_is_marked_first_and_is_the_answer() {
    let c = Cluster::new();
    let pod = json!({
        "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "c", "image": "i" }] },
    });
    let made = c.post(PODS, &pod).await.ok();
    let since = version_of(&made);
    let path = format!("{PODS}?watch=true&resourceVersion={since}");
    let mut watch = c.watch(&path, "*/*").await;
    let path = format!("{PODS}/p");
    let dry = c.delete(&path, &json!({ "dryRun": ["All"] })).await.ok();
    assert_eq!(dry["kind"], "Pod");
    assert_eq!(dry["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(c.get(&path).await.ok(), made);
    // A body takes the place of the query.
    let query = format!("{path}?dryRun=All");
    let gone = c.delete(&query, &json!({})).await.ok();
    assert_eq!(gone["metadata"]["name"], "p");
    for expected in ["MODIFIED", "DELETED"] {
        let event = watch.next().await.unwrap();
        assert_eq!(event["type"], expected);
        assert_eq!(event["object"]["metadata"]["deletionGracePeriodSeconds"], 0);
    }
    c.get(&path)
        .await
        .refused(404, "NotFound", "pods \"p\" not found");
}

#[tokio::test]
async fn a_claim_is_protected_until_it_is_deleted() {
    let c = Cluster::new();
    let claim = json!({ "metadata": { "name": "v", "finalizers": ["a.b/c"] }, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
    } });
    let made = c.post(CLAIMS, &claim).await.ok();
    assert_eq!(
        made["metadata"]["finalizers"],
        json!(["a.b/c", "kubernetes.io/pvc-protection"])
    );
    let path = format!("{CLAIMS}/v");
    let waits = c.delete(&path, &json!({})).await.ok();
    assert_eq!(waits["metadata"]["finalizers"], json!(["a.b/c"]));
    let free = json!({ "metadata": { "finalizers": null } });
    c.merge(&path, &free).await.ok();
    c.get(&path).await.refused(404, "NotFound", "");
}

#[tokio::test]
async fn a_job_leaves_its_pods_unless_a_request_says_otherwise() {
    let c = Cluster::new();
    for name in ["a", "b"] {
        c.post(JOBS, &job(name)).await.ok();
    }
    let left = c.delete(&format!("{JOBS}/a"), &json!({})).await;
    let warning = left.headers["warning"].to_str().unwrap();
    assert!(warning.contains("child pods are preserved"), "{warning}");
    assert_eq!(left.ok()["metadata"]["finalizers"], json!(["orphan"]));
    let said = json!({ "propagationPolicy": "Background" });
    let gone = c.delete(&format!("{JOBS}/b"), &said).await;
    assert!(gone.headers.get("warning").is_none());
    assert_eq!(gone.ok()["status"], "Success");
    let absent = c.send("DELETE", &format!("{JOBS}/b"), &[], "").await;
    assert!(absent.headers.get("warning").is_some());
    absent.refused(404, "NotFound", "");
}

#[tokio::test]
async fn wrong_options_are_named_by_the_method() {
    let c = Cluster::new();
    c.post(CMS, &cm("a", "1")).await.ok();
    let path = format!("{CMS}/a?dryRun=Some");
    let all = format!("{CMS}?dryRun=Some");
    for (kind, refused) in [
        ("CreateOptions", c.post(&all, &cm("b", "1")).await),
        ("UpdateOptions", c.put(&path, &cm("a", "1")).await),
        ("PatchOptions", c.merge(&path, &json!({})).await),
        ("DeleteOptions", c.send("DELETE", &path, &[], "").await),
    ] {
        refused.refused(422, "Invalid", "dryRun");
        assert_eq!(refused.body["details"]["kind"], kind);
    }
    let wrong = json!({ "dryRun": ["Some"] });
    let refused = c.delete(&format!("{CMS}/a"), &wrong).await;
    refused.refused(422, "Invalid", "DeleteOptions.meta.k8s.io \"\" is invalid");
    // A GET has no such option.
    c.get(&path).await.ok();
}

#[tokio::test]
async fn refusals_of_built_in_kinds_have_the_words_of_their_code() {
    let c = Cluster::new();
    let made = c.post(CMS, &cm("a", "1")).await.ok();
    let mut other = made.clone();
    other["metadata"]["uid"] = json!("other");
    let path = format!("{CMS}/a");
    let why = "StorageError: invalid object, Code: 4, Key: /registry/configmaps/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other";
    c.put(&path, &other).await.refused(409, "Conflict", why);
    let endpoints = json!({ "metadata": { "name": "e" } });
    c.post(ENDPOINTS, &endpoints).await.ok();
    let other = json!({ "metadata": { "name": "e", "uid": "other" } });
    c.put(&format!("{ENDPOINTS}/e"), &other).await.refused(
        409,
        "Conflict",
        "Key: /registry/services/endpoints/default/e, ",
    );
    let namespace = json!({ "metadata": { "name": "n" } });
    c.post("/api/v1/namespaces", &namespace).await.ok();
    let other = json!({ "preconditions": { "uid": "other" } });
    let refused = c.delete("/api/v1/namespaces/n", &other).await;
    let why = "fulfilled on namespaces \"n\": Precondition failed: UID in precondition: other";
    refused.refused(409, "Conflict", why);

    let refused = async |collection: &str, why: &str| {
        let path = format!("{collection}?fieldSelector=spec.x%3D1");
        c.get(&path).await.refused(400, "BadRequest", why);
    };
    let why = r#""spec.x" is not a known field selector: only "metadata.name""#;
    refused(CMS, why).await;
    refused(PODS, "field label not supported: spec.x").await;
    refused(JOBS, r#"field label "spec.x" not supported for Job"#).await;

    let mut wrong = cm("b", "1");
    wrong["apiVersion"] = json!("example.com/v9");
    let why = r#"ConfigMap in version "v9" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "example.com/v9""#;
    c.post(CMS, &wrong).await.refused(400, "BadRequest", why);
    wrong["apiVersion"] = json!("apps/v1");
    wrong["kind"] = json!("Deployment");
    let why = "the API version in the data (apps/v1) does not match";
    c.post(CMS, &wrong).await.refused(400, "BadRequest", why);
}

#[tokio::test]
async fn forms_that_no_path_has_are_refused_before_the_kind() {
    let c = Cluster::new();
    let page = c.get_as(ENDPOINTS, "text/html").await;
    page.refused(406, "NotAcceptable", "406: Not Acceptable");
    let text = [(CONTENT_TYPE, "text/plain")];
    let path = format!("{ENDPOINTS}/e");
    let patch = c.send("PATCH", &path, &text, "{}").await;
    patch.refused(415, "UnsupportedMediaType", "415: Unsupported Media Type");
    let posted = c.post(&path, &json!({})).await;
    posted.refused(405, "MethodNotAllowed", "");
    for refused in [page, patch, posted] {
        assert_eq!(refused.body["details"], json!({}));
        assert!(refused.headers.get("warning").is_none());
    }
    // A refusal by the kind has its warning.
    let absent = c.get(&path).await;
    absent.refused(404, "NotFound", "");
    let warning = absent.headers["warning"].to_str().unwrap();
    assert!(warning.contains("v1 Endpoints is deprecated"), "{warning}");
}

#[tokio::test]
async fn refusals_of_custom_kinds_name_the_object() {
    let c = Cluster::with_vms().await;
    c.put(VMS, &vm("x"))
        .await
        .refused(400, "BadRequest", "name must be provided");
    let part = c.get(&format!("{VMS}/x/nothing")).await;
    part.refused(404, "NotFound", "virtualmachines.cloud.waibizi.com \"x\"");
    assert_eq!(part.body["details"]["name"], "x");
    let mut wrong = vm("x");
    wrong["kind"] = json!("Other");
    let refused = c.post(VMS, &wrong).await;
    refused.refused(422, "Invalid", "must be VirtualMachine");
    assert_eq!(refused.body["details"]["name"], "x");
    // A POST does not read the name in the path.
    let made = c.post(&format!("{VMS}/x"), &vm("y")).await.ok();
    assert_eq!(made["metadata"]["name"], "y");
    let path = format!("{VMS}?labelSelector=a%3Db");
    let none = c.send("DELETE", &path, &[], "").await.ok();
    assert_eq!(none["metadata"]["continue"], "");
}

#[tokio::test]
async fn labels_of_a_slice_are_content() {
    let c = Cluster::new();
    let path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let slice = json!({ "metadata": { "name": "s" }, "addressType": "IPv4", "endpoints": [] });
    c.post(path, &slice).await.ok();
    let path = format!("{path}/s");
    let generation = async |metadata: Value| {
        let merged = c.merge(&path, &json!({ "metadata": metadata })).await;
        merged.ok()["metadata"]["generation"].clone()
    };
    assert_eq!(generation(json!({ "annotations": { "a": "b" } })).await, 1);
    assert_eq!(generation(json!({ "labels": { "a": "b" } })).await, 2);
    assert_eq!(generation(json!({ "labels": { "a": "b" } })).await, 2);
}

#[tokio::test]
async fn some_kinds_have_names_of_their_own() {
    let c = Cluster::new();
    let limits = json!({ "spec": { "limits": [{ "type": "Container", "max": { "cpu": "2" } }] } });
    let path = "/api/v1/namespaces/default/limitranges";
    let made = c.post(path, &limits).await.ok();
    assert_eq!(made["metadata"]["name"], made["metadata"]["uid"]);
    let budget = json!({
        "metadata": { "name": "Wrong_Name!" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "a": "b" } } },
    });
    let path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    c.post(path, &budget).await.ok();
    let map = cm("Wrong_Name!", "1");
    c.post(CMS, &map)
        .await
        .refused(422, "Invalid", "metadata.name");
}

#[tokio::test]
async fn the_cells_of_an_event_are_never_empty() {
    let c = Cluster::new();
    let path = "/api/v1/namespaces/default/events";
    let event = json!({
        "metadata": { "name": "e" }, "reason": "Tried", "source": { "component": "c", "host": "h" },
        "involvedObject": { "kind": "Pod", "name": "a", "namespace": "default" },
    });
    c.post(path, &event).await.ok();
    let table = c.get_as(path, TABLE).await.ok();
    let cells = &table["rows"][0]["cells"];
    assert_eq!((&cells[4], &cells[5]), (&json!(""), &json!("c, h")));
    assert_eq!((&cells[6], &cells[8]), (&json!(""), &json!(1)));
}

#[tokio::test]
async fn one_class_gives_its_priority_to_pods_that_name_none() {
    const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let c = Cluster::new();
    let class = |name: &str| json!({ "metadata": { "name": name }, "value": 7, "globalDefault": true, "preemptionPolicy": "Never" });
    let made = c.post(CLASSES, &class("a")).await.ok();
    c.post(CLASSES, &class("b")).await.refused(
        403,
        "Forbidden",
        r#"priorityclasses.scheduling.k8s.io "b" is forbidden: PriorityClass a is already marked as default. Only one default can exist"#,
    );
    // The default itself may be written again.
    c.put(&format!("{CLASSES}/a"), &made).await.ok();
    let pod = |more: Value| {
        let mut spec = json!({ "containers": [{ "name": "c", "image": "i" }] });
        json_patch::merge(&mut spec, &more);
        json!({ "metadata": { "generateName": "p" }, "spec": spec })
    };
    let made = c.post(PODS, &pod(json!({}))).await.ok();
    for (field, value) in [
        ("priorityClassName", json!("a")),
        ("priority", json!(7)),
        ("preemptionPolicy", json!("Never")),
    ] {
        assert_eq!(made["spec"][field], value);
    }
    let other = pod(json!({ "preemptionPolicy": "PreemptLowerPriority" }));
    c.post(PODS, &other).await.refused(
        403,
        "Forbidden",
        "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority admission controller computed Never from the given PriorityClass name",
    );
}
