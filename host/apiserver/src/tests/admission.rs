//! Webhooks that cannot be reached, policies, and the rules of both. The suite has webhooks that
//! answer, on both servers.

use super::*;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// Returns a configuration with one webhook, which nobody serves.
fn configuration(policy: &str) -> Value {
    json!({
        "metadata": { "name": "w" },
        "webhooks": [{
            "name": "w.test.io",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": policy,
            "clientConfig": { "service": { "namespace": "default", "name": "none" } },
            "rules": [{ "apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"], "operations": ["CREATE", "DELETE"] }],
        }],
    })
}

#[tokio::test]
async fn a_webhook_without_an_answer_refuses_or_lets_pass_by_its_policy() {
    let c = Cluster::new();
    for plural in [
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
    ] {
        let path = format!("{GROUP}/{plural}");
        c.post(&path, &configuration("Fail")).await.ok();
        let why = "failed calling webhook \"w.test.io\": failed to call webhook: Post \"https://none.default.svc:443/?timeout=10s\": service \"none\" not found";
        let refused = c.post(CMS, &cm("a", "1")).await;
        refused.refused(500, "InternalError", why);
        let cause = &refused.body["details"]["causes"][0]["message"];
        assert_eq!(cause, why);
        c.get(&format!("{CMS}/a"))
            .await
            .refused(404, "NotFound", "");
        // No webhook is asked about requests that no rule names.
        let secret = json!({ "metadata": { "name": "s" } });
        let secrets = "/api/v1/namespaces/default/secrets";
        c.post(secrets, &secret).await.ok();
        c.delete(&format!("{secrets}/s"), &json!({})).await.ok();

        let path = format!("{path}/w");
        let ignore = json!({ "webhooks": configuration("Ignore")["webhooks"] });
        c.merge(&path, &ignore).await.ok();
        c.post(CMS, &cm("a", "1")).await.ok();
        c.delete(&format!("{CMS}/a"), &json!({})).await.ok();
        c.delete(&path, &json!({})).await.ok();
    }
    c.post(CMS, &cm("a", "1")).await.ok();
}

#[tokio::test]
async fn a_refused_deletion_of_many_leaves_all() {
    let c = Cluster::new();
    for name in ["a", "b"] {
        c.post(CMS, &cm(name, "1")).await.ok();
    }
    let path = format!("{GROUP}/validatingwebhookconfigurations");
    c.post(&path, &configuration("Fail")).await.ok();
    c.delete(CMS, &json!({}))
        .await
        .refused(500, "InternalError", "failed calling webhook");
    let left = c.get(CMS).await.ok();
    assert_eq!(left["items"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn wrong_configurations_are_refused_with_the_field_at_fault() {
    let c = Cluster::new();
    let path = format!("{GROUP}/validatingwebhookconfigurations");
    for (pointer, value, field) in [
        ("/name", json!("short"), "webhooks[0].name"),
        ("/sideEffects", json!("Some"), "webhooks[0].sideEffects"),
        ("/timeoutSeconds", json!(31), "webhooks[0].timeoutSeconds"),
        ("/clientConfig", json!({}), "webhooks[0].clientConfig"),
        (
            "/admissionReviewVersions",
            json!(["v2"]),
            "webhooks[0].admissionReviewVersions",
        ),
        (
            "/matchConditions",
            json!([{ "name": "a", "expression": "object.x" }]),
            "webhooks[0].matchConditions[0].expression",
        ),
        (
            "/rules",
            json!([{ "apiGroups": ["*", "a"], "apiVersions": ["v1"], "resources": ["x"], "operations": ["*"] }]),
            "webhooks[0].rules[0].apiGroups",
        ),
    ] {
        let mut wrong = configuration("Fail");
        wrong["webhooks"][0][pointer.trim_start_matches('/')] = value;
        let refused = c.post(&path, &wrong).await;
        refused.refused(422, "Invalid", field);
    }
}

#[tokio::test]
async fn policies_deny_and_warn_with_their_own_messages() {
    let c = Cluster::new();
    let policy = json!({
        "metadata": { "name": "p" },
        "spec": {
            "matchConstraints": { "resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                "operations": ["CREATE", "UPDATE", "DELETE"],
            }] },
            "variables": [{ "name": "seen", "expression": "object == null ? oldObject : object" }],
            "validations": [
                { "expression": "variables.seen.data.a != 'bad'", "messageExpression": "'not ' + variables.seen.data.a" },
                { "expression": "!(request.operation == 'DELETE' && oldObject.data.a == 'kept')", "message": "is kept", "reason": "Forbidden" },
            ],
        },
    });
    c.post(&format!("{GROUP}/validatingadmissionpolicies"), &policy)
        .await
        .ok();
    // Without a binding it decides nothing.
    c.post(CMS, &cm("early", "bad")).await.ok();
    let bindings = format!("{GROUP}/validatingadmissionpolicybindings");
    let mut binding = json!({
        "metadata": { "name": "b" },
        "spec": { "policyName": "p", "validationActions": ["Deny"] },
    });
    c.post(&bindings, &binding).await.ok();
    let refused = c.post(CMS, &cm("a", "bad")).await;
    let by = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request:";
    let message = format!("configmaps \"a\" is forbidden: {by} not bad");
    refused.refused(422, "Invalid", &message);
    assert_eq!(
        refused.body["details"]["causes"][0],
        json!({ "message": format!("{by} not bad") })
    );
    c.post(CMS, &cm("a", "kept")).await.ok();
    let path = format!("{CMS}/a");
    c.merge(&path, &json!({ "data": { "a": "bad" } }))
        .await
        .refused(422, "Invalid", "not bad");
    c.delete(&path, &json!({}))
        .await
        .refused(403, "Forbidden", "is kept");
    // An expression that fails refuses, unless the policy says otherwise.
    let empty = json!({ "metadata": { "name": "e" } });
    c.post(CMS, &empty)
        .await
        .refused(422, "Invalid", "resulted in error: no such key: data");

    binding["spec"]["validationActions"] = json!(["Warn"]);
    c.merge(&format!("{bindings}/b"), &binding).await.ok();
    let warned = c.post(CMS, &cm("w", "bad")).await;
    assert_eq!(warned.code, 201, "{}", warned.text);
    let text =
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': not bad\"";
    assert_eq!(warned.headers["warning"], text);
}

#[tokio::test]
async fn an_annotation_that_fails_refuses_whatever_the_binding_says() {
    let c = Cluster::new();
    let policy = json!({
        "metadata": { "name": "p" },
        "spec": {
            "matchConstraints": { "resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"],
            }] },
            "auditAnnotations": [{ "key": "a", "valueExpression": "string(object.data.a)" }],
        },
    });
    c.post(&format!("{GROUP}/validatingadmissionpolicies"), &policy)
        .await
        .ok();
    let binding = json!({
        "metadata": { "name": "b" },
        "spec": { "policyName": "p", "validationActions": ["Warn"] },
    });
    c.post(
        &format!("{GROUP}/validatingadmissionpolicybindings"),
        &binding,
    )
    .await
    .ok();
    c.post(CMS, &cm("a", "1")).await.ok();
    let empty = json!({ "metadata": { "name": "e" } });
    c.post(CMS, &empty)
        .await
        .refused(422, "Invalid", "no such key: data");
}

#[tokio::test]
async fn parameters_of_a_policy_are_found_by_name_or_by_label() {
    let c = Cluster::new();
    let policy = json!({
        "metadata": { "name": "p" },
        "spec": {
            "paramKind": { "apiVersion": "v1", "kind": "Secret" },
            "matchConstraints": { "resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"],
            }] },
            "validations": [{ "expression": "params == null || params.metadata.name != object.data.a" }],
        },
    });
    c.post(&format!("{GROUP}/validatingadmissionpolicies"), &policy)
        .await
        .ok();
    let bindings = format!("{GROUP}/validatingadmissionpolicybindings");
    let bound = |reference: Value| {
        json!({
            "metadata": { "name": "b" },
            "spec": { "policyName": "p", "validationActions": ["Deny"], "paramRef": reference },
        })
    };
    let refused = c.post(&bindings, &bound(json!({ "name": "s" }))).await;
    let why = "spec.paramRef.parameterNotFoundAction: Required value";
    refused.refused(422, "Invalid", why);
    let missing = bound(json!({ "name": "s", "parameterNotFoundAction": "Deny" }));
    c.post(&bindings, &missing).await.ok();
    let why = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    c.post(CMS, &cm("a", "s"))
        .await
        .refused(422, "Invalid", why);
    let secret = json!({ "metadata": { "name": "s", "labels": { "for": "p" } } });
    c.post("/api/v1/namespaces/default/secrets", &secret)
        .await
        .ok();
    c.post(CMS, &cm("a", "s"))
        .await
        .refused(422, "Invalid", "failed expression: params == null");
    c.post(CMS, &cm("a", "other")).await.ok();
    c.delete(&format!("{bindings}/b"), &json!({})).await.ok();
    let selector = json!({ "matchLabels": { "for": "p" } });
    let labelled = bound(json!({ "selector": selector, "parameterNotFoundAction": "Allow" }));
    c.post(&bindings, &labelled).await.ok();
    c.post(CMS, &cm("b", "s"))
        .await
        .refused(422, "Invalid", "denied request");
    c.post(CMS, &cm("b", "other")).await.ok();
}

#[tokio::test]
async fn connections_and_evictions_are_decided_too() {
    let c = Cluster::new();
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({ "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    c.post(pods, &pod).await.ok();
    let rule = |resource: &str, operation: &str| json!({ "apiGroups": [""], "apiVersions": ["v1"], "resources": [resource], "operations": [operation] });
    let policy = json!({
        "metadata": { "name": "p" },
        "spec": {
            "matchConstraints": { "resourceRules": [
                rule("pods/exec", "CONNECT"), rule("pods/eviction", "CREATE"),
            ] },
            "validations": [{
                "expression": "object.kind == 'PodExecOptions' ? !('rm' in object.command) : false",
                "message": "not that",
            }],
        },
    });
    c.post(&format!("{GROUP}/validatingadmissionpolicies"), &policy)
        .await
        .ok();
    let binding = json!({
        "metadata": { "name": "b" },
        "spec": { "policyName": "p", "validationActions": ["Deny"] },
    });
    c.post(
        &format!("{GROUP}/validatingadmissionpolicybindings"),
        &binding,
    )
    .await
    .ok();
    let exec = |words: &str| format!("{pods}/p/exec?{words}&stdout=true");
    c.post(&exec("command=rm&command=-r"), &json!({}))
        .await
        .refused(422, "Invalid", "pods \"p\" is forbidden: ");
    // What is allowed comes to the node, which the pod has not.
    c.post(&exec("command=ls"), &json!({})).await.refused(
        400,
        "BadRequest",
        "does not have a host assigned",
    );
    let eviction = json!({ "metadata": { "name": "p" } });
    c.post(&format!("{pods}/p/eviction"), &eviction)
        .await
        .refused(422, "Invalid", "denied request: not that");
    c.get(&format!("{pods}/p")).await.ok();
}

#[tokio::test]
async fn an_overlay_asks_nobody() {
    let overlay = crate::Overlay::default();
    let post = |path: &str, object: &Value| {
        let body = bytes::Bytes::from(object.to_string());
        let request = Request::post(path).header(CONTENT_TYPE, "application/json");
        overlay.answer(request.body(body).unwrap())
    };
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "default", "resourceVersion": "1" },
    });
    assert!(overlay.bring(namespace));
    let path = format!("{GROUP}/validatingwebhookconfigurations");
    assert_eq!(post(&path, &configuration("Fail")).await.status(), 201);
    assert_eq!(post(CMS, &cm("a", "1")).await.status(), 201);
}
