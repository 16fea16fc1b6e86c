//! Admission by the API server: both servers call webhooks at the same times with the same reviews,
//! and refuse in the same words. Policies of the cluster, too.

use anyhow::{Context, Result, ensure};
use http::{Method, Request};
use serde_json::{Value, json};
use vmhost_tests::net::JSON;
use vmhost_tests::server::TestServer;
use vmhost_tests::wait::eventually;
use vmhost_tests::webhook::{Reply, Webhook, admitted, patched};
use vmhost_tests::{both_servers, net};

use crate::admission_scene::Scene;

impl Scene {
    async fn create(&self, name: &str) -> Result<(u16, Value)> {
        let map = json!({ "metadata": { "name": name }, "data": { "by": "client" } });
        self.send(Method::POST, &self.maps(), &map).await
    }

    /// Creates a configuration of these webhooks. What they leave out has the usual values.
    async fn register(&mut self, plural: &str, webhooks: Vec<Value>) -> Result<()> {
        let complete = |mut webhook: Value| {
            let usual = json!({
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "namespaceSelector": self.selector(),
                "rules": [rule("", "configmaps", &["CREATE"])],
            });
            if let (Some(webhook), Value::Object(usual)) = (webhook.as_object_mut(), usual) {
                for (field, value) in usual {
                    webhook.entry(field).or_insert(value);
                }
            }
            webhook
        };
        let webhooks: Vec<Value> = webhooks.into_iter().map(complete).collect();
        self.configure(plural, json!({ "webhooks": webhooks }))
            .await?;
        Ok(())
    }

    /// Waits until a webhook is called for new ConfigMaps: a real server learns of a configuration
    /// a moment later.
    async fn until_called(&self, webhook: &Webhook, path: &str) -> Result<()> {
        let probe = format!("{}?dryRun=All", self.maps());
        eventually("the webhook is called", async || {
            let map = json!({ "metadata": { "generateName": "probe-" } });
            self.send(Method::POST, &probe, &map).await?;
            Ok((!webhook.seen(path).is_empty()).then_some(()))
        })
        .await
    }
}

fn rule(group: &str, resource: &str, operations: &[&str]) -> Value {
    json!({ "apiGroups": [group], "apiVersions": ["v1"], "resources": [resource], "operations": operations })
}

/// Returns the reviews of objects with this name.
fn about(webhook: &Webhook, path: &str, name: &str) -> Vec<Value> {
    let mut reviews = webhook.seen(path);
    reviews.retain(|review| review["request"]["name"] == name);
    reviews
}

both_servers!(mutating_webhooks_change_objects_before_validating_ones_see_them);
async fn mutating_webhooks_change_objects_before_validating_ones_see_them(
    server: &TestServer,
) -> Result<()> {
    let mut scene = Scene::of(server, "admission").await?;
    let webhook = Webhook::start(|path, review| {
        let object = &review["request"]["object"];
        match path {
            "/first" => {
                let calls = object["data"]["calls"].as_str().unwrap_or("0");
                let calls = calls.parse::<u32>().unwrap_or(0) + 1;
                let patch =
                    json!([{ "op": "add", "path": "/data/calls", "value": calls.to_string() }]);
                patched(review, &patch)
            }
            "/second" => match object["data"]["second"].is_null() {
                true => patched(
                    review,
                    &json!([{ "op": "add", "path": "/data/second", "value": "yes" }]),
                ),
                false => admitted(review, json!({ "allowed": true })),
            },
            _ => admitted(review, json!({ "allowed": true })),
        }
    })
    .await?;
    let mutating = "mutatingwebhookconfigurations";
    let maps = scene.maps();
    let probe = json!({ "metadata": { "name": "x" }, "data": { "by": "probe" } });
    scene
        .register(
            mutating,
            vec![
                json!({ "name": "first.test.io", "clientConfig": webhook.config("/first"), "reinvocationPolicy": "IfNeeded",
                    "matchConditions": [{ "name": "data", "expression": "has(object.data)" }] }),
                json!({ "name": "second.test.io", "clientConfig": webhook.config("/second"),
                    "matchConditions": [{ "name": "data", "expression": "has(object.data)" }] }),
            ],
        )
        .await?;
    let validating = "validatingwebhookconfigurations";
    scene
        .register(
            validating,
            vec![json!({ "name": "last.test.io", "clientConfig": webhook.config("/last") })],
        )
        .await?;
    eventually("all webhooks are called", async || {
        scene
            .ok(Method::POST, &format!("{maps}?dryRun=All"), &probe)
            .await?;
        let called = ["/first", "/second", "/last"].map(|path| webhook.seen(path).len());
        Ok(called.iter().all(|count| *count > 0).then_some(()))
    })
    .await?;

    let (code, made) = scene.create("made").await?;
    ensure!(code == 201, "{code} {made}");
    ensure!(
        made["data"] == json!({ "by": "client", "calls": "2", "second": "yes" }),
        "the first webhook is called again after the second changed the object: {made}"
    );
    let first = about(&webhook, "/first", "made");
    ensure!(first.len() == 2, "{} calls", first.len());
    let request = first.first().context("no review")?["request"].clone();
    let object = &request["object"];
    ensure!(object["data"] == json!({ "by": "client" }), "{object}");
    ensure!(object["metadata"]["uid"].is_null(), "{object}");
    ensure!(
        object["kind"] == "ConfigMap" && object["apiVersion"] == "v1",
        "{object}"
    );
    let kind = json!({ "group": "", "version": "v1", "kind": "ConfigMap" });
    let resource = json!({ "group": "", "version": "v1", "resource": "configmaps" });
    for (field, expected) in [
        ("kind", kind.clone()),
        ("requestKind", kind),
        ("resource", resource.clone()),
        ("requestResource", resource),
        ("name", json!("made")),
        ("namespace", json!(scene.namespace)),
        ("operation", json!("CREATE")),
        ("oldObject", Value::Null),
        ("dryRun", json!(false)),
        (
            "options",
            json!({ "kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1" }),
        ),
    ] {
        let got = &request[field];
        ensure!(*got == expected, "{field}: {got}, expected {expected}");
    }
    ensure!(request["userInfo"]["username"].is_string(), "{request}");
    let last = about(&webhook, "/last", "made");
    let object = &last.first().context("not validated")?["request"]["object"];
    ensure!(object["data"] == made["data"], "{object}");
    ensure!(
        object["metadata"]["uid"] == made["metadata"]["uid"],
        "{object}"
    );

    let dry = scene
        .ok(
            Method::POST,
            &format!("{maps}?dryRun=All"),
            &json!({ "metadata": { "name": "dry" }, "data": { "by": "client" } }),
        )
        .await?;
    ensure!(dry["data"]["second"] == "yes", "{dry}");
    let review = about(&webhook, "/last", "dry");
    let request = &review.first().context("no dry run")?["request"];
    ensure!(request["dryRun"] == true, "{request}");
    let (code, _) = scene
        .send(Method::GET, &format!("{maps}/dry"), &Value::Null)
        .await?;
    ensure!(code == 404, "a dry run stored an object");
    scene.end().await
}

both_servers!(refusals_and_failures_have_the_same_words);
async fn refusals_and_failures_have_the_same_words(server: &TestServer) -> Result<()> {
    let mut scene = Scene::of(server, "admission").await?;
    let webhook = Webhook::start(|path, review| match path {
        "/deny" => admitted(
            review,
            json!({ "allowed": false, "status": { "code": 403, "reason": "Forbidden", "message": "not this one" } }),
        ),
        "/silent" => admitted(review, json!({ "allowed": false })),
        "/boom" => Reply::Code(500, "boom".to_owned()),
        "/never" => Reply::Never,
        "/other" => admitted(
            review,
            json!({ "allowed": true, "patchType": "JSONPatch", "patch": "W10=" }),
        ),
        "/empty" => Reply::Json(json!({})),
        _ => admitted(review, json!({ "allowed": true })),
    })
    .await?;
    let [closed] = net::free_ports::<1>()?;
    let hook = |name: &str, config: Value, more: Value| {
        let condition = format!("has(object.metadata.name) && object.metadata.name == '{name}'");
        let mut hook = json!({
            "name": format!("{name}.test.io"),
            "clientConfig": config,
            "matchConditions": [{ "name": "name", "expression": condition }],
        });
        if let (Some(hook), Value::Object(more)) = (hook.as_object_mut(), more) {
            hook.extend(more);
        }
        hook
    };
    let at = |path: &str| webhook.config(path);
    let away = json!({ "url": format!("https://127.0.0.1:{closed}/x") });
    let service = json!({ "service": { "namespace": "default", "name": "nowhere", "path": "/x" } });
    let hooks = vec![
        json!({ "name": "any.test.io", "clientConfig": at("/any") }),
        hook("denied", at("/deny"), json!({})),
        hook("silent", at("/silent"), json!({})),
        hook("boom", at("/boom"), json!({})),
        hook("open", at("/boom"), json!({ "failurePolicy": "Ignore" })),
        hook("slow", at("/never"), json!({ "timeoutSeconds": 1 })),
        hook("other", at("/other"), json!({})),
        hook("empty", at("/empty"), json!({})),
        hook("away", away.clone(), json!({})),
        hook("gone", away, json!({ "failurePolicy": "Ignore" })),
        hook("service", service, json!({})),
        hook(
            "unsure",
            at("/any"),
            json!({ "matchConditions": [{ "name": "a", "expression": "object.metadata.name == 'unsure' && object.none.no == 1" }] }),
        ),
    ];
    scene
        .register("validatingwebhookconfigurations", hooks)
        .await?;
    scene.until_called(&webhook, "/any").await?;
    let failed = "Internal error occurred: failed calling webhook";
    for (name, code, message) in [
        (
            "denied",
            403,
            "admission webhook \"denied.test.io\" denied the request: not this one".to_owned(),
        ),
        (
            "silent",
            400,
            "admission webhook \"silent.test.io\" denied the request without explanation".to_owned(),
        ),
        (
            "boom",
            500,
            format!(
                "{failed} \"boom.test.io\": failed to call webhook: an error on the server (\"boom\") has prevented the request from succeeding"
            ),
        ),
        (
            "slow",
            500,
            format!(
                "{failed} \"slow.test.io\": failed to call webhook: Post \"{}?timeout=1s\": context deadline exceeded",
                webhook.url("/never")
            ),
        ),
        (
            "other",
            500,
            format!(
                "{failed} \"other.test.io\": received invalid webhook response: validating webhook may not return response.patch"
            ),
        ),
        (
            "away",
            500,
            format!(
                "{failed} \"away.test.io\": failed to call webhook: Post \"https://127.0.0.1:{closed}/x?timeout=10s\": dial tcp 127.0.0.1:{closed}: connect: connection refused"
            ),
        ),
        (
            "service",
            500,
            format!(
                "{failed} \"service.test.io\": failed to call webhook: Post \"https://nowhere.default.svc:443/x?timeout=10s\": service \"nowhere\" not found"
            ),
        ),
        (
            "unsure",
            403,
            "configmaps \"unsure\" is forbidden: expression 'object.metadata.name == 'unsure' && object.none.no == 1' resulted in error: no such key: none".to_owned(),
        ),
    ] {
        let (got, refusal) = scene.create(name).await?;
        ensure!(
            got == code && refusal["message"] == message,
            "{name}: {got} {refusal}\nexpected {code} {message}"
        );
        ensure!(refusal["kind"] == "Status" && refusal["code"] == code);
    }
    let (code, refusal) = scene.create("empty").await?;
    let message = refusal["message"].as_str().unwrap_or_default();
    ensure!(
        code == 500 && message.starts_with(failed),
        "an answer without a verdict: {code} {refusal}"
    );
    for name in ["open", "gone", "fine"] {
        let (code, answer) = scene.create(name).await?;
        ensure!(code == 201, "{name}: {code} {answer}");
    }
    scene.end().await
}

both_servers!(updates_deletions_and_subresources_are_reviewed);
async fn updates_deletions_and_subresources_are_reviewed(server: &TestServer) -> Result<()> {
    let mut scene = Scene::of(server, "admission").await?;
    let webhook = Webhook::start(|_, review| {
        let request = &review["request"];
        let keep = request["oldObject"]["metadata"]["labels"]["keep"] == "yes";
        let allowed = !(keep && request["operation"] == "DELETE");
        admitted(
            review,
            json!({ "allowed": allowed, "warnings": ["look out"] }),
        )
    })
    .await?;
    let rules = json!([
        rule("", "configmaps", &["CREATE", "UPDATE", "DELETE"]),
        rule("apps", "deployments/*", &["UPDATE"]),
    ]);
    let hook = json!({
        "name": "all.test.io",
        "clientConfig": webhook.config("/all"),
        "rules": rules,
        "objectSelector": { "matchExpressions": [{ "key": "ignored", "operator": "DoesNotExist" }] },
    });
    scene
        .register("validatingwebhookconfigurations", vec![hook])
        .await?;
    scene.until_called(&webhook, "/all").await?;
    let maps = scene.maps();
    scene.create("a").await?;
    let labels = json!({ "metadata": { "labels": { "keep": "yes" } }, "data": { "by": "patch" } });
    let changed = scene
        .ok(Method::PATCH, &format!("{maps}/a"), &labels)
        .await?;
    let reviews = about(&webhook, "/all", "a");
    let request = &reviews.last().context("no review of the update")?["request"];
    ensure!(request["operation"] == "UPDATE", "{request}");
    ensure!(request["options"]["kind"] == "UpdateOptions", "{request}");
    ensure!(request["oldObject"]["data"]["by"] == "client", "{request}");
    ensure!(request["object"]["data"]["by"] == "patch", "{request}");
    ensure!(
        request["oldObject"]["metadata"]["uid"] == changed["metadata"]["uid"],
        "{request}"
    );

    let (code, refusal) = scene
        .send(Method::DELETE, &format!("{maps}/a"), &Value::Null)
        .await?;
    ensure!(code == 400, "{code} {refusal}");
    let reviews = about(&webhook, "/all", "a");
    let request = &reviews.last().context("no review of the deletion")?["request"];
    ensure!(request["operation"] == "DELETE", "{request}");
    ensure!(request["object"].is_null(), "{request}");
    ensure!(request["oldObject"]["metadata"]["name"] == "a", "{request}");
    ensure!(request["options"]["kind"] == "DeleteOptions", "{request}");
    scene
        .ok(Method::GET, &format!("{maps}/a"), &Value::Null)
        .await?;
    // A collection is refused for the object that stays.
    let (code, _) = scene.send(Method::DELETE, &maps, &Value::Null).await?;
    ensure!(code == 400, "{code}");
    let unkept = json!({ "metadata": { "labels": { "keep": "no" } } });
    scene
        .ok(Method::PATCH, &format!("{maps}/a"), &unkept)
        .await?;
    scene
        .ok(Method::DELETE, &format!("{maps}/a"), &Value::Null)
        .await?;

    let ignored = json!({ "metadata": { "name": "i", "labels": { "ignored": "" } } });
    scene.ok(Method::POST, &maps, &ignored).await?;
    ensure!(
        about(&webhook, "/all", "i").is_empty(),
        "the selector was ignored"
    );

    let warned = Request::post(&maps)
        .header("content-type", JSON)
        .body(serde_json::to_vec(&json!({ "metadata": { "name": "w" } }))?)?;
    let answer = scene
        .client
        .send(warned.map(kube::client::Body::from))
        .await?;
    let warnings: Vec<_> = answer.headers().get_all("warning").iter().collect();
    ensure!(warnings == ["299 - \"look out\""], "{warnings:?}");

    let deployments = format!("/apis/apps/v1/namespaces/{}/deployments", scene.namespace);
    let template = json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    let deployment = json!({
        "metadata": { "name": "d" },
        "spec": { "selector": { "matchLabels": { "a": "b" } }, "template": template },
    });
    scene.ok(Method::POST, &deployments, &deployment).await?;
    ensure!(about(&webhook, "/all", "d").is_empty(), "no rule names it");
    let scale = json!({ "spec": { "replicas": 3 } });
    let made = scene
        .ok(Method::PATCH, &format!("{deployments}/d/scale"), &scale)
        .await?;
    ensure!(made["spec"]["replicas"] == 3, "{made}");
    let reviews = about(&webhook, "/all", "d");
    let request = &reviews.last().context("no review of the scale")?["request"];
    ensure!(request["subResource"] == "scale", "{request}");
    ensure!(
        request["kind"] == json!({ "group": "autoscaling", "version": "v1", "kind": "Scale" }),
        "{request}"
    );
    ensure!(
        request["resource"]["resource"] == "deployments",
        "{request}"
    );
    ensure!(request["object"]["spec"]["replicas"] == 3, "{request}");
    ensure!(request["oldObject"]["spec"]["replicas"] == 1, "{request}");
    scene.end().await
}

both_servers!(policies_of_the_cluster_decide);
async fn policies_of_the_cluster_decide(server: &TestServer) -> Result<()> {
    let mut scene = Scene::of(server, "admission").await?;
    let namespace = scene.namespace.clone();
    let limits = json!({ "metadata": { "name": "limits" }, "data": { "most": "3" } });
    scene.ok(Method::POST, &scene.maps(), &limits).await?;
    let policy = format!("{namespace}-0");
    let spec = json!({
        "paramKind": { "apiVersion": "v1", "kind": "ConfigMap" },
        "matchConstraints": { "resourceRules": [rule("", "configmaps", &["CREATE"])] },
        "matchConditions": [{ "name": "not-it", "expression": "object.metadata.name != 'limits'" }],
        "variables": [{ "name": "count", "expression": "has(object.data) ? size(object.data) : 0" }],
        "validations": [
            {
                "expression": "variables.count <= int(params.data.most)",
                "messageExpression": "'at most ' + params.data.most + ' in ' + namespaceObject.metadata.name",
            },
            { "expression": "!object.metadata.name.startsWith('x')", "message": "no x", "reason": "Forbidden" },
            { "expression": "request.operation == 'CREATE'" },
        ],
    });
    scene
        .configure("validatingadmissionpolicies", json!({ "spec": spec }))
        .await?;
    let binding = |action: &str, selector: Value| {
        json!({ "spec": {
            "policyName": policy,
            "paramRef": { "name": "limits", "namespace": namespace, "parameterNotFoundAction": "Deny" },
            "matchResources": { "namespaceSelector": selector },
            "validationActions": [action],
        } })
    };
    let selector = scene.selector();
    scene
        .configure(
            "validatingadmissionpolicybindings",
            binding("Deny", selector.clone()),
        )
        .await?;
    let maps = scene.maps();
    let big =
        json!({ "metadata": { "name": "big" }, "data": { "a": "", "b": "", "c": "", "d": "" } });
    let refusal = eventually("the policy denies", async || {
        let dry = format!("{maps}?dryRun=All");
        let (_, answer) = scene.send(Method::POST, &dry, &big).await?;
        let message = answer["message"].as_str().unwrap_or_default();
        // A real server learns of the parameters a moment later.
        Ok(message.contains("at most").then_some(answer))
    })
    .await?;
    let by = format!(
        "ValidatingAdmissionPolicy '{policy}' with binding '{namespace}-1' denied request:"
    );
    let message = format!("configmaps \"big\" is forbidden: {by} at most 3 in {namespace}");
    ensure!(
        refusal["message"] == message,
        "{refusal}\nexpected {message}"
    );
    ensure!(
        refusal["reason"] == "Invalid" && refusal["code"] == 422,
        "{refusal}"
    );
    let (code, refusal) = scene.create("x1").await?;
    let message = format!("configmaps \"x1\" is forbidden: {by} no x");
    ensure!(
        code == 403 && refusal["message"] == message,
        "{code} {refusal}"
    );
    let (code, answer) = scene.create("small").await?;
    ensure!(code == 201, "{code} {answer}");

    // Now a broken rule is told and does not refuse.
    let deny = scene.configurations.pop().context("no binding")?;
    scene.ok(Method::DELETE, &deny, &Value::Null).await?;
    scene
        .configure(
            "validatingadmissionpolicybindings",
            binding("Warn", selector),
        )
        .await?;
    let text = format!(
        "299 - \"Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{namespace}-1': no x\""
    );
    eventually("the policy warns", async || {
        let body = json!({ "metadata": { "generateName": "x" } });
        let request = Request::post(&maps)
            .header("content-type", JSON)
            .body(serde_json::to_vec(&body)?)?;
        let answer = scene
            .client
            .send(request.map(kube::client::Body::from))
            .await?;
        let mut warnings = answer.headers().get_all("warning").iter();
        let warned = warnings.any(|warning| *warning == text);
        Ok((answer.status() == 201 && warned).then_some(()))
    })
    .await?;
    scene.end().await
}
