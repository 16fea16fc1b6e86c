//! Mutating policies. The suite has them beside webhooks, on both servers.

use super::*;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// Returns the specification of a policy for ConfigMaps and Deployments that are created or
/// changed, with these mutations.
fn spec(mutations: &[Value]) -> Value {
    json!({
        "matchConstraints": { "resourceRules": [{
            "apiGroups": ["", "apps"], "apiVersions": ["v1"],
            "resources": ["configmaps", "deployments"], "operations": ["*"],
        }] },
        "mutations": mutations,
        "reinvocationPolicy": "Never",
    })
}

fn apply(expression: &str) -> Value {
    json!({ "patchType": "ApplyConfiguration", "applyConfiguration": { "expression": expression } })
}

fn patch(expression: &str) -> Value {
    json!({ "patchType": "JSONPatch", "jsonPatch": { "expression": expression } })
}

/// Creates a policy and a binding of the same name.
async fn bind(c: &Cluster, name: &str, spec: Value, reference: Option<Value>) {
    let policy = json!({ "metadata": { "name": name }, "spec": spec });
    let path = format!("{GROUP}/mutatingadmissionpolicies");
    c.post(&path, &policy).await.ok();
    let mut binding = json!({ "metadata": { "name": name }, "spec": { "policyName": name } });
    if let Some(reference) = reference {
        binding["spec"]["paramRef"] = reference;
    }
    let path = format!("{GROUP}/mutatingadmissionpolicybindings");
    c.post(&path, &binding).await.ok();
}

fn deployment() -> Value {
    json!({
        "metadata": { "name": "d" },
        "spec": {
            "selector": { "matchLabels": { "a": "b" } },
            "template": {
                "metadata": { "labels": { "a": "b" } },
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            },
        },
    })
}

#[tokio::test]
async fn an_apply_configuration_merges_by_schema() {
    let c = Cluster::new();
    let annotations = r#"Object{metadata: Object.metadata{annotations: {"mutated-by": "policy"}}}"#;
    let containers = r#"Object{spec: Object.spec{
        replicas: 1337,
        template: Object.spec.template{spec: Object.spec.template.spec{containers: [
            Object.spec.template.spec.containers{name: "side", image: "s"}
        ]}}
    }}"#;
    let conditions = json!([{ "name": "kind", "expression": "request.kind.kind == 'Deployment'" }]);
    let mut both = spec(&[apply(annotations), apply(containers)]);
    both["matchConditions"] = conditions;
    bind(&c, "p", both, None).await;
    let made = c.post(DEPLOYMENTS, &deployment()).await.ok();
    assert_eq!(made["metadata"]["annotations"]["mutated-by"], "policy");
    assert_eq!(made["spec"]["replicas"], 1337);
    let containers = &made["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers[0]["name"], "c");
    assert_eq!(containers[1]["name"], "side");
    assert_eq!(containers[1]["imagePullPolicy"], "Always", "{containers}");
    // Nobody owns what a policy changes.
    let managers = made["metadata"]["managedFields"].to_string();
    assert!(!managers.contains("mutated-by"), "{managers}");
    let other = c.post(CMS, &cm("a", "1")).await.ok();
    assert!(other["metadata"].get("annotations").is_none(), "{other}");
    // A change is mutated, a deletion is not.
    let path = format!("{DEPLOYMENTS}/d");
    let fewer = json!({ "spec": { "replicas": 2 } });
    let changed = c.merge(&path, &fewer).await.ok();
    assert_eq!(changed["spec"]["replicas"], 1337);
    c.delete(&path, &json!({})).await.ok();
}

#[tokio::test]
async fn what_does_not_fit_the_schema_refuses() {
    let denied = "policy 'p' with binding 'p' denied request: ";
    let patched = "error applying patch: ";
    for (expression, why) in [
        (
            "Object{spec: Object.spec{color: 'red'}}",
            format!(
                "{patched}failed to convert patch object to typed object: .spec.color: field not declared in schema"
            ),
        ),
        (
            "Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'c'}}}}",
            format!(
                "{patched}invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.selector"
            ),
        ),
        (
            "Object{spec: Object.wrong{}}",
            "type mismatch: unexpected type name \"Object.wrong\", expected \"Object.spec\", which matches field name path from root Object type".to_owned(),
        ),
    ] {
        let c = Cluster::new();
        bind(&c, "p", spec(&[apply(expression)]), None).await;
        let refused = c.post(DEPLOYMENTS, &deployment()).await;
        refused.refused(403, "Invalid", "");
        let message = format!("{denied}{why}");
        assert_eq!(refused.body["message"], message);
        let causes = &refused.body["details"]["causes"];
        assert_eq!(*causes, json!([{ "message": message }]));
    }
}

#[tokio::test]
async fn a_patch_is_carried_out_if_its_tests_hold() {
    let c = Cluster::new();
    let operations = r#"[
        JSONPatch{op: "test", path: "/data/a", value: "1"},
        JSONPatch{op: "add", path: "/metadata/labels", value: {"x": "y"}},
        JSONPatch{
            op: "add",
            path: "/metadata/labels/" + jsonpatch.escapeKey("example.com/env"),
            value: "test"
        }
    ]"#;
    bind(&c, "p", spec(&[patch(operations)]), None).await;
    let made = c.post(CMS, &cm("a", "1")).await.ok();
    let labels = json!({ "x": "y", "example.com/env": "test" });
    assert_eq!(made["metadata"]["labels"], labels);
    let other = c.post(CMS, &cm("b", "2")).await.ok();
    assert!(other["metadata"].get("labels").is_none(), "{other}");

    let wrong = r#"[JSONPatch{op: "add", path: "/nowhere/at/all", value: 1}]"#;
    bind(&c, "q", spec(&[patch(wrong)]), None).await;
    let refused = c.post(CMS, &cm("c", "1")).await;
    let why = "policy 'q' with binding 'q' denied request: JSON Patch: ";
    refused.refused(403, "Invalid", why);
    let unknown = r#"[JSONPatch{op: "add", path: "/nowhere", value: 1}]"#;
    let path = format!("{GROUP}/mutatingadmissionpolicies/q");
    let changed = json!({ "spec": { "mutations": [patch(unknown)] } });
    c.merge(&path, &changed).await.ok();
    let refused = c.post(CMS, &cm("c", "1")).await;
    let why = "strict decoding error: unknown field \"nowhere\"";
    refused.refused(500, "InternalError", why);
}

#[tokio::test]
async fn parameters_and_variables_are_seen() {
    let c = Cluster::new();
    let expression = r#"Object{metadata: Object.metadata{labels: {
        "team": variables.team, "in": namespaceObject.metadata.name
    }}}"#;
    let mut with = spec(&[apply(expression)]);
    with["paramKind"] = json!({ "apiVersion": "v1", "kind": "Secret" });
    with["variables"] = json!([{ "name": "team", "expression": "params.metadata.labels.team" }]);
    let reference = json!({ "name": "settings", "parameterNotFoundAction": "Deny" });
    bind(&c, "p", with, Some(reference)).await;
    let refused = c.post(CMS, &cm("a", "1")).await;
    let why = "policy 'p' with binding 'p' denied request: failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    refused.refused(403, "Forbidden", why);
    let settings = json!({ "metadata": { "name": "settings", "labels": { "team": "blue" } } });
    let secrets = "/api/v1/namespaces/default/secrets";
    c.post(secrets, &settings).await.ok();
    let made = c.post(CMS, &cm("a", "1")).await.ok();
    let labels = json!({ "team": "blue", "in": "default" });
    assert_eq!(made["metadata"]["labels"], labels);
}

#[tokio::test]
async fn an_expression_that_fails_refuses_or_lets_pass() {
    let c = Cluster::new();
    let failing = "Object{metadata: Object.metadata{labels: {'l': object.data.none}}}";
    let good = "Object{data: {'good': 'yes'}}";
    bind(&c, "p", spec(&[apply(failing), apply(good)]), None).await;
    let refused = c.post(CMS, &cm("a", "1")).await;
    refused.refused(403, "Invalid", "");
    let message = format!(
        "policy 'p' with binding 'p' denied request: expression '{failing}' resulted in error: no such key: none"
    );
    assert_eq!(refused.body["message"], message);
    let path = format!("{GROUP}/mutatingadmissionpolicies/p");
    let ignore = json!({ "spec": { "failurePolicy": "Ignore" } });
    c.merge(&path, &ignore).await.ok();
    let made = c.post(CMS, &cm("a", "1")).await.ok();
    assert_eq!(made["data"], json!({ "a": "1", "good": "yes" }));
}

#[tokio::test]
async fn a_policy_is_evaluated_again_after_another_one() {
    for (again, expected) in [("Never", "alone"), ("IfNeeded", "after b")] {
        let c = Cluster::new();
        let first = r#"Object{metadata: Object.metadata{annotations: {
            "a": has(object.metadata.annotations) && "b" in object.metadata.annotations ? "after b" : "alone"
        }}}"#;
        let mut first = spec(&[apply(first)]);
        first["reinvocationPolicy"] = json!(again);
        bind(&c, "a", first, None).await;
        let count = r#"Object{metadata: Object.metadata{annotations: {
            "b": object.metadata.?annotations[?"b"].orValue("") + "x"
        }}}"#;
        bind(&c, "b", spec(&[apply(count)]), None).await;
        let made = c.post(CMS, &cm("a", "1")).await.ok();
        let annotations = json!({ "a": expected, "b": "x" });
        assert_eq!(made["metadata"]["annotations"], annotations);
    }
}

#[tokio::test]
async fn wrong_policies_are_refused_with_the_field_at_fault() {
    let c = Cluster::new();
    let path = format!("{GROUP}/mutatingadmissionpolicies");
    let both = json!([{
        "patchType": "JSONPatch",
        "jsonPatch": { "expression": "[JSONPatch{op: 'remove', path: '/a'}]" },
        "applyConfiguration": { "expression": "Object{}" },
    }]);
    let rules = json!({ "resourceRules": [{
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["DELETE"],
    }] });
    for (field, value, part) in [
        ("mutations", json!([]), "spec.mutations: Required value"),
        (
            "mutations",
            json!([apply("Object{spec: Object.spec{x: object.}}")]),
            "spec.mutations[0].applyConfiguration.expression: Invalid value",
        ),
        (
            "mutations",
            json!([apply("{'spec': 1}")]),
            "must evaluate to Object but got map(string, int)",
        ),
        (
            "mutations",
            json!([patch("[Object{}]")]),
            "must evaluate to list(JSONPatch) but got list(Object)",
        ),
        (
            "mutations",
            json!([{ "patchType": "JSONPatch" }]),
            "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch",
        ),
        (
            "mutations",
            both,
            "spec.mutations[0].applyConfiguration: Invalid value",
        ),
        (
            "matchConstraints",
            rules,
            "spec.matchConstraints.resourceRules.operations: Unsupported value: \"DELETE\"",
        ),
        (
            "matchConstraints",
            Value::Null,
            "spec.matchConstraints: Required value",
        ),
        (
            "reinvocationPolicy",
            Value::Null,
            "spec.reinvocationPolicy: Required value",
        ),
        (
            "variables",
            json!([{ "name": "v", "expression": "Object{} == null" }]),
            "spec.variables[0].expression: Invalid value",
        ),
    ] {
        let mut wrong = spec(&[apply("Object{}")]);
        wrong[field] = value;
        let policy = json!({ "metadata": { "name": "w" }, "spec": wrong });
        let refused = c.post(&path, &policy).await;
        refused.refused(422, "Invalid", part);
    }
    let path = format!("{GROUP}/mutatingadmissionpolicybindings");
    let binding = |reference: Value| json!({ "metadata": { "name": "w" }, "spec": { "policyName": "p", "paramRef": reference } });
    for (reference, part) in [
        (
            json!({ "parameterNotFoundAction": "Deny" }),
            "spec.paramRef: Required value: one of name or selector must be specified",
        ),
        (
            json!({ "name": "p" }),
            "spec.paramRef.parameterNotFoundAction: Required value",
        ),
    ] {
        let refused = c.post(&path, &binding(reference)).await;
        refused.refused(422, "Invalid", part);
    }
}
