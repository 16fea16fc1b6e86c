//! Who may create a Plugin does not get the host's rights: what a hostile component tries, what a
//! hostile `spec` asks for, and what is taken from what runs already.
//!
//! The hosts here have all rights, and work in all namespaces. The attacker has one.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vmhost_tests::account::{Account, RBAC};
use vmhost_tests::both_servers;
use vmhost_tests::example::{User, until_said};
use vmhost_tests::guests::{self, PolicyFile};
use vmhost_tests::host::{self, Host};
use vmhost_tests::plugin_objects::{Objects, POLICIES, message};
use vmhost_tests::server::TestServer;

use crate::plugin_objects::{asking, with};

/// A host with a plugin of the operator's, whose stores hold the Secrets and ConfigMaps of all
/// namespaces, and which follows all Plugins.
async fn host(server: &TestServer) -> Result<(Host, PolicyFile)> {
    let wide = json!({
        "apiVersion": "vmhost/v1",
        "name": "wide",
        "controllers": [{
            "name": "c",
            "primary": { "version": "v1", "kind": "Secret" },
            "reads": [{ "version": "v1", "kind": "ConfigMap" }],
        }],
    });
    let wide = guests::describing(&wide.to_string())?;
    let wide = PolicyFile::new("wide", &wide)?;
    let host = host::on(&server.kubeconfig())?
        .plugin(wide.path())
        .args(["--plugins-from-cluster", "--host-name", "one"])
        .args(["--log-format", "json"])
        .ready()
        .await?;
    Ok((host, wide))
}

/// The component `deputy` under this name, which reads the Secrets of its namespaces and writes
/// ConfigMaps.
fn deputy(name: &str) -> Result<Vec<u8>> {
    let description = json!({
        "apiVersion": "vmhost/v1",
        "name": name,
        "controllers": [
            {
                "name": "maps",
                "primary": { "version": "v1", "kind": "ConfigMap" },
                "reads": [{ "version": "v1", "kind": "Secret" }],
            },
            { "name": "timer", "timer": { "once": true } },
        ],
        "permissions": [
            { "version": "v1", "kind": "ConfigMap", "verbs": ["create", "patch", "delete"] },
        ],
    });
    guests::described(guests::DEPUTY, &description.to_string())
}

fn maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

async fn create(user: &User, path: &str, name: &str, more: Value) -> Result<()> {
    let object = with(json!({ "metadata": { "name": name } }), &more);
    user.create(path, &object).await.map(drop)
}

/// Creates a Secret and a ConfigMap that are worth something.
async fn treasure(user: &User, namespace: &str) -> Result<()> {
    let secrets = format!("/api/v1/namespaces/{namespace}/secrets");
    create(user, &secrets, "gold", json!({})).await?;
    create(user, &maps(namespace), "gold", json!({})).await
}

/// The names of the plugins that run.
async fn running(host: &Host) -> Result<Vec<String>> {
    let plugins = host.state().await?.plugins.into_iter();
    Ok(plugins.map(|plugin| plugin.name).collect())
}

both_servers!(a_component_reaches_nothing_outside_of_its_namespace, own);
async fn a_component_reaches_nothing_outside_of_its_namespace(server: &TestServer) -> Result<()> {
    let own = server.namespace("attacker").await?;
    let victim = server.namespace("victim").await?;
    let objects = Objects::of(server, &own).await?;
    let user = &objects.user;
    treasure(user, &victim).await?;
    treasure(user, &own).await?;
    let (host, _wide) = host(server).await?;
    objects.component("deputy", &deputy("deputy")?).await?;
    objects.plugin("deputy", json!({})).await?;
    objects
        .until("deputy", "Available", "True", "Available")
        .await?;

    reads(user, &host, &own, &victim).await?;
    writes(user, &own, &victim).await?;
    events(user, &own, &victim).await
}

/// Reads of the stores that the operator's plugin filled with all namespaces, and live.
async fn reads(user: &User, host: &Host, own: &str, victim: &str) -> Result<()> {
    let secret = |id: &str, place: Value, live: bool| {
        let probe = json!({ "id": id, "kind": "Secret", "live": live });
        with(probe, &place)
    };
    let named = |namespace: &str| json!({ "namespace": namespace, "name": "gold" });
    let found = [
        secret("own", named(own), false),
        secret("own-live", named(own), true),
        secret("list-all", json!({}), false),
    ];
    let refused = [
        secret("cached", named(victim), false),
        secret("live", named(victim), true),
        secret("list", json!({ "namespace": victim }), false),
        secret("list-live", json!({ "namespace": victim }), true),
        secret("list-all-live", json!({}), true),
        secret("dots", named(&format!("{own}/../{victim}")), true),
        json!({ "id": "map", "kind": "ConfigMap", "namespace": victim, "name": "gold" }),
        json!({ "id": "node", "kind": "Node", "name": "n", "live": true }),
        json!({ "id": "namespace", "kind": "Namespace", "name": victim, "live": true }),
    ];
    let probes = Value::Array([found.as_slice(), refused.as_slice()].concat());
    let annotations = json!({ "vmhost.test/probes": probes.to_string() });
    let probe = json!({ "metadata": { "name": "probe", "annotations": annotations } });
    user.create(&maps(own), &probe).await?;
    let answer = async |probe: &Value| {
        let id = probe["id"].as_str().unwrap_or_default();
        until_said(host, &format!("PROBE {id} ")).await
    };
    for probe in &found {
        let said = answer(probe).await?;
        ensure!(said.ends_with("found 1"), "{said}");
    }
    for probe in &refused {
        let said = answer(probe).await?;
        ensure!(said.contains("refused: "), "{said}");
    }
    Ok(())
}

/// Writes. Each is refused, which an Event in the attacker's own namespace tells.
async fn writes(user: &User, own: &str, victim: &str) -> Result<()> {
    let map =
        |metadata: Value| json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata });
    let planted = |namespace: &str| map(json!({ "namespace": namespace, "name": "planted" }));
    let key = |namespace: &str| {
        let kind = "ConfigMap";
        json!({ "version": "v1", "kind": kind, "namespace": namespace, "name": "gold" })
    };
    let order = async |name: &str, effect: Value| {
        let orders = json!({ "effects": [effect] }).to_string();
        let metadata = json!({ "name": name, "annotations": { "vmhost.test/turn": orders } });
        let object = json!({ "metadata": metadata });
        user.create(&maps(own), &object).await
    };
    // The guest follows such orders: in its own namespace they work.
    order("own", json!({ "create": planted(own) })).await?;
    let path = format!("{}/planted", maps(own));
    user.until(&path, "it is written", |_| true).await?;

    let nowhere = map(json!({ "name": "planted" }));
    let space = json!({ "name": "planted" });
    let space = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": space });
    let dots = format!("{own}/../{victim}");
    let applied = planted(victim);
    for (name, effect) in [
        ("create", json!({ "create": planted(victim) })),
        (
            "apply",
            json!({ "apply": applied, "force": true, "createIfAbsent": true }),
        ),
        (
            "merge",
            json!({ "merge": { "data": { "a": "b" } }, "key": key(victim) }),
        ),
        ("delete", json!({ "delete": key(victim) })),
        ("dots", json!({ "delete": key(&dots) })),
        ("nowhere", json!({ "create": nowhere })),
        ("kind", json!({ "create": space })),
        (
            "below",
            json!({ "merge": { "a": "b" }, "key": key(own), "subresource": "status" }),
        ),
    ] {
        order(name, effect).await?;
        let event = user.until_event(own, name, "ReconcileFailed").await?;
        let note = event["note"].as_str().unwrap_or_default();
        ensure!(note.starts_with("cannot "), "{name}: {note}");
    }
    let gold = user.get(&format!("{}/gold", maps(victim))).await?;
    let gold = gold.context("the victim's ConfigMap was deleted")?;
    ensure!(gold["data"].is_null(), "the victim has {gold}");
    for path in [
        format!("{}/planted", maps(victim)),
        format!("{}/planted", maps("default")),
        "/api/v1/namespaces/planted".to_owned(),
    ] {
        ensure!(user.get(&path).await?.is_none(), "{path} was written");
    }
    Ok(())
}

/// Events: one about a key without a namespace stays in the plugin's own.
async fn events(user: &User, own: &str, victim: &str) -> Result<()> {
    let is_its = |event: &Value| {
        let controller = event["reportingController"].as_str();
        controller.is_some_and(|controller| controller.contains("deputy"))
    };
    let event = user.until_event(own, "timer", "Deputy").await?;
    ensure!(is_its(&event), "{event}");
    for namespace in ["default", victim] {
        let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
        let events = user.get(&path).await?.unwrap_or_default();
        let mut all = events["items"].as_array().into_iter().flatten();
        ensure!(!all.any(is_its), "{events}");
    }
    Ok(())
}

both_servers!(a_spec_asks_for_more_in_vain, own);
async fn a_spec_asks_for_more_in_vain(server: &TestServer) -> Result<()> {
    let own = server.namespace("attacker").await?;
    let victim = server.namespace("victim").await?;
    let objects = Objects::of(server, &own).await?;
    treasure(&objects.user, &victim).await?;
    let writes = |group: &str, version: &str, kind: &str, subresources: &[&str]| {
        json!({ "permissions": [{
            "group": group, "version": version, "kind": kind,
            "verbs": ["create", "patch"], "subresources": subresources,
        }] })
    };
    let webhook = json!({ "webhooks": [{
        "name": "w", "type": "validating",
        "rules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"],
            "operations": ["CREATE"],
        }],
    }] });
    let grants = |grants: Value| json!({ "grants": grants });
    let none = json!({});
    let scoped = ("Granted", "OutsideScope");
    let invalid = ("Granted", "GrantsInvalid");
    let cases = [
        (
            "all",
            none.clone(),
            grants(json!({ "namespaces": ["*"] })),
            scoped,
            "in all namespaces",
        ),
        (
            "other",
            none.clone(),
            grants(json!({ "namespaces": [victim] })),
            scoped,
            victim.as_str(),
        ),
        (
            "escalate",
            writes("rbac.authorization.k8s.io", "v1", "RoleBinding", &[]),
            none.clone(),
            scoped,
            "hand on",
        ),
        (
            "status",
            writes("vmhost.dev", "v1alpha1", "Plugin", &["status"]),
            none.clone(),
            scoped,
            "hand on",
        ),
        (
            "token",
            writes("", "v1", "ServiceAccount", &["token"]),
            none.clone(),
            scoped,
            "hand on",
        ),
        (
            "dots",
            none.clone(),
            grants(json!({ "namespaces": [".."] })),
            invalid,
            "namespaces",
        ),
        (
            "path",
            none.clone(),
            grants(json!({ "namespaces": ["a/secrets?x="] })),
            invalid,
            "namespaces",
        ),
        (
            "user",
            none.clone(),
            json!({ "serviceAccountName": "x:y" }),
            invalid,
            "serviceAccountName",
        ),
        (
            "http",
            json!({ "http": [{ "host": "vault.internal.example" }] }),
            grants(json!({ "http": ["*"] })),
            ("Granted", "Denied"),
            "vault.internal.example",
        ),
        (
            "webhook",
            webhook,
            grants(json!({ "webhooks": true })),
            ("Granted", "Denied"),
            "webhooks",
        ),
        (
            "secret",
            none.clone(),
            json!({ "settingsFrom": [{ "secretRef": { "name": format!("../{victim}/gold") } }] }),
            ("Loaded", "SettingsInvalid"),
            "no name",
        ),
        (
            "missing",
            none.clone(),
            json!({ "serviceAccountName": "nobody" }),
            scoped,
            "does not exist",
        ),
    ];
    for (name, more, spec, ..) in &cases {
        objects.component(name, &asking(name, more)?).await?;
        objects.plugin(name, spec.clone()).await?;
    }
    let (host, _wide) = host(server).await?;
    for (name, _, _, (kind, reason), words) in &cases {
        let refused = objects.until(name, kind, "False", reason).await?;
        let why = message(&refused, kind);
        ensure!(why.contains(words), "{name}: {why}");
    }
    ensure!(running(&host).await? == ["wide"], "one of them runs");
    Ok(())
}

both_servers!(what_runs_is_taken_off_when_it_is_granted_no_more, own);
async fn what_runs_is_taken_off_when_it_is_granted_no_more(server: &TestServer) -> Result<()> {
    let own = server.namespace("attacker").await?;
    let victim = server.namespace("victim").await?;
    let objects = Objects::of(server, &own).await?;
    let user = &objects.user;
    let rules = json!({ "rules": [
        { "apiGroups": [""], "resources": ["secrets", "configmaps"],
          "verbs": ["get", "list", "watch", "create", "patch", "delete"] },
        { "apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"] },
    ] });
    create(user, &format!("{RBAC}/clusterroles"), "spy", rules).await?;
    let reader = Account::of(&own, "reader");
    for namespace in [&own, &victim] {
        let binding = json!({
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "spy",
            },
            "subjects": [{ "kind": "ServiceAccount", "name": "reader", "namespace": own }],
        });
        let bindings = format!("{RBAC}/namespaces/{namespace}/rolebindings");
        create(user, &bindings, "spy", binding).await?;
    }
    objects.component("spy", &deputy("spy")?).await?;
    let spec = json!({
        "serviceAccountName": "reader",
        "grants": { "namespaces": [own, victim] },
    });
    objects.plugin("spy", spec).await?;
    let (host, _wide) = host(server).await?;

    // Rights that wait for an account of this name are nobody's.
    let absent = objects
        .until("spy", "Granted", "False", "OutsideScope")
        .await?;
    let why = message(&absent, "Granted");
    ensure!(why.contains("does not exist"), "{why}");
    Account::create(user, &own, "reader").await?;
    objects
        .until("spy", "Available", "True", "Available")
        .await?;

    // A right is taken away: the version that runs is off, not only the next one refused.
    user.delete(&format!("{RBAC}/namespaces/{victim}/rolebindings/spy"))
        .await?;
    let right = json!({ "resourceAttributes": {
        "verb": "list", "resource": "secrets", "namespace": victim,
    } });
    reader.until_allowed(user, &right, false).await?;
    let news = json!({ "spec": { "settings": { "ask": "again" } } });
    user.merge(&objects.at("spy"), news).await?;
    let off = objects
        .until("spy", "Available", "False", "NotRunning")
        .await?;
    let why = message(&off, "Granted");
    ensure!(
        why.contains(&reader.user_name()) && why.contains(&victim),
        "{why}"
    );
    ensure!(running(&host).await? == ["wide"]);

    // Only its own namespace: it runs again, until a policy allows less, whatever another one says.
    let less = json!({ "spec": { "serviceAccountName": null, "grants": null } });
    user.merge(&objects.at("spy"), less).await?;
    objects
        .until("spy", "Available", "True", "Available")
        .await?;
    let policy = |name: &str, kinds: &[&str]| {
        json!({
            "apiVersion": "vmhost.dev/v1alpha1",
            "kind": "PluginPolicy",
            "metadata": { "name": name },
            "spec": { "grants": { "reads": [{ "groups": [""], "kinds": kinds }] } },
        })
    };
    user.create(POLICIES, &policy("all", &["*"])).await?;
    user.create(POLICIES, &policy("no-secrets", &["ConfigMap"]))
        .await?;
    let off = objects
        .until("spy", "Available", "False", "NotRunning")
        .await?;
    let why = message(&off, "Granted");
    ensure!(why.contains("read Secret.v1"), "{why}");
    ensure!(running(&host).await? == ["wide"]);
    user.delete(&format!("{POLICIES}/no-secrets")).await?;
    objects
        .until("spy", "Available", "True", "Available")
        .await?;

    // A policy whose selector makes no sense neither is lost nor allows anything.
    let broken = json!({ "spec": { "namespaceSelector": { "matchLabels": { "a b": "c" } } } });
    user.merge(&format!("{POLICIES}/all"), broken).await?;
    let stopped = objects
        .until("spy", "Verified", "False", "PoliciesUnknown")
        .await?;
    let why = message(&stopped, "Verified");
    ensure!(why.contains("PluginPolicy all"), "{why}");
    Ok(())
}
