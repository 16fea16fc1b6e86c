//! Bodies that both servers refuse in the same words: values of wrong types, pods of a priority
//! that no class has, containers without an image, and other mistakes that are often made in pods.

use anyhow::{Context, Result, ensure};
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

/// Returns an object of every kind with pods, with these lists of containers: its API, its plural,
/// the path of its pod's spec, and its body.
fn with_pods(lists: &Value) -> Vec<(&'static str, &'static str, &'static str, Value)> {
    let labels = json!({ "app": "x" });
    let template = |policy: &str| {
        let mut spec = lists.clone();
        spec["restartPolicy"] = json!(policy);
        json!({ "metadata": { "labels": labels }, "spec": spec })
    };
    let (always, never) = (template("Always"), template("Never"));
    let job = json!({ "spec": { "template": never } });
    let cron = json!({ "schedule": "0 0 1 1 *", "jobTemplate": job });
    let in_job = "spec.jobTemplate.spec.template.spec";
    let below = "spec.template.spec";
    let controller = json!({ "selector": labels, "template": always });
    let selected = json!({ "selector": { "matchLabels": labels }, "template": always });
    let mut all = vec![
        ("api/v1", "pods", "spec", json!({ "spec": always["spec"] })),
        (
            "api/v1",
            "podtemplates",
            "template.spec",
            json!({ "template": always }),
        ),
        (
            "api/v1",
            "replicationcontrollers",
            below,
            json!({ "spec": controller }),
        ),
        ("apis/batch/v1", "jobs", below, job),
        ("apis/batch/v1", "cronjobs", in_job, json!({ "spec": cron })),
    ];
    for plural in ["deployments", "replicasets", "statefulsets", "daemonsets"] {
        all.push(("apis/apps/v1", plural, below, json!({ "spec": selected })));
    }
    all
}

both_servers!(a_container_needs_an_image_in_every_template);
async fn a_container_needs_an_image_in_every_template(server: &TestServer) -> Result<()> {
    let client = server.client().await?;
    let namespace = server.namespace("images").await?;
    let good = json!({ "name": "good", "image": "i" });
    let none = json!({ "name": "none" });
    let empty = json!({ "name": "empty", "image": "" });
    let init = json!({ "initContainers": [none], "containers": [good] });
    for (lists, place) in [
        (json!({ "containers": [good, none] }), "containers[1]"),
        (json!({ "containers": [empty] }), "containers[0]"),
        (init, "initContainers[0]"),
    ] {
        for (api, plural, at, mut body) in with_pods(&lists) {
            body["metadata"] = json!({ "name": "x" });
            let path = format!("/{api}/namespaces/{namespace}/{plural}");
            let (code, refused) = send(&client, Method::POST, &path, JSON, &body).await?;
            let causes = json!([{
                "reason": "FieldValueRequired",
                "message": "Required value",
                "field": format!("{at}.{place}.image"),
            }]);
            ensure!(
                code == 422 && refused["details"]["causes"] == causes,
                "{plural} {lists}: {code} {refused}"
            );
        }
    }
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let sound = pod("p", &json!({}));
    let (code, made) = send(&client, Method::POST, &pods, JSON, &sound).await?;
    ensure!(code == 201, "{code} {made}");
    let patch = json!({ "spec": { "ephemeralContainers": [none] } });
    let path = format!("{pods}/p/ephemeralcontainers");
    let (code, refused) = send(&client, Method::PATCH, &path, MERGE, &patch).await?;
    let field = &refused["details"]["causes"][0]["field"];
    ensure!(
        code == 422 && field == "spec.ephemeralContainers[0].image",
        "{code} {refused}"
    );
    Ok(())
}

both_servers!(mistakes_in_pods_are_told_in_every_template);
async fn mistakes_in_pods_are_told_in_every_template(server: &TestServer) -> Result<()> {
    let client = server.client().await?;
    let namespace = server.namespace("mistakes").await?;
    let with = |field: &str, value: Value| {
        let mut container = json!({ "name": "c", "image": "i" });
        container[field] = value;
        json!({ "containers": [container] })
    };
    let mounts = |mounts: Value| {
        let mut lists = with("volumeMounts", mounts);
        lists["volumes"] = json!([{ "name": "v" }]);
        lists
    };
    let resources = |requests: Value, limits: Value| {
        with(
            "resources",
            json!({ "requests": requests, "limits": limits }),
        )
    };
    let (c, i) = (
        json!({ "name": "c", "image": "i" }),
        json!({ "name": "i", "image": "i" }),
    );
    let mut probed = i.clone();
    probed["readinessProbe"] = json!({ "exec": { "command": ["x"] } });
    let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    let label = format!(r#"Invalid: Invalid value: "A": {label}"#);
    let port = "Invalid: Invalid value: 70000: must be between 1 and 65535, inclusive";
    for (lists, field, why) in [
        (
            json!({ "containers": [c, c] }),
            "containers[1].name",
            r#"Duplicate: Duplicate value: "c""#,
        ),
        (
            json!({ "containers": [c], "initContainers": [c] }),
            "initContainers[0].name",
            r#"Duplicate: Duplicate value: "c""#,
        ),
        (
            with("name", json!("A")),
            "containers[0].name",
            label.as_str(),
        ),
        (
            with("name", json!("a.b")),
            "containers[0].name",
            r#"Invalid: Invalid value: "a.b": must not contain dots"#,
        ),
        (
            json!({ "containers": [c], "volumes": [{ "name": "v" }, { "name": "v" }] }),
            "volumes[1].name",
            r#"Duplicate: Duplicate value: "v""#,
        ),
        (
            mounts(json!([{ "name": "w", "mountPath": "/a" }])),
            "containers[0].volumeMounts[0].name",
            r#"NotFound: Not found: "w""#,
        ),
        (
            mounts(json!([{ "name": "v", "mountPath": "/a" }, { "name": "v", "mountPath": "/a" }])),
            "containers[0].volumeMounts[1].mountPath",
            r#"Invalid: Invalid value: "/a": must be unique"#,
        ),
        (
            with("ports", json!([{ "containerPort": 70_000 }])),
            "containers[0].ports[0].containerPort",
            port,
        ),
        (
            with(
                "ports",
                json!([{ "name": "a", "containerPort": 1 }, { "name": "a", "containerPort": 2 }]),
            ),
            "containers[0].ports[1].name",
            r#"Duplicate: Duplicate value: "a""#,
        ),
        (
            resources(json!({ "cpu": "1500m" }), json!({ "cpu": "1" })),
            "containers[0].resources.requests",
            r#"Invalid: Invalid value: "1500m": must be less than or equal to cpu limit of 1"#,
        ),
        (
            resources(json!({ "a.b/c": "1" }), json!({ "a.b/c": "2" })),
            "containers[0].resources.requests",
            r#"Invalid: Invalid value: "1": must be equal to a.b/c limit of 2"#,
        ),
        (
            resources(json!({ "a.b/c": "1" }), json!({})),
            "containers[0].resources.limits",
            "Required: Required value: Limit must be set for non overcommitable resources",
        ),
        (
            json!({ "containers": [c], "initContainers": [probed] }),
            "initContainers[0].readinessProbe",
            "Forbidden: Forbidden: may not be set for init containers without restartPolicy=Always",
        ),
    ] {
        let (reason, message) = why.split_once(": ").unwrap_or_default();
        for (api, plural, at, mut body) in with_pods(&lists) {
            body["metadata"] = json!({ "name": "x" });
            let path = format!("/{api}/namespaces/{namespace}/{plural}");
            let (code, refused) = send(&client, Method::POST, &path, JSON, &body).await?;
            let causes = json!([{
                "reason": format!("FieldValue{reason}"),
                "message": message,
                "field": format!("{at}.{field}"),
            }]);
            ensure!(
                code == 422 && refused["details"]["causes"] == causes,
                "{plural} {lists}: {code} {refused}"
            );
        }
    }
    Ok(())
}

both_servers!(jobs_end_and_all_others_go_on);
async fn jobs_end_and_all_others_go_on(server: &TestServer) -> Result<()> {
    let client = server.client().await?;
    let namespace = server.namespace("restarts").await?;
    let lists = json!({ "containers": [{ "name": "c", "image": "i" }] });
    for (api, plural, at, mut body) in with_pods(&lists) {
        let ends = plural.ends_with("jobs");
        let (wrong, reason, message) = match ends {
            true => (
                Value::Null,
                "FieldValueRequired",
                r#"Required value: valid values: "OnFailure", "Never""#,
            ),
            false => (
                json!("Never"),
                "FieldValueNotSupported",
                r#"Unsupported value: "Never": supported values: "Always""#,
            ),
        };
        let spec = body.pointer_mut(&format!("/{}", at.replace('.', "/")));
        spec.context("pods")?["restartPolicy"] = wrong;
        body["metadata"] = json!({ "name": "x" });
        let path = format!("/{api}/namespaces/{namespace}/{plural}?dryRun=All");
        let (code, answer) = send(&client, Method::POST, &path, JSON, &body).await?;
        if plural.starts_with("pod") {
            ensure!(code == 201, "{plural}: {code} {answer}");
            continue;
        }
        let field = format!("{at}.restartPolicy");
        let causes = json!([{ "reason": reason, "message": message, "field": field }]);
        ensure!(
            code == 422 && answer["details"]["causes"] == causes,
            "{plural}: {code} {answer}"
        );
    }
    Ok(())
}
