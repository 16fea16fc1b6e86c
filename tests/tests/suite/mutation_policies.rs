//! Mutating admission policies: both servers make the same of an object, refuse in the same words,
//! and evaluate policies again beside webhooks.

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::server::TestServer;
use vmhost_tests::wait::eventually;
use vmhost_tests::webhook::{Webhook, admitted, patched};

use crate::admission_scene::Scene;

impl Scene {
    fn deployments(&self) -> String {
        format!("/apis/apps/v1/namespaces/{}/deployments", self.namespace)
    }

    /// Creates a policy for a resource of the namespace with its binding, and returns their names.
    async fn bind(
        &mut self,
        (group, resource): (&str, &str),
        mut spec: Value,
        reference: Value,
    ) -> Result<(String, String)> {
        spec["matchConstraints"] = json!({
            "namespaceSelector": self.selector(),
            "resourceRules": [{
                "apiGroups": [group],
                "apiVersions": ["v1"],
                "resources": [resource],
                "operations": ["CREATE", "UPDATE"],
            }],
        });
        if spec["reinvocationPolicy"].is_null() {
            spec["reinvocationPolicy"] = json!("Never");
        }
        let policy = json!({ "spec": spec });
        let policy = self.configure("mutatingadmissionpolicies", policy).await?;
        let mut binding = json!({ "spec": { "policyName": policy } });
        if !reference.is_null() {
            binding["spec"]["paramRef"] = reference;
        }
        let plural = "mutatingadmissionpolicybindings";
        let binding = self.configure(plural, binding).await?;
        Ok((policy, binding))
    }

    /// Tries to create an object until the answer is as wanted: a real server learns of a policy a
    /// moment later.
    async fn until(
        &self,
        path: &str,
        object: &Value,
        is_wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let path = format!("{path}?dryRun=All");
        eventually("the policy acts", async || {
            let (_, answer) = self.send(Method::POST, &path, object).await?;
            ensure!(is_wanted(&answer), "{answer}");
            Ok(Some(answer))
        })
        .await
    }
}

fn apply(expression: &str) -> Value {
    json!({ "patchType": "ApplyConfiguration", "applyConfiguration": { "expression": expression } })
}

fn patch(expression: &str) -> Value {
    json!({ "patchType": "JSONPatch", "jsonPatch": { "expression": expression } })
}

fn map(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "data": { "a": "1" } })
}

fn deployment() -> Value {
    json!({
        "metadata": { "name": "d" },
        "spec": {
            "selector": { "matchLabels": { "a": "b" } },
            "template": {
                "metadata": { "labels": { "a": "b" } },
                "spec": { "containers": [{ "name": "c", "image": "i:1" }] },
            },
        },
    })
}

both_servers!(apply_configurations_merge_by_schema);
async fn apply_configurations_merge_by_schema(server: &TestServer) -> Result<()> {
    let mut scene = Scene::of(server, "mutation").await?;
    let annotate = r#"Object{metadata: Object.metadata{annotations: {"mutated-by": "policy"}}}"#;
    let contain = r#"Object{spec: Object.spec{
        replicas: 1337,
        template: Object.spec.template{spec: Object.spec.template.spec{
            containers: [
                Object.spec.template.spec.containers{name: "side", image: "s:1"},
                Object.spec.template.spec.containers{name: "c", workingDir: "/tmp"}
            ]
        }}
    }}"#;
    let spec = json!({ "mutations": [apply(annotate), apply(contain)] });
    scene
        .bind(("apps", "deployments"), spec, Value::Null)
        .await?;
    let path = scene.deployments();
    let is_mutated = |made: &Value| made["metadata"]["annotations"]["mutated-by"] == "policy";
    let made = scene.until(&path, &deployment(), is_mutated).await?;
    ensure!(made["spec"]["replicas"] == 1337, "{made}");
    let containers = &made["spec"]["template"]["spec"]["containers"];
    let list = containers.as_array().context("no containers")?;
    let named = |name: &str| list.iter().find(|container| container["name"] == name);
    let own = named("c").context("the container is gone")?;
    ensure!(
        own["image"] == "i:1" && own["workingDir"] == "/tmp",
        "{containers}"
    );
    let side = named("side").context("no container was added")?;
    ensure!(
        side["imagePullPolicy"] == "IfNotPresent" && list.len() == 2,
        "{containers}"
    );
    scene.ok(Method::POST, &path, &deployment()).await?;
    let fewer = json!({ "spec": { "replicas": 2 } });
    let path = format!("{path}/d");
    let changed = scene.ok(Method::PATCH, &path, &fewer).await?;
    ensure!(changed["spec"]["replicas"] == 1337, "{changed}");
    scene.ok(Method::DELETE, &path, &Value::Null).await?;
    scene.end().await
}

both_servers!(patches_see_parameters_and_variables);
async fn patches_see_parameters_and_variables(server: &TestServer) -> Result<()> {
    let mut scene = Scene::of(server, "mutation").await?;
    let maps = scene.maps();
    // A real server watches service accounts for itself as long as it runs. A kind that it watches
    // only for policies, such as ConfigMap, it stops to watch after the last policy (mutating or
    // validating, of any test) with such parameters, and never starts again: parameters that are
    // created later do not exist for it. See `calculatePolicyData` in k8s.io/apiserver
    // `pkg/admission/plugin/policy/generic/policy_source.go`.
    let accounts = format!("/api/v1/namespaces/{}/serviceaccounts", scene.namespace);
    let settings = json!({ "metadata": {
        "name": "settings",
        "annotations": { "key": "example.com/team", "team": "blue" },
    } });
    scene.ok(Method::POST, &accounts, &settings).await?;
    let operations = r#"[
        JSONPatch{op: "test", path: "/data/a", value: "1"},
        JSONPatch{
            op: "add",
            path: "/metadata/labels",
            value: {"in": namespaceObject.metadata.name}
        },
        JSONPatch{
            op: "add",
            path: "/metadata/labels/" + jsonpatch.escapeKey(params.metadata.annotations.key),
            value: variables.team
        }
    ]"#;
    let spec = json!({
        "paramKind": { "apiVersion": "v1", "kind": "ServiceAccount" },
        "matchConditions": [{ "name": "not-it", "expression": "object.metadata.name != 'out'" }],
        "variables": [{ "name": "team", "expression": "params.metadata.annotations.team" }],
        "mutations": [patch(operations)],
    });
    let reference = json!({ "name": "settings", "parameterNotFoundAction": "Deny" });
    scene.bind(("", "configmaps"), spec, reference).await?;
    let is_labelled = |made: &Value| made["metadata"]["labels"].is_object();
    let made = scene.until(&maps, &map("m"), is_labelled).await?;
    let labels = json!({ "in": scene.namespace, "example.com/team": "blue" });
    ensure!(made["metadata"]["labels"] == labels, "{made}");
    let other = json!({ "metadata": { "name": "o" }, "data": { "a": "2" } });
    for unchanged in [map("out"), other] {
        let made = scene.ok(Method::POST, &maps, &unchanged).await?;
        ensure!(made["metadata"]["labels"].is_null(), "{made}");
    }
    scene.end().await
}

both_servers!(failed_mutations_refuse_or_let_pass);
async fn failed_mutations_refuse_or_let_pass(server: &TestServer) -> Result<()> {
    let mut scene = Scene::of(server, "mutation").await?;
    let maps = scene.maps();
    let failing = "Object{metadata: Object.metadata{labels: {'l': object.data.none}}}";
    let good = "Object{data: {'good': 'yes'}}";
    let unknown = "Object{color: 'red'}";
    let wrong = "Object{metadata: Object.wrong{}}";
    let atomic = r#"Object{metadata: Object.metadata{managedFields: [
        Object.metadata.managedFields{manager: "m"}
    ]}}"#;
    let mutations = [failing, unknown, wrong, atomic].map(apply);
    let spec = json!({ "mutations": mutations });
    let (policy, binding) = scene.bind(("", "configmaps"), spec, Value::Null).await?;
    let by = format!("policy '{policy}' with binding '{binding}' denied request:");
    let is_refused = |answer: &Value| answer["code"] == 403;
    let refusal = scene.until(&maps, &map("m"), is_refused).await?;
    let first = format!("{by} expression '{failing}' resulted in error: no such key: none");
    ensure!(
        refusal["message"] == first && refusal["reason"] == "Invalid",
        "{refusal}\nexpected {first}"
    );
    let merged = format!("{by} error applying patch:");
    let causes = json!([
        { "message": first },
        { "message": format!("{merged} failed to convert patch object to typed object: .color: field not declared in schema") },
        { "message": format!("{by} type mismatch: unexpected type name \"Object.wrong\", expected \"Object.metadata\", which matches field name path from root Object type") },
        { "message": format!("{merged} invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .metadata.managedFields") },
    ]);
    ensure!(
        refusal["details"]["causes"] == causes,
        "{refusal}\nexpected {causes}"
    );

    let path = Scene::configuration("mutatingadmissionpolicies", &policy);
    let ignore = json!({ "spec": {
        "failurePolicy": "Ignore", "mutations": [apply(failing), apply(good)],
    } });
    scene.ok(Method::PATCH, &path, &ignore).await?;
    let is_made = |answer: &Value| answer["data"]["good"] == "yes";
    let made = scene.until(&maps, &map("m"), is_made).await?;
    ensure!(made["metadata"]["labels"].is_null(), "{made}");
    scene.end().await
}

both_servers!(policies_come_before_webhooks_and_again_beside_them);
async fn policies_come_before_webhooks_and_again_beside_them(server: &TestServer) -> Result<()> {
    let mut scene = Scene::of(server, "mutation").await?;
    let webhook = Webhook::start(|_, review| {
        let object = &review["request"]["object"];
        let seen = object["metadata"]["annotations"]["seen"].clone();
        match object["data"]["webhook"].is_null() {
            true => patched(
                review,
                &json!([{ "op": "add", "path": "/data/webhook", "value": seen }]),
            ),
            false => admitted(review, json!({ "allowed": true })),
        }
    })
    .await?;
    let hook = json!({
        "name": "beside.test.io",
        "clientConfig": webhook.config("/beside"),
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "namespaceSelector": scene.selector(),
        // Without the annotation, the policy does not act yet.
        "matchConditions": [{ "name": "seen", "expression": "has(object.metadata.annotations)" }],
        "rules": [{
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["configmaps"],
            "operations": ["CREATE"],
        }],
    });
    let hooks = json!({ "webhooks": [hook] });
    scene
        .configure("mutatingwebhookconfigurations", hooks)
        .await?;
    let see = r#"Object{metadata: Object.metadata{annotations: {
        "seen": "webhook" in object.data ? "webhook" : "nothing"
    }}}"#;
    let count = r#"Object{metadata: Object.metadata{annotations: {
        "count": object.metadata.?annotations[?"count"].orValue("") + "x"
    }}}"#;
    let spec = json!({ "mutations": [apply(see)], "reinvocationPolicy": "IfNeeded" });
    scene.bind(("", "configmaps"), spec, Value::Null).await?;
    let spec = json!({ "mutations": [apply(count)] });
    scene.bind(("", "configmaps"), spec, Value::Null).await?;
    let has_all = |made: &Value| {
        let annotations = &made["metadata"]["annotations"];
        let has = |field: &str| annotations[field].is_string();
        made["data"]["webhook"].is_string() && has("count") && has("seen")
    };
    let made = scene.until(&scene.maps(), &map("m"), has_all).await?;
    // The webhook saw what the policy made before, and the policy what the webhook made.
    ensure!(made["data"]["webhook"] == "nothing", "{made}");
    let annotations = json!({ "seen": "webhook", "count": "x" });
    ensure!(made["metadata"]["annotations"] == annotations, "{made}");
    scene.end().await
}
