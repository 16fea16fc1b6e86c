//! Bodies that both servers refuse before they look at their meaning: values of wrong types, and
//! pods whose priority nobody defined.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::net::{JSON, MERGE, send};
use vmhost_tests::server::TestServer;

fn pod(name: &str, more: &Value) -> Value {
    let mut spec = json!({ "containers": [{ "name": "c", "image": "i" }] });
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field.as_str()] = value.clone();
    }
    json!({ "metadata": { "name": name }, "spec": spec })
}

both_servers!(values_of_wrong_types_are_bad_requests);
async fn values_of_wrong_types_are_bad_requests(server: &TestServer) -> Result<()> {
    let client = server.client().await?;
    let namespace = server.namespace("types").await?;
    let core = format!("/api/v1/namespaces/{namespace}");
    let apps = format!("/apis/apps/v1/namespaces/{namespace}");
    let named = |field: &str, value: Value| json!({ "metadata": { "name": "x" }, field: value });
    for (kind, collection, body) in [
        (
            "ConfigMap",
            format!("{core}/configmaps"),
            named("data", json!({ "a": 1 })),
        ),
        (
            "ConfigMap",
            format!("{core}/configmaps"),
            named("immutable", json!("yes")),
        ),
        ("Pod", format!("{core}/pods"), named("spec", json!("x"))),
        (
            "Pod",
            format!("{core}/pods"),
            pod("x", &json!({ "containers": { "a": 1 } })),
        ),
        (
            "Pod",
            format!("{core}/pods"),
            pod("x", &json!({ "hostNetwork": "true" })),
        ),
        (
            "Service",
            format!("{core}/services"),
            named("spec", json!({ "ports": [1] })),
        ),
        (
            "Deployment",
            format!("{apps}/deployments"),
            named("spec", json!({ "replicas": "x" })),
        ),
        (
            "Deployment",
            format!("{apps}/deployments"),
            named("spec", json!({ "template": [] })),
        ),
    ] {
        let (code, refused) = send(&client, Method::POST, &collection, JSON, &body).await?;
        let message = refused["message"].as_str().unwrap_or_default();
        let start = format!(
            "{kind} in version \"v1\" cannot be handled as a {kind}: json: cannot unmarshal "
        );
        ensure!(
            (code, &refused["reason"]) == (400, &json!("BadRequest"))
                && message.starts_with(&start),
            "{body}: {code} {refused}"
        );
    }
    let maps = format!("{core}/configmaps");
    let good = named("data", json!({ "a": "1" }));
    let (code, made) = send(&client, Method::POST, &maps, JSON, &good).await?;
    ensure!(code == 201, "{code} {made}");
    let path = format!("{maps}/x");
    let bad = named("data", json!("a"));
    let (code, refused) = send(&client, Method::PUT, &path, JSON, &bad).await?;
    ensure!(code == 400, "{code} {refused}");
    // A patch is refused as what it makes.
    let patch = json!({ "data": { "a": 1 } });
    let (code, refused) = send(&client, Method::PATCH, &path, MERGE, &patch).await?;
    ensure!(
        (code, &refused["reason"]) == (422, &json!("Invalid")),
        "{code} {refused}"
    );
    Ok(())
}

both_servers!(a_pod_needs_a_priority_class_that_exists);
async fn a_pod_needs_a_priority_class_that_exists(server: &TestServer) -> Result<()> {
    let client = server.client().await?;
    let namespace = server.namespace("priority").await?;
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let computed = "must not be provided in pod spec; priority admission controller computed";
    for (spec, why) in [
        (
            json!({ "priorityClassName": "no-such-class" }),
            "no PriorityClass with name no-such-class was found".to_owned(),
        ),
        (
            json!({ "priority": 5 }),
            format!(
                "the integer value of priority (5) {computed} 0 from the given PriorityClass name"
            ),
        ),
        (
            json!({ "priorityClassName": "system-node-critical", "priority": 5 }),
            format!(
                "the integer value of priority (5) {computed} 2000001000 from the given PriorityClass name"
            ),
        ),
    ] {
        let (code, refused) = send(&client, Method::POST, &pods, JSON, &pod("p", &spec)).await?;
        let message = format!("pods \"p\" is forbidden: {why}");
        ensure!(
            code == 403 && refused["reason"] == "Forbidden" && refused["message"] == message,
            "{code} {refused}"
        );
    }
    let known = json!({ "priorityClassName": "system-node-critical", "priority": 2_000_001_000 });
    let (code, made) = send(&client, Method::POST, &pods, JSON, &pod("p", &known)).await?;
    ensure!(
        code == 201 && made["spec"]["priority"] == 2_000_001_000,
        "{code} {made}"
    );
    Ok(())
}
