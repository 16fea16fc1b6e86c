//! What expressions of admission ask about access (`authorizer`), and over which requests policies
//! and webhooks decide at all: the same on both servers.

use anyhow::{Result, ensure};
use http::{Method, Request};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::net::{self, JSON};
use vmhost_tests::server::TestServer;
use vmhost_tests::wait::eventually;
use vmhost_tests::webhook::{Webhook, admitted};

use crate::admission_scene::Scene;

const POLICIES: &str = "validatingadmissionpolicies";
const BINDINGS: &str = "validatingadmissionpolicybindings";

impl Scene {
    /// Creates a policy for new ConfigMaps of the namespace with its binding. Returns the policy's
    /// name.
    async fn decide(&mut self, mut spec: Value) -> Result<String> {
        spec["matchConstraints"] = json!({
            "namespaceSelector": self.selector(),
            "resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                "operations": ["CREATE"],
            }],
        });
        let policy = self.configure(POLICIES, json!({ "spec": spec })).await?;
        let spec = json!({ "policyName": policy, "validationActions": ["Deny"] });
        self.configure(BINDINGS, json!({ "spec": spec })).await?;
        Ok(policy)
    }

    /// Tries to create a ConfigMap until the answer is as wanted: a real server learns of policies
    /// and rights a moment later.
    async fn until_answered(&self, name: &str, user: &str, code: u16, words: &str) -> Result<()> {
        let map = json!({ "metadata": { "name": name } });
        let uri = format!("{}?dryRun=All", self.maps());
        eventually("the policy decides", async || {
            let request = Request::post(&uri)
                .header("content-type", JSON)
                .header("impersonate-user", user)
                .body(serde_json::to_vec(&map)?)?;
            let (got, answer) = net::answer(&self.client, request).await?;
            let message = answer["message"].as_str().unwrap_or_default();
            ensure!(got == code && message.contains(words), "{got} {answer}");
            Ok(Some(()))
        })
        .await
    }

    /// Gives a user or a service account of the namespace a role in it.
    async fn grant(&self, name: &str, subject: &Value, rules: &Value) -> Result<()> {
        let group = format!(
            "/apis/rbac.authorization.k8s.io/v1/namespaces/{}",
            self.namespace
        );
        let role = json!({ "metadata": { "name": name }, "rules": rules });
        self.ok(Method::POST, &format!("{group}/roles"), &role)
            .await?;
        let binding = json!({
            "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
            "subjects": [subject],
        });
        self.ok(Method::POST, &format!("{group}/rolebindings"), &binding)
            .await?;
        Ok(())
    }
}

both_servers!(policies_ask_what_authors_and_accounts_may_do);
async fn policies_ask_what_authors_and_accounts_may_do(server: &TestServer) -> Result<()> {
    let mut scene = Scene::of(server, "asks").await?;
    let namespace = scene.namespace.clone();
    let (alice, bob) = (format!("alice-{namespace}"), format!("bob-{namespace}"));
    for (user, verbs) in [
        (&alice, json!(["create", "delete"])),
        (&bob, json!(["create"])),
    ] {
        let subject = json!({ "kind": "User", "name": user });
        let rule = json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": verbs });
        scene.grant(user, &subject, &json!([rule])).await?;
    }
    let robot = json!({ "kind": "ServiceAccount", "name": "robot", "namespace": namespace });
    let read = json!({
        "apiGroups": ["apps"], "resources": ["deployments/scale"], "resourceNames": ["d"],
        "verbs": ["get"],
    });
    scene.grant("robots", &robot, &json!([read])).await?;
    let scale = "variables.robot.group('apps').resource('deployments').subresource('scale').namespace(request.namespace)";
    let why = format!(
        r#"RBAC: allowed by RoleBinding "robots/{namespace}" of Role "robots" to ServiceAccount "robot/{namespace}""#
    );
    let spec = json!({
        "matchConditions": [{
            "name": "who-creates-secrets-is-not-asked",
            "expression": "!authorizer.group('').resource('secrets').namespace(request.namespace).check('create').allowed()",
        }],
        "variables": [{
            "name": "robot",
            "expression": "authorizer.serviceAccount(request.namespace, 'robot')",
        }],
        "validations": [
            {
                "expression": "authorizer.requestResource.check('delete').allowed()",
                "message": "who creates must be allowed to delete",
            },
            { "expression": format!("{scale}.name('d').check('get').reason() == '{why}'") },
            { "expression": format!("!{scale}.name('e').check('get').allowed()") },
            { "expression": format!("{scale}.check('get').reason() == ''") },
            { "expression": "!variables.robot.path('/metrics').check('get').errored()" },
            { "expression": "variables.robot.path('/none').check('get').error() == ''" },
            {
                "expression": "object.metadata.name != 'x' || authorizer.serviceAccount('A', 'a').path('/').check('get').allowed()",
            },
            { "expression": "object.metadata.name != 'y' || authorizer.group('').resource(' ').check('get').allowed()" },
        ],
    });
    let policy = scene.decide(spec).await?;
    let denied =
        format!("ValidatingAdmissionPolicy '{policy}' with binding '{namespace}-1' denied request");
    let words = format!("{denied}: who creates must be allowed to delete");
    scene.until_answered("a", &bob, 422, &words).await?;
    scene.until_answered("a", &alice, 201, "").await?;
    let invalid = "Invalid service account namespace";
    scene.until_answered("x", &alice, 422, invalid).await?;
    let empty = "resource must not be empty";
    scene.until_answered("y", &alice, 422, empty).await?;
    // An administrator may create secrets, too.
    let map = json!({ "metadata": { "name": "x" } });
    scene.ok(Method::POST, &scene.maps(), &map).await?;
    scene.end().await
}

both_servers!(mutations_and_conditions_of_webhooks_ask_too);
async fn mutations_and_conditions_of_webhooks_ask_too(server: &TestServer) -> Result<()> {
    let mut scene = Scene::of(server, "asks").await?;
    let webhook = Webhook::start(|_, review| admitted(review, json!({ "allowed": true }))).await?;
    let rule = json!({
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
        "operations": ["CREATE"],
    });
    let robot = "authorizer.serviceAccount('default', 'none').group('').resource('secrets')";
    let hook = |name: &str, condition: &str| {
        json!({
            "name": format!("{name}.test.io"),
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "namespaceSelector": scene.selector(),
            "rules": [rule],
            "clientConfig": webhook.config(&format!("/{name}")),
            "matchConditions": [{ "name": "asks", "expression": condition }],
        })
    };
    let hooks = [
        hook("never", &format!("{robot}.check('list').allowed()")),
        hook(
            "always",
            "authorizer.requestResource.check('create').allowed()",
        ),
    ];
    let plural = "validatingwebhookconfigurations";
    scene
        .configure(plural, json!({ "webhooks": hooks }))
        .await?;
    let made = format!(
        "Object{{metadata: Object.metadata{{annotations: {{'robot': string({robot}.check('list').allowed())}}}}}}"
    );
    let spec = json!({
        "reinvocationPolicy": "Never",
        "matchConstraints": { "namespaceSelector": scene.selector(), "resourceRules": [rule] },
        "mutations": [{
            "patchType": "ApplyConfiguration", "applyConfiguration": { "expression": made },
        }],
    });
    let plural = "mutatingadmissionpolicies";
    let policy = scene.configure(plural, json!({ "spec": spec })).await?;
    let binding = json!({ "spec": { "policyName": policy } });
    let plural = "mutatingadmissionpolicybindings";
    scene.configure(plural, binding).await?;
    let path = format!("{}?dryRun=All", scene.maps());
    eventually("the policy acts and the webhook is called", async || {
        let map = json!({ "metadata": { "name": "a" } });
        let made = scene.ok(Method::POST, &path, &map).await?;
        let robot = &made["metadata"]["annotations"]["robot"];
        ensure!(robot == "false", "{made}");
        Ok((!webhook.seen("/always").is_empty()).then_some(()))
    })
    .await?;
    ensure!(
        webhook.seen("/never").is_empty(),
        "the condition was ignored"
    );
    scene.end().await
}

both_servers!(messages_ask_nothing);
async fn messages_ask_nothing(server: &TestServer) -> Result<()> {
    let scene = Scene::of(server, "asks").await?;
    let policy = json!({
        "metadata": { "name": scene.namespace },
        "spec": {
            "matchConstraints": { "resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                "operations": ["CREATE"],
            }] },
            "validations": [{
                "expression": "authorizer.path('/').check('get').allowed()",
                "messageExpression": "authorizer.path('/').check('get').reason()",
            }],
        },
    });
    let path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let (code, answer) = scene.send(Method::POST, path, &policy).await?;
    let causes = answer["details"]["causes"].as_array();
    let fields: Vec<&Value> = causes.into_iter().flatten().map(|c| &c["field"]).collect();
    ensure!(
        code == 422 && fields == ["spec.validations[0].messageExpression"],
        "{code} {answer}"
    );
    let message = answer["message"].as_str().unwrap_or_default();
    let words = "undeclared reference to 'authorizer'";
    ensure!(message.contains(words), "{answer}");
    scene.end().await
}

both_servers!(policies_decide_over_webhooks_and_not_over_policies);
async fn policies_decide_over_webhooks_and_not_over_policies(server: &TestServer) -> Result<()> {
    let mut scene = Scene::of(server, "exempt").await?;
    let held = format!("{}-held", scene.namespace);
    let spec = json!({
        "matchConstraints": { "resourceRules": [{
            "apiGroups": ["admissionregistration.k8s.io"], "apiVersions": ["*"],
            "resources": ["*"], "operations": ["CREATE"],
        }] },
        "matchConditions": [{
            "name": "own", "expression": format!("object.metadata.name == '{held}'"),
        }],
        "validations": [{ "expression": "false", "message": "it is held" }],
    });
    let policy = scene.configure(POLICIES, json!({ "spec": spec })).await?;
    let bound = json!({ "policyName": policy, "validationActions": ["Deny"] });
    scene.configure(BINDINGS, json!({ "spec": bound })).await?;
    let new = |plural: &str| {
        let path = Scene::configuration(plural, "");
        format!("{}?dryRun=All", path.trim_end_matches('/'))
    };
    let mut body = json!({ "metadata": { "name": held } });
    for plural in [
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
    ] {
        eventually("the policy decides", async || {
            let (code, answer) = scene.send(Method::POST, &new(plural), &body).await?;
            let message = answer["message"].as_str().unwrap_or_default();
            ensure!(
                code == 422 && message.ends_with("it is held"),
                "{code} {answer}"
            );
            Ok(Some(()))
        })
        .await?;
    }
    body["spec"] = bound;
    scene.ok(Method::POST, &new(BINDINGS), &body).await?;
    scene.end().await
}

both_servers!(parameters_of_an_unknown_kind_are_the_fault_of_the_policy);
async fn parameters_of_an_unknown_kind_are_the_fault_of_the_policy(
    server: &TestServer,
) -> Result<()> {
    let mut scene = Scene::of(server, "params").await?;
    let spec = json!({
        "paramKind": { "apiVersion": "none.vmhost.dev/v1", "kind": "None" },
        "validations": [{ "expression": "params == null" }],
    });
    let policy = scene.decide(spec).await?;
    let map = json!({ "metadata": { "name": "a" } });
    let path = format!("{}?dryRun=All", scene.maps());
    let message = format!(
        "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy '{policy}' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'none.vmhost.dev/v1, Kind=None'"
    );
    eventually("the policy denies", async || {
        let (code, answer) = scene.send(Method::POST, &path, &map).await?;
        ensure!(
            code == 422 && answer["message"] == message,
            "{code} {answer}"
        );
        Ok(Some(()))
    })
    .await?;
    scene.end().await
}
