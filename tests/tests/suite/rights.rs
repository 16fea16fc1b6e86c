//! Rights: a key whose write is forbidden waits until it is permitted, and the host asks once per
//! right when that is.

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use vmhost_tests::obey::{Obey, complete};
use vmhost_tests::proxy::{Proxy, Refusal, Request};
use vmhost_tests::real::PLAIN_USER;
use vmhost_tests::server::TestServer;
use vmhost_tests::vm::{PLURAL, Vms};
use vmhost_tests::wait::eventually;
use vmhost_tests::{both_servers, run};

const GROUP: &str = "cloud.waibizi.com";
const KEYS: usize = 20;

/// Returns whether this asks for the right to patch VMs, of one object or of all.
fn asks_to_patch(request: &Request) -> bool {
    let asked = request.json()["spec"]["resourceAttributes"].clone();
    request.path.ends_with("/selfsubjectaccessreviews")
        && asked["verb"] == "patch"
        && asked["resource"] == PLURAL
}

/// Returns whether this asks for the right to patch all VMs.
fn asks_to_patch_all(request: &Request) -> bool {
    asks_to_patch(request) && request.json()["spec"]["resourceAttributes"]["name"].is_null()
}

/// Makes the embedded server answer as with access control: writes are refused, and reviews are
/// answered "denied".
fn forbid(proxy: &Proxy) {
    proxy.refuse(usize::MAX, Refusal::forbidden(), |request| {
        request.writes(PLURAL)
    });
    proxy.rewrite(
        |review| review.replace("\"allowed\":true", "\"allowed\":false"),
        asks_to_patch,
    );
}

async fn events_about(server: &TestServer, vms: &Vms, name: &str) -> Result<Vec<String>> {
    let events: Api<Event> = Api::namespaced(server.client().await?, vms.namespace());
    let about = |event: &Event| {
        let regarding = event.regarding.as_ref()?;
        (regarding.name.as_deref() == Some(name)).then(|| event.note.clone().unwrap_or_default())
    };
    Ok(events
        .list(&Default::default())
        .await?
        .items
        .iter()
        .filter_map(about)
        .collect())
}

fn lines(obey: &Obey, text: &str) -> usize {
    let output = obey.host.output();
    output.iter().filter(|line| line.contains(text)).count()
}

/// Returns the turns of a VM so far, without those that repeat a write which got no answer in time.
/// Such a write can occur on any busy machine, and is not refused.
fn answered_turns(obey: &Obey, name: &str) -> Vec<Value> {
    let mut turns = obey.turns(name);
    turns.retain(|turn| turn["last"]["reason"] != "NoAnswer");
    turns
}

both_servers!(a_grant_wakes_all_that_wait_for_the_right);
async fn a_grant_wakes_all_that_wait_for_the_right(server: &TestServer) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::start(server, proxy.kubeconfig()).await?;
    // The host has checked the plugin's missing rights at the start.
    proxy
        .wait_for(1, |request| {
            asks_to_patch(request) && request.answered.is_some()
        })
        .await?;
    forbid(&proxy);
    let names: Vec<String> = (0..KEYS)
        .map(|number| format!("waiting-{number}"))
        .collect();
    for name in &names {
        obey.order(name, json!({ "effects": [complete()] })).await?;
    }
    let right = format!(
        "patch {PLURAL}.{GROUP} in namespace {}",
        obey.vms.namespace()
    );
    obey.host
        .wait_for_line(&format!("forbidden to {right}"))
        .await?;
    for name in &names {
        obey.until_turns(name, 1).await?;
    }
    proxy.wait_for(4, asks_to_patch_all).await?;
    for name in &names {
        let turns = answered_turns(&obey, name);
        ensure!(turns.len() == 1, "it rests while it waits: {turns:?}");
    }
    eventually("the object's Event tells", async || {
        let events = events_about(server, &obey.vms, &names[0]).await?;
        let told = |note: &String| note.contains("waits until vmhost is granted the right");
        Ok(events.iter().any(told).then_some(()))
    })
    .await?;
    let asked = proxy.requests_where(asks_to_patch_all).len();
    ensure!(asked < KEYS, "{asked} questions for one right");

    proxy.clear();
    obey.vms.until_complete(KEYS).await?;
    // A key that has its turn at that moment does not wait, and is not counted.
    obey.host
        .wait_for_line(&format!("RBAC now grants {right}; resuming "))
        .await?;
    // The log comes through a pipe, so its lines may come later than the writes that follow them.
    for name in &names {
        obey.until_turns(name, 2).await?;
    }
    ensure!(
        lines(&obey, "keys that need it wait") == 1,
        "a line for the right"
    );
    ensure!(
        lines(&obey, "RBAC now grants patch") == 1,
        "a line for its grant"
    );
    Ok(())
}

both_servers!(a_refusal_that_is_not_for_want_of_a_right_rests);
async fn a_refusal_that_is_not_for_want_of_a_right_rests(server: &TestServer) -> Result<()> {
    let proxy = server.proxy().await?;
    let obey = Obey::start(server, proxy.kubeconfig()).await?;
    // A refusal of admission or a quota.
    proxy.refuse(usize::MAX, Refusal::forbidden(), |request| {
        request.writes(PLURAL) && request.path.ends_with("/refused")
    });
    obey.order("refused", json!({ "effects": [complete()] }))
        .await?;
    obey.host
        .wait_for_line("the right to do it is granted")
        .await?;
    obey.settle().await?;
    let turns = answered_turns(&obey, "refused");
    ensure!(turns.len() == 2, "once more, and then it rests: {turns:?}");
    ensure!(
        lines(&obey, "keys that need it wait") == 0,
        "no right is missing"
    );
    proxy.clear();
    let changed = json!({ "metadata": { "labels": { "changed": "yes" } } });
    obey.vms.merge("refused", changed).await?;
    obey.vms
        .until_one("refused", "it is complete", |vm| vm.complete())
        .await?;
    Ok(())
}

/// Grants the plain user these rights.
async fn grant(client: &Client, namespace: Option<&str>, name: &str, rules: Value) -> Result<()> {
    let subjects =
        json!([{ "kind": "User", "name": PLAIN_USER, "apiGroup": "rbac.authorization.k8s.io" }]);
    let params = PostParams::default();
    let binding = |kind: &str| {
        let role = json!({ "kind": kind, "name": name, "apiGroup": "rbac.authorization.k8s.io" });
        json!({ "metadata": { "name": name }, "roleRef": role, "subjects": subjects })
    };
    let role = json!({ "metadata": { "name": name }, "rules": rules });
    match namespace {
        Some(namespace) => {
            let roles: Api<Role> = Api::namespaced(client.clone(), namespace);
            roles
                .create(&params, &serde_json::from_value(role)?)
                .await?;
            let bindings: Api<RoleBinding> = Api::namespaced(client.clone(), namespace);
            let binding = serde_json::from_value(binding("Role"))?;
            bindings.create(&params, &binding).await?;
        }
        None => {
            let roles: Api<ClusterRole> = Api::all(client.clone());
            roles
                .create(&params, &serde_json::from_value(role)?)
                .await?;
            let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
            let binding = serde_json::from_value(binding("ClusterRole"))?;
            bindings.create(&params, &binding).await?;
        }
    }
    Ok(())
}

#[test]
fn a_role_is_felt_when_it_is_granted() {
    run::real_only(
        "a_role_is_felt_when_it_is_granted",
        Default::default(),
        async |server| {
            let client = server.client().await?;
            let reads = json!([{ "apiGroups": ["", GROUP], "resources": ["configmaps", PLURAL], "verbs": ["get", "list", "watch"] }]);
            grant(&client, None, "reads", reads).await?;
            let user = server.kubeconfig_of(PLAIN_USER);
            let proxy = Proxy::start(&user.context("it has access control")?).await?;
            let obey = Obey::start(server, proxy.kubeconfig()).await?;
            // One table reports the rights that are missing at the start.
            obey.host.wait_for_line("the plugin obey lacks").await?;
            for name in ["one", "two"] {
                obey.order(name, json!({ "effects": [complete()] })).await?;
                obey.until_turns(name, 1).await?;
            }
            let namespace = obey.vms.namespace().to_owned();
            let rules = |names: Value| {
                let mut rule =
                    json!({ "apiGroups": [GROUP], "resources": [PLURAL], "verbs": ["patch"] });
                if names.is_array() {
                    rule["resourceNames"] = names;
                }
                json!([rule])
            };
            grant(&client, Some(&namespace), "one", rules(json!(["two"]))).await?;
            let two = obey
                .vms
                .until_one("two", "it is complete", |vm| vm.complete());
            two.await.context("granted for one object")?;
            let turns = answered_turns(&obey, "one");
            ensure!(turns.len() == 1, "{turns:?}");
            grant(&client, Some(&namespace), "all", rules(Value::Null)).await?;
            obey.vms.until_complete(2).await?;
            let right = format!("RBAC now grants patch {PLURAL}.{GROUP} in namespace {namespace}");
            obey.host.wait_for_line(&right).await?;
            ensure!(
                lines(&obey, "keys that need it wait") == 0,
                "the table has told it"
            );
            // Other rights that were missing at the start are reported when they are granted, even
            // if no key waits for them.
            let events = json!([{ "apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"] }]);
            grant(&client, Some(&namespace), "events", events).await?;
            let right =
                format!("RBAC now grants create events.events.k8s.io in namespace {namespace}");
            obey.host.wait_for_line(&right).await?;
            Ok(())
        },
    );
}
