//! Access: who a request comes from, what that user may do, and the words of refusals. The words
//! are those of kube-apiserver 1.36.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderName;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};

use super::{Answer, CMS, CRDS, Cluster, definition};
use crate::access::bootstrap;
use crate::state::State;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

/// A cluster in which roles decide.
fn guarded() -> Cluster {
    let state = State::new();
    state.write(bootstrap::ensure);
    Cluster::of(state, true)
}

impl Cluster {
    async fn by(&self, user: &str, method: &str, path: &str, body: &Value) -> Answer {
        let header = (HeaderName::from_static("impersonate-user"), user);
        self.send(method, path, &[header], &body.to_string()).await
    }

    async fn with_token(&self, token: &str, method: &str, path: &str) -> Answer {
        let header = format!("Bearer {token}");
        self.send(method, path, &[(AUTHORIZATION, &header)], "{}")
            .await
    }

    async fn anonymous(&self, path: &str) -> Answer {
        self.send("GET", path, &[(AUTHORIZATION, "")], "").await
    }

    /// Binds a cluster role to a user, in all namespaces.
    async fn grant(&self, user: &str, role: &str) {
        let binding = json!({
            "metadata": { "generateName": "grant-" },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
            "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
        });
        let path = format!("{RBAC}/clusterrolebindings");
        self.post(&path, &binding).await.ok();
    }
}

#[tokio::test]
async fn roles_decide() {
    let c = guarded();
    let none = json!({});
    c.by("alice", "GET", CMS, &none).await.refused(
        403,
        "Forbidden",
        r#"configmaps is forbidden: User "alice" cannot list resource "configmaps" in API group "" in the namespace "default""#,
    );
    let refused = c.by("alice", "GET", &format!("{CMS}/a"), &none).await;
    assert_eq!(
        refused.body["details"],
        json!({ "kind": "configmaps", "name": "a" })
    );
    // What is not served is not told to those who may not ask.
    c.by("alice", "GET", "/apis/no.such/v1/things", &none)
        .await
        .refused(403, "Forbidden", "things.no.such is forbidden");
    c.get("/apis/no.such/v1/things")
        .await
        .refused(404, "NotFound", "");

    // A role for the core group says nothing about the others.
    let rules = json!([{ "apiGroups": [""], "resources": ["*"], "verbs": ["*"] }]);
    let core = json!({ "metadata": { "name": "core" }, "rules": rules });
    c.post(ROLES, &core).await.ok();
    c.grant("bob", "core").await;
    let path = "/apis//rbac.authorization.k8s.io/v1/clusterroles";
    let refused = c.by("bob", "GET", path, &none).await;
    refused.refused(404, "NotFound", "");

    c.grant("alice", "view").await;
    c.by("alice", "GET", CMS, &none).await.ok();
    let path = "/api/v1/namespaces/default/secrets";
    c.by("alice", "GET", path, &none)
        .await
        .refused(403, "Forbidden", "secrets is forbidden");
    c.by(
        "alice",
        "POST",
        CMS,
        &json!({ "metadata": { "name": "a" } }),
    )
    .await
    .refused(403, "Forbidden", "cannot create resource");
}

#[tokio::test]
async fn a_request_without_credentials_is_anonymous() {
    let c = guarded();
    c.anonymous("/healthz").await.refused_nothing();
    c.anonymous("/version").await.refused_nothing();
    c.anonymous("/api").await.refused(
        403,
        "Forbidden",
        r#"forbidden: User "system:anonymous" cannot get path "/api""#,
    );
    c.with_token("wrong", "GET", "/version")
        .await
        .refused(401, "Unauthorized", "Unauthorized");
    let open = Cluster::new();
    open.anonymous("/api")
        .await
        .refused(401, "Unauthorized", "Unauthorized");
}

impl Answer {
    fn refused_nothing(&self) {
        assert_eq!(self.code, 200, "{}", self.text);
    }
}

#[tokio::test]
async fn a_put_and_an_apply_that_create_need_the_right_to_create() {
    let c = guarded();
    let role = |name: &str, verbs: Value| {
        let group = "coordination.k8s.io";
        let rule = json!({ "apiGroups": [group], "resources": ["leases"], "verbs": verbs });
        json!({ "metadata": { "name": name }, "rules": [rule] })
    };
    let changes = role("changes", json!(["update", "patch"]));
    let creates = role("creates", json!(["create"]));
    for role in [changes, creates] {
        c.post(ROLES, &role).await.ok();
    }
    c.grant("alice", "changes").await;
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "l" },
    });
    let apply = async |name: &str| {
        let as_alice = [
            (HeaderName::from_static("impersonate-user"), "alice"),
            (http::header::CONTENT_TYPE, "application/apply-patch+yaml"),
        ];
        let path = path.replace("leases/l", &format!("leases/{name}"));
        let path = format!("{path}?fieldManager=a");
        let body = lease.to_string().replace("\"l\"", &format!("{name:?}"));
        c.send("PATCH", &path, &as_alice, &body).await
    };
    let why = r#"leases.coordination.k8s.io "l" is forbidden: User "alice" cannot create resource "leases" in API group "coordination.k8s.io" in the namespace "default""#;
    let put = c.by("alice", "PUT", path, &lease).await;
    put.refused(403, "Forbidden", why);
    apply("l").await.refused(403, "Forbidden", why);
    c.grant("alice", "creates").await;
    assert_eq!(c.by("alice", "PUT", path, &lease).await.code, 201);
    assert_eq!(apply("m").await.code, 201);
}

#[tokio::test]
async fn nobody_grants_more_than_they_have() {
    let c = guarded();
    let rules = json!([{ "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["create", "get", "update", "patch"] }]);
    c.post(
        ROLES,
        &json!({ "metadata": { "name": "granter" }, "rules": rules }),
    )
    .await
    .ok();
    c.grant("alice", "granter").await;
    let role = |rules: Value| json!({ "metadata": { "name": "more" }, "rules": rules });
    let more = role(json!([
        { "apiGroups": ["", "apps"], "resources": ["pods"], "verbs": ["get", "list"] },
        { "nonResourceURLs": ["/a"], "verbs": ["get"] },
    ]));
    let refused = c.by("alice", "POST", ROLES, &more).await;
    refused.refused(
        403,
        "Forbidden",
        "clusterroles.rbac.authorization.k8s.io \"more\" is forbidden: user \"alice\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}\n{APIGroups:[\"apps\"], Resources:[\"pods\"], Verbs:[\"get\" \"list\"]}\n{NonResourceURLs:[\"/a\"], Verbs:[\"get\"]}",
    );
    // What alice has, she may give.
    c.by("alice", "POST", ROLES, &role(rules)).await.ok();
    let wider = json!({ "rules": more["rules"] });
    let merge = "application/merge-patch+json";
    let as_alice = [
        (HeaderName::from_static("impersonate-user"), "alice"),
        (http::header::CONTENT_TYPE, merge),
    ];
    let path = format!("{ROLES}/more");
    c.send("PATCH", &path, &as_alice, &wider.to_string())
        .await
        .refused(403, "Forbidden", "not currently held");
    // The collector's fields may be changed by anyone who may change the role at all.
    let held = json!({ "metadata": { "finalizers": ["example.com/a"] } });
    c.send("PATCH", &path, &as_alice, &held.to_string())
        .await
        .ok();

    let aggregated = json!({
        "metadata": { "name": "all" },
        "aggregationRule": { "clusterRoleSelectors": [{ "matchLabels": { "a": "b" } }] },
    });
    c.by("alice", "POST", ROLES, &aggregated).await.refused(
        403,
        "Forbidden",
        "must have cluster-admin privileges to use the aggregationRule",
    );
    let bind = |role: &str| {
        json!({
            "metadata": { "name": role.replace(':', "-") },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
        })
    };
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    c.by("alice", "POST", &bindings, &bind("cluster-admin"))
        .await
        .refused(
            403,
            "Forbidden",
            "{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}",
        );
    c.by("alice", "POST", &bindings, &bind("nope"))
        .await
        .refused(
            404,
            "NotFound",
            r#"rolebindings.rbac.authorization.k8s.io "nope" not found"#,
        );
    c.by("alice", "POST", &bindings, &bind("system:basic-user"))
        .await
        .ok();
    let escalate = json!([{ "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["escalate", "bind"] }]);
    c.post(
        ROLES,
        &json!({ "metadata": { "name": "escalator" }, "rules": escalate }),
    )
    .await
    .ok();
    c.grant("alice", "escalator").await;
    c.send("PATCH", &path, &as_alice, &wider.to_string())
        .await
        .ok();
    c.by("alice", "POST", &bindings, &bind("cluster-admin"))
        .await
        .ok();
}

#[tokio::test]
async fn cluster_roles_are_made_of_others() {
    let c = guarded();
    let view = format!("{ROLES}/view");
    let before = c.get(&view).await.ok()["rules"].clone();
    assert!(
        before.as_array().is_some_and(|rules| rules.len() > 3),
        "{before}"
    );
    let rule = json!({ "apiGroups": ["example.com"], "resources": ["vms"], "verbs": ["get"] });
    let role = json!({
        "metadata": { "name": "vms", "labels": { "rbac.authorization.k8s.io/aggregate-to-view": "true" } },
        "rules": [rule],
    });
    c.post(ROLES, &role).await.ok();
    let has = |role: Value| role["rules"].as_array().unwrap().contains(&rule);
    assert!(has(c.get(&view).await.ok()));
    // `edit` is made of `view`, and `admin` of `edit`.
    assert!(has(c.get(&format!("{ROLES}/admin")).await.ok()));
    c.delete(&format!("{ROLES}/vms"), &json!({})).await.ok();
    assert_eq!(c.get(&view).await.ok()["rules"], before);
}

#[tokio::test]
async fn tokens_of_service_accounts_are_accepted_while_they_exist() {
    let c = guarded();
    c.post(ACCOUNTS, &json!({ "metadata": { "name": "robot" } }))
        .await
        .ok();
    let tokens = format!("{ACCOUNTS}/robot/token");
    let request = c.post(&tokens, &json!({ "spec": {} })).await.ok();
    assert_eq!(request["kind"], "TokenRequest");
    assert_eq!(request["spec"]["expirationSeconds"], 3600);
    let token = request["status"]["token"].as_str().unwrap();
    c.with_token(token, "GET", CMS).await.refused(
        403,
        "Forbidden",
        r#"User "system:serviceaccount:default:robot" cannot list resource "configmaps""#,
    );
    c.grant("system:serviceaccount:default:robot", "view").await;
    c.with_token(token, "GET", CMS).await.ok();
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let own = c.with_token(token, "POST", path).await.ok();
    let user = &own["status"]["userInfo"];
    assert_eq!(user["username"], "system:serviceaccount:default:robot");
    assert_eq!(
        user["groups"],
        json!([
            "system:serviceaccounts",
            "system:serviceaccounts:default",
            "system:authenticated"
        ])
    );
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let asked = json!({ "spec": { "token": token } });
    let review = c.post(path, &asked).await.ok();
    assert_eq!(review["status"]["authenticated"], true, "{review}");
    assert_eq!(review["status"]["user"]["uid"], user["uid"]);
    let other = json!({ "spec": { "token": token, "audiences": ["vault"] } });
    let review = c.post(path, &other).await.ok();
    assert_eq!(
        review["status"],
        json!({ "user": {}, "error": "invalid bearer token" })
    );
    let narrow = json!({ "spec": { "audiences": ["vault"] } });
    let narrow = c.post(&tokens, &narrow).await.ok();
    let narrow = narrow["status"]["token"].as_str().unwrap();
    c.with_token(narrow, "GET", CMS)
        .await
        .refused(401, "Unauthorized", "");

    c.post(&tokens, &json!({ "spec": { "expirationSeconds": 10 } })).await.refused(
        422,
        "Invalid",
        "spec.expirationSeconds: Invalid value: 10: may not specify a duration less than 10 minutes",
    );
    let bound = json!({ "spec": { "boundObjectRef": { "apiVersion": "v1", "kind": "Secret", "name": "s" } } });
    c.post(&tokens, &bound)
        .await
        .refused(404, "NotFound", r#"secrets "s" not found"#);
    let secrets = "/api/v1/namespaces/default/secrets";
    c.post(secrets, &json!({ "metadata": { "name": "s" } }))
        .await
        .ok();
    let bound = c.post(&tokens, &bound).await.ok();
    let bound = bound["status"]["token"].as_str().unwrap();
    c.with_token(bound, "GET", CMS).await.ok();
    c.delete(&format!("{secrets}/s"), &json!({})).await.ok();
    c.with_token(bound, "GET", CMS)
        .await
        .refused(401, "Unauthorized", "");

    c.delete(&format!("{ACCOUNTS}/robot"), &json!({}))
        .await
        .ok();
    c.with_token(token, "GET", CMS)
        .await
        .refused(401, "Unauthorized", "");
    c.post(ACCOUNTS, &json!({ "metadata": { "name": "robot" } }))
        .await
        .ok();
    c.with_token(token, "GET", CMS)
        .await
        .refused(401, "Unauthorized", "");
}

#[tokio::test]
async fn a_definition_does_not_reach_the_roles_of_the_cluster() {
    let c = guarded();
    let view = format!("{ROLES}/view");
    let before = c.get(&view).await.ok();
    let mut definition = definition();
    definition["metadata"] = json!({
        "name": "clusterroles.rbac.authorization.k8s.io",
        "annotations": { "api-approved.kubernetes.io": "unapproved, a test" },
    });
    let spec = &mut definition["spec"];
    spec["group"] = json!("rbac.authorization.k8s.io");
    spec["names"] = json!({ "kind": "Thing", "plural": "clusterroles" });
    spec["scope"] = json!("Cluster");
    spec["versions"][0]["name"] = json!("v7");
    let made = c.post(CRDS, &definition).await.ok();
    assert_eq!(c.get(&view).await.ok(), before);
    let name = made["metadata"]["name"].as_str().unwrap();
    c.delete(&format!("{CRDS}/{name}"), &json!({})).await.ok();
    assert_eq!(c.get(&view).await.ok(), before);
}

#[tokio::test]
async fn a_certificate_is_approved_by_users_who_may_approve_for_its_signer() {
    const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let c = guarded();
    let key = rcgen::KeyPair::generate().unwrap();
    let request = rcgen::CertificateParams::default().serialize_request(&key);
    let pem = request.unwrap().pem().unwrap();
    let request = json!({
        "metadata": { "name": "r" },
        "spec": { "request": STANDARD.encode(pem), "signerName": "a.b/c", "usages": ["client auth"] },
    });
    c.post(REQUESTS, &request).await.ok();
    let rules = json!([{
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["certificatesigningrequests/approval"],
        "verbs": ["patch"],
    }]);
    let role = json!({ "metadata": { "name": "approver" }, "rules": rules });
    c.post(ROLES, &role).await.ok();
    c.grant("alice", "approver").await;
    let path = format!("{REQUESTS}/r/approval");
    let condition = json!({ "type": "Approved", "status": "True", "reason": "a" });
    let patch = json!({ "status": { "conditions": [condition] } }).to_string();
    let merge = (http::header::CONTENT_TYPE, "application/merge-patch+json");
    let alice = (HeaderName::from_static("impersonate-user"), "alice");
    let both = [merge, alice];
    let refused = c.send("PATCH", &path, &both, &patch).await;
    refused.refused(
        403,
        "Forbidden",
        r#"user not permitted to approve requests with signerName "a.b/c""#,
    );
    let rules = json!([{
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["signers"],
        "resourceNames": ["a.b/*"],
        "verbs": ["approve"],
    }]);
    let role = json!({ "metadata": { "name": "signers" }, "rules": rules });
    c.post(ROLES, &role).await.ok();
    c.grant("alice", "signers").await;
    let done = c.send("PATCH", &path, &both, &patch).await.ok();
    let condition = &done["status"]["conditions"][0];
    assert_eq!(condition["type"], "Approved", "{done}");
    assert!(condition["lastUpdateTime"].is_string(), "{done}");
}

#[tokio::test]
async fn reviews_tell_the_truth() {
    let c = guarded();
    c.grant("alice", "view").await;
    let asked = |verb: &str| json!({ "resourceAttributes": { "verb": verb, "resource": "pods", "namespace": "default" } });
    let own = format!("{REVIEWS}/selfsubjectaccessreviews");
    for (verb, allowed) in [("get", true), ("delete", false)] {
        let review = json!({ "spec": asked(verb) });
        let answer = c.by("alice", "POST", &own, &review).await.ok();
        assert_eq!(answer["status"]["allowed"], allowed, "{answer}");
        let mut spec = asked(verb);
        spec["user"] = json!("alice");
        let any = format!("{REVIEWS}/subjectaccessreviews");
        let answer = c.post(&any, &json!({ "spec": spec })).await.ok();
        assert_eq!(answer["status"]["allowed"], allowed, "{answer}");
        let local = format!("{REVIEWS}/namespaces/default/localsubjectaccessreviews");
        let review = json!({ "metadata": { "namespace": "default" }, "spec": spec });
        let answer = c.post(&local, &review).await.ok();
        assert_eq!(answer["status"]["allowed"], allowed, "{answer}");
    }
    let any = format!("{REVIEWS}/subjectaccessreviews");
    c.post(&any, &json!({ "spec": asked("get") })).await.refused(
        422,
        "Invalid",
        r#".authorization.k8s.io "" is invalid: spec.user: Invalid value: "": at least one of user or group must be specified"#,
    );
    let path = json!({ "nonResourceAttributes": { "verb": "get", "path": "/version" }, "groups": ["system:unauthenticated"] });
    let answer = c.post(&any, &json!({ "spec": path })).await.ok();
    assert_eq!(
        answer["status"],
        json!({ "allowed": true, "reason": r#"RBAC: allowed by ClusterRoleBinding "system:public-info-viewer" of ClusterRole "system:public-info-viewer" to Group "system:unauthenticated""# })
    );
    let rules = format!("{REVIEWS}/selfsubjectrulesreviews");
    c.by("alice", "POST", &rules, &json!({ "spec": {} }))
        .await
        .refused(400, "BadRequest", "no namespace on request");
    let review = json!({ "spec": { "namespace": "default" } });
    let answer = c.by("alice", "POST", &rules, &review).await.ok();
    let rules = answer["status"]["resourceRules"].as_array().unwrap();
    let has_pods = |rule: &Value| {
        rule["resources"]
            .as_array()
            .unwrap()
            .contains(&json!("pods"))
    };
    assert!(rules.iter().any(has_pods), "{answer}");
    assert_eq!(answer["status"]["incomplete"], false);
}

#[tokio::test]
async fn only_those_who_may_impersonate_others() {
    let c = guarded();
    c.post(ACCOUNTS, &json!({ "metadata": { "name": "robot" } }))
        .await
        .ok();
    let request = c
        .post(&format!("{ACCOUNTS}/robot/token"), &json!({ "spec": {} }))
        .await
        .ok();
    let token = format!("Bearer {}", request["status"]["token"].as_str().unwrap());
    let as_user = |user: &'static str| {
        [
            (AUTHORIZATION, token.as_str()),
            (HeaderName::from_static("impersonate-user"), user),
        ]
    };
    let pod = "/api/v1/namespaces/default/pods/x";
    c.send("GET", pod, &as_user("bob"), "").await.refused(
        403,
        "Forbidden",
        r#"pods "x" is forbidden: User "system:serviceaccount:default:robot" cannot impersonate-on:user-info:get resource "pods" in API group "" in the namespace "default""#,
    );
    c.send("GET", pod, &as_user("system:serviceaccount:a:b"), "")
        .await
        .refused(
            403,
            "Forbidden",
            "cannot impersonate-on:serviceaccount:get resource",
        );
    let rules = json!([{ "apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"], "verbs": ["impersonate"] }]);
    c.post(
        ROLES,
        &json!({ "metadata": { "name": "as-bob" }, "rules": rules }),
    )
    .await
    .ok();
    c.grant("system:serviceaccount:default:robot", "as-bob")
        .await;
    let review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let own = c.send("POST", review, &as_user("bob"), "{}").await.ok();
    assert_eq!(
        own["status"]["userInfo"],
        json!({ "username": "bob", "groups": ["system:authenticated"] })
    );
    c.send("POST", review, &as_user("eve"), "{}").await.refused(
        403,
        "Forbidden",
        "impersonate-on:user-info:create",
    );
    // Everyone may, where nothing is forbidden.
    let open = Cluster::new();
    let own = open.by("carol", "POST", review, &json!({})).await.ok();
    assert_eq!(own["status"]["userInfo"]["username"], "carol");
}
