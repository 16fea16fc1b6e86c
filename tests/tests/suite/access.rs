//! Access: the same questions to both servers, with the same answers word by word, and the roles
//! that every cluster has.

mod signing;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};
use vmhost_tests::server::TestServer;
use vmhost_tests::wait::eventually;
use vmhost_tests::{both_servers, net, run};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const POLICY: &str = include_str!("../../../host/apiserver/src/access/policy.json");
/// Set to write the table of roles from the real server instead of comparing it.
const BLESS: &str = "VMHOST_BLESS";

/// Sends requests in the name of users.
struct Users {
    admin: Client,
    /// Makes names of this test unique.
    mark: String,
}

impl Users {
    async fn of(server: &TestServer) -> Result<Users> {
        Ok(Users {
            admin: server.client().await?,
            mark: format!("{:08x}", fastrand::u32(..)),
        })
    }

    fn name(&self, name: &str) -> String {
        format!("{name}-{}", self.mark)
    }

    async fn send(
        &self,
        user: Option<&str>,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<(u16, Value)> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(user) = user {
            request = request.header("impersonate-user", user);
        }
        let body = match body {
            Value::Null => Vec::new(),
            body => {
                request = request.header("content-type", "application/json");
                serde_json::to_vec(body)?
            }
        };
        let (code, mut answer) = net::answer(&self.admin, request.body(body)?).await?;
        // Names of this run are no difference.
        if let Some(message) = answer.get("message").and_then(Value::as_str) {
            answer["message"] = json!(message.replace(&format!("-{}", self.mark), ""));
        }
        Ok((code, answer))
    }

    /// Sends an administrator's request that must succeed.
    async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        match self.send(None, Method::POST, path, body).await? {
            (200..=299, answer) => Ok(answer),
            (code, answer) => bail!("POST {path}: {code} {answer}"),
        }
    }

    /// Creates a cluster role and gives it to a user everywhere. Returns when the user feels it.
    async fn grant(&self, user: &str, rules: Value, feels: (&str, &str, &str)) -> Result<()> {
        let name = self.name("granted");
        let role = json!({ "metadata": { "name": name }, "rules": rules });
        self.post(&format!("{RBAC}/clusterroles"), &role).await?;
        let binding = json!({
            "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
        });
        self.post(&format!("{RBAC}/clusterrolebindings"), &binding)
            .await?;
        let (verb, group, resource) = feels;
        let asked = json!({ "spec": {
            "user": user,
            "resourceAttributes": { "verb": verb, "group": group, "resource": resource },
        } });
        eventually("the right is felt", async || {
            let path = format!("{REVIEWS}/subjectaccessreviews");
            let answer = self.post(&path, &asked).await?;
            Ok((answer["status"]["allowed"] == true).then_some(()))
        })
        .await
    }

    /// Checks the code and the message of a refusal.
    async fn refused(
        &self,
        user: &str,
        method: Method,
        path: &str,
        body: &Value,
        (code, message): (u16, &str),
    ) -> Result<()> {
        let what = format!("{method} {path}");
        let (got, answer) = self.send(Some(user), method, path, body).await?;
        ensure!(
            got == code && answer["message"] == message,
            "{what}: {got} {answer}\nexpected {code} {message}"
        );
        ensure!(answer["kind"] == "Status" && answer["code"] == code);
        Ok(())
    }
}

both_servers!(refusals_have_the_same_words);
async fn refusals_have_the_same_words(server: &TestServer) -> Result<()> {
    let users = Users::of(server).await?;
    let alice = users.name("alice");
    let none = Value::Null;
    let pods = "/api/v1/namespaces/default/pods";
    for (method, path, message) in [
        (
            Method::GET,
            pods.to_owned(),
            r#"pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "default""#,
        ),
        (
            Method::GET,
            format!("{pods}?watch=true"),
            r#"pods is forbidden: User "alice" cannot watch resource "pods" in API group "" in the namespace "default""#,
        ),
        (
            Method::GET,
            format!("{pods}?fieldSelector=metadata.name%3Dx"),
            r#"pods "x" is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "default""#,
        ),
        (
            Method::DELETE,
            pods.to_owned(),
            r#"pods is forbidden: User "alice" cannot deletecollection resource "pods" in API group "" in the namespace "default""#,
        ),
        (
            Method::GET,
            "/apis/apps/v1/namespaces/n/deployments/d/scale".to_owned(),
            r#"deployments.apps "d" is forbidden: User "alice" cannot get resource "deployments/scale" in API group "apps" in the namespace "n""#,
        ),
        (
            Method::GET,
            "/api/v1/namespaces/n".to_owned(),
            r#"namespaces "n" is forbidden: User "alice" cannot get resource "namespaces" in API group "" in the namespace "n""#,
        ),
        (
            Method::GET,
            "/apis/no.such/v1/things".to_owned(),
            r#"things.no.such is forbidden: User "alice" cannot list resource "things" in API group "no.such" at the cluster scope"#,
        ),
        (
            Method::GET,
            "/metrics".to_owned(),
            r#"forbidden: User "alice" cannot get path "/metrics""#,
        ),
    ] {
        users
            .refused(&alice, method, &path, &none, (403, message))
            .await?;
    }
    Ok(())
}

both_servers!(nobody_grants_more_than_they_have);
async fn nobody_grants_more_than_they_have(server: &TestServer) -> Result<()> {
    let users = Users::of(server).await?;
    let alice = users.name("alice");
    let rules = json!([{ "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["create", "get"] }]);
    let feels = ("create", "rbac.authorization.k8s.io", "rolebindings");
    users.grant(&alice, rules, feels).await?;
    let roles = format!("{RBAC}/clusterroles");
    let more = json!({
        "metadata": { "name": "more" },
        "rules": [
            { "apiGroups": ["", "apps"], "resources": ["pods", "x/y"], "verbs": ["get", "list"] },
            { "nonResourceURLs": ["/a"], "verbs": ["get"] },
        ],
    });
    let message = "clusterroles.rbac.authorization.k8s.io \"more\" is forbidden: user \"alice\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}\n{APIGroups:[\"\"], Resources:[\"x/y\"], Verbs:[\"get\" \"list\"]}\n{APIGroups:[\"apps\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}\n{APIGroups:[\"apps\"], Resources:[\"x/y\"], Verbs:[\"get\" \"list\"]}\n{NonResourceURLs:[\"/a\"], Verbs:[\"get\"]}";
    users
        .refused(&alice, Method::POST, &roles, &more, (403, message))
        .await?;
    let aggregated = json!({
        "metadata": { "name": "more" },
        "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { "a": "b" } }] },
        "rules": [],
    });
    let message = r#"clusterroles.rbac.authorization.k8s.io "more" is forbidden: must have cluster-admin privileges to use the aggregationRule"#;
    users
        .refused(&alice, Method::POST, &roles, &aggregated, (403, message))
        .await?;
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    for (role, code, message) in [
        (
            "nope",
            404,
            r#"rolebindings.rbac.authorization.k8s.io "nope" not found"#,
        ),
        (
            "cluster-admin",
            403,
            "rolebindings.rbac.authorization.k8s.io \"more\" is forbidden: user \"alice\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}",
        ),
    ] {
        let binding = json!({
            "metadata": { "name": "more" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob" }],
        });
        users
            .refused(&alice, Method::POST, &bindings, &binding, (code, message))
            .await?;
    }
    let binding = json!({
        "metadata": { "name": "more" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "X", "name": "cluster-admin" },
    });
    let (code, refusal) = users.send(None, Method::POST, &bindings, &binding).await?;
    let message = r#"RoleBinding.rbac.authorization.k8s.io "more" is invalid: roleRef.kind: Unsupported value: "X": supported values: "Role", "ClusterRole""#;
    ensure!(
        code == 422 && refusal["message"] == message,
        "{code} {refusal}"
    );
    Ok(())
}

both_servers!(reviews_have_the_same_answers);
async fn reviews_have_the_same_answers(server: &TestServer) -> Result<()> {
    let users = Users::of(server).await?;
    let alice = users.name("alice");
    let rules = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]);
    users.grant(&alice, rules, ("get", "", "pods")).await?;
    let any = format!("{REVIEWS}/subjectaccessreviews");
    let spec = |verb: &str| json!({ "user": alice, "resourceAttributes": { "verb": verb, "resource": "pods" } });
    let allowed = users.post(&any, &json!({ "spec": spec("get") })).await?;
    let granted = users.name("granted");
    ensure!(
        allowed["status"]
            == json!({
                "allowed": true,
                "reason": format!("RBAC: allowed by ClusterRoleBinding {granted:?} of ClusterRole {granted:?} to User {alice:?}"),
            }),
        "{allowed}"
    );
    let denied = users.post(&any, &json!({ "spec": spec("list") })).await?;
    ensure!(denied["status"] == json!({ "allowed": false }), "{denied}");
    let own = format!("{REVIEWS}/selfsubjectrulesreviews");
    let asked = json!({ "spec": { "namespace": "default" } });
    let (_, answer) = users.send(Some(&alice), Method::POST, &own, &asked).await?;
    let rule = json!({ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] });
    let rules = answer.pointer("/status/resourceRules");
    let rules = rules.and_then(Value::as_array).context("there are rules")?;
    ensure!(rules.contains(&rule), "{answer}");

    let local = format!("{REVIEWS}/namespaces/default/localsubjectaccessreviews");
    for (path, review, code, message) in [
        (
            &any,
            json!({ "spec": { "resourceAttributes": { "verb": "get", "resource": "pods" } } }),
            422,
            r#".authorization.k8s.io "" is invalid: spec.user: Invalid value: "": at least one of user or group must be specified"#,
        ),
        (
            &local,
            json!({ "spec": { "resourceAttributes": { "verb": "get", "resource": "pods" }, "user": "a" } }),
            422,
            r#".authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid value: "": must match metadata.namespace"#,
        ),
        (&own, json!({ "spec": {} }), 400, "no namespace on request"),
    ] {
        let (got, answer) = users.send(None, Method::POST, path, &review).await?;
        ensure!(
            got == code && answer["message"] == message,
            "{path}: {got} {answer}"
        );
    }
    Ok(())
}

both_servers!(tokens_name_their_service_account);
async fn tokens_name_their_service_account(server: &TestServer) -> Result<()> {
    let users = Users::of(server).await?;
    let name = users.name("robot");
    let made = users
        .post(ACCOUNTS, &json!({ "metadata": { "name": name } }))
        .await?;
    let path = format!("{ACCOUNTS}/{name}/token");
    let request = users.post(&path, &json!({ "spec": {} })).await?;
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    let asked = json!({ "spec": { "token": request["status"]["token"] } });
    let review = users.post(reviews, &asked).await?;
    let user = &review["status"]["user"];
    ensure!(review["status"]["authenticated"] == true, "{review}");
    ensure!(user["username"] == format!("system:serviceaccount:default:{name}"));
    ensure!(user["uid"] == made["metadata"]["uid"], "{user}");
    ensure!(
        user["groups"]
            == json!([
                "system:serviceaccounts",
                "system:serviceaccounts:default",
                "system:authenticated"
            ]),
        "{user}"
    );
    let wrong = users
        .post(reviews, &json!({ "spec": { "token": "wrong" } }))
        .await?;
    ensure!(
        wrong["status"] == json!({ "user": {}, "error": "invalid bearer token" }),
        "{wrong}"
    );
    for (spec, code, message) in [
        (
            json!({ "expirationSeconds": 10 }),
            422,
            r#"TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 10: may not specify a duration less than 10 minutes"#,
        ),
        (
            json!({ "boundObjectRef": { "kind": "Pod", "apiVersion": "v1", "name": "nope" } }),
            404,
            r#"pods "nope" not found"#,
        ),
        (
            json!({ "boundObjectRef": { "kind": "ConfigMap", "apiVersion": "v1", "name": "nope" } }),
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
    ] {
        let body = json!({ "spec": spec });
        let (got, answer) = users.send(None, Method::POST, &path, &body).await?;
        ensure!(
            got == code && answer["message"] == message,
            "{got} {answer}"
        );
    }
    Ok(())
}

#[test]
fn every_cluster_has_the_roles_of_a_real_one() {
    let name = "every_cluster_has_the_roles_of_a_real_one";
    run::real_shared(name, async |server| {
        let client = server.client().await?;
        let mut real = Vec::new();
        for (kind, plural) in [
            ("ClusterRole", "clusterroles"),
            ("ClusterRoleBinding", "clusterrolebindings"),
            ("Role", "roles"),
            ("RoleBinding", "rolebindings"),
        ] {
            let selector = "labelSelector=kubernetes.io/bootstrapping%3Drbac-defaults";
            let path = format!("{RBAC}/{plural}?{selector}");
            let (_, list) = net::send(&client, Method::GET, &path, "", &Value::Null).await?;
            let items = list["items"].as_array().context("a list has items")?;
            let mut items: Vec<Value> = items.iter().map(|item| row(kind, item)).collect();
            let place = |item: &Value| {
                let text = |field: &str| {
                    item["metadata"][field]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned()
                };
                (text("namespace"), text("name"))
            };
            items.sort_by_key(place);
            real.extend(items);
        }
        let lines: Vec<String> = real.iter().map(Value::to_string).collect();
        let text = format!("[\n{}\n]\n", lines.join(",\n"));
        if std::env::var_os(BLESS).is_some() {
            let path = Path::new(env!("CARGO_MANIFEST_DIR"));
            let path = path.join("../host/apiserver/src/access/policy.json");
            return fs::write(path, text).context("writing policy.json");
        }
        let ours: Vec<Value> = serde_json::from_str(POLICY)?;
        let name = |row: &Value| {
            let metadata = &row["metadata"];
            format!(
                "{} {} {}",
                row["kind"], metadata["namespace"], metadata["name"]
            )
        };
        let by_name = |rows: &[Value]| -> BTreeMap<String, Value> {
            rows.iter().map(|row| (name(row), row.clone())).collect()
        };
        let (ours, real) = (by_name(&ours), by_name(&real));
        let differ = real
            .iter()
            .filter(|(name, row)| ours.get(*name) != Some(*row));
        let differ: Vec<&String> = differ.map(|(name, _)| name).collect();
        ensure!(
            differ.is_empty() && ours.len() == real.len(),
            "{BLESS}=1 writes policy.json again; it has {} rows instead of {}, and these differ: {differ:?}",
            ours.len(),
            real.len()
        );
        Ok(())
    });
}

/// Returns what the table keeps of an object.
fn row(kind: &str, object: &Value) -> Value {
    let mut row = json!({ "kind": kind, "metadata": {} });
    for field in ["name", "namespace", "labels", "annotations"] {
        if let Some(value) = object["metadata"].get(field) {
            row["metadata"][field] = value.clone();
        }
    }
    for field in ["aggregationRule", "roleRef", "rules", "subjects"] {
        if let Some(value) = object.get(field).filter(|value| !value.is_null()) {
            row[field] = value.clone();
        }
    }
    row
}
