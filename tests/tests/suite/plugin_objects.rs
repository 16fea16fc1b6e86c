//! Plugins that are objects of the cluster: conditions, swaps, what stays when a new version is
//! bad, and what nobody gets by creating one.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::guests::{self, Mode};
use vmhost_tests::host::{self, Host};
use vmhost_tests::plugin_objects::{Objects, POLICIES, condition, message};
use vmhost_tests::server::{Target, TestServer};
use vmhost_tests::vm::Vms;

/// Returns a component that does nothing, and has these fields in its description.
pub(crate) fn asking(name: &str, more: &Value) -> Result<Vec<u8>> {
    let description = json!({
        "apiVersion": "vmhost/v1",
        "name": name,
        "controllers": [{ "name": "c", "primary": {
            "version": "v1", "kind": "ConfigMap", "metadataOnly": true,
        } }],
    });
    guests::describing(&with(description, more).to_string())
}

/// Returns an object with more fields, which replace those of the same names.
pub(crate) fn with(mut object: Value, more: &Value) -> Value {
    for (field, value) in more.as_object().into_iter().flatten() {
        object[field] = value.clone();
    }
    object
}

async fn host(server: &TestServer, namespace: &str) -> Result<Host> {
    host::on(&server.kubeconfig())?
        .arg(format!("--plugins-from-cluster={namespace}"))
        .args(["--host-name", "one"])
        .namespace(namespace)
        .ready()
        .await
}

both_servers!(a_plugin_object_is_run_swapped_and_removed, own);
async fn a_plugin_object_is_run_swapped_and_removed(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let objects = Objects::of(server, vms.namespace()).await?;
    objects
        .component("vm", &guests::vm_stamp(1, Mode::Keep)?)
        .await?;
    objects.plugin("vm", json!({})).await?;
    let host = host(server, vms.namespace()).await?;
    let first = objects
        .until("vm", "Available", "True", "Available")
        .await?;
    ensure!(first["status"]["plugin"] == "vm-stamp", "{first}");
    ensure!(first["status"]["observedGeneration"] == 1, "{first}");
    vms.create(0..3, 0).await?;
    vms.until_complete(3).await?;
    let one = first["status"]["currentRevision"].clone();
    let name = one.as_str().context("no revision")?;
    let path = format!("{}/{name}", objects.path("pluginrevisions"));
    let revision = objects.user.get(&path).await?.context("no object")?;
    ensure!(revision["spec"]["number"] == 1, "{revision}");
    let changed = json!({ "spec": { "number": 7 } });
    let Err(refused) = objects.user.merge(&path, changed).await else {
        bail!("a revision was changed");
    };
    let refused = refused.to_string();
    ensure!(refused.contains("a revision never changes"), "{refused}");

    // Other bytes: a swap, a second revision, the same queue.
    objects
        .component("vm", &guests::vm_stamp(2, Mode::Keep)?)
        .await?;
    host.wait_for_line("swapped vm-stamp: generation 2").await?;
    let path = objects.at("vm");
    let second = objects.user.until(&path, "the second runs", |plugin| {
        plugin["status"]["currentRevision"] != one && plugin["status"]["hosts"][0]["ready"] == true
    });
    let second = second.await?;
    ensure!(second["status"]["hosts"][0]["name"] == "one", "{second}");

    // Bytes that are no component: a condition, and the version before goes on.
    objects.component("vm", b"no component").await?;
    let bad = objects
        .until("vm", "Loaded", "False", "NotLoadable")
        .await?;
    let available = condition(&bad, "Available").context("no condition")?;
    ensure!(available["status"] == "True", "{bad}");
    ensure!(
        bad["status"]["currentRevision"] == second["status"]["currentRevision"],
        "{bad}"
    );
    vms.create(3..5, 0).await?;
    vms.until_complete(5).await?;
    objects
        .user
        .until_event(vms.namespace(), "vm", "NotLoaded")
        .await?;

    objects.user.delete(&objects.at("vm")).await?;
    objects.user.until_gone(&objects.at("vm")).await?;
    host.wait_for_line("removed").await?;
    let state = host.state().await?;
    ensure!(state.plugins.is_empty(), "{state:?}");
    Ok(())
}

both_servers!(nobody_gets_more_by_creating_a_plugin, own);
async fn nobody_gets_more_by_creating_a_plugin(server: &TestServer) -> Result<()> {
    let vms = Vms::install(server).await?;
    let objects = Objects::of(server, vms.namespace()).await?;
    let node = json!({ "name": "c", "primary": { "version": "v1", "kind": "Node" } });
    let nodes = json!({ "controllers": [node] });
    let elsewhere = json!({ "permissions": [{
        "version": "v1", "kind": "Secret", "verbs": ["delete"], "namespaces": ["kube-system"],
    }] });
    let size = json!({ "size": { "type": "integer" } });
    let sized = json!({ "settingsSchema": { "type": "object", "properties": size } });
    for (map, name, more) in [
        ("nodes", "nodes", &nodes),
        ("elsewhere", "elsewhere", &elsewhere),
        ("sized", "sized", &sized),
        ("twin", "sized", &sized),
    ] {
        objects.component(map, &asking(name, more)?).await?;
    }
    for name in ["nodes", "elsewhere"] {
        objects.plugin(name, json!({})).await?;
    }
    let wrong = json!({ "settings": { "size": "much", "wieght": 1 } });
    objects.plugin("sized", wrong).await?;
    let host = host(server, vms.namespace()).await?;

    let refused = objects
        .until("nodes", "Granted", "False", "OutsideScope")
        .await?;
    let why = message(&refused, "Granted");
    ensure!(
        why.contains("nodes") && why.contains("serviceAccountName"),
        "{why}"
    );
    let refused = objects
        .until("elsewhere", "Granted", "False", "Denied")
        .await?;
    let why = message(&refused, "Granted");
    ensure!(
        why.contains("write Secret.v1 in namespace kube-system"),
        "{why}"
    );
    let refused = objects
        .until("sized", "Loaded", "False", "SettingsInvalid")
        .await?;
    let why = message(&refused, "Loaded");
    ensure!(
        why.contains("settings.size") && why.contains("settings.wieght"),
        "{why}"
    );
    ensure!(host.state().await?.plugins.is_empty(), "one of them runs");

    // The embedded server of these tests allows everybody everything.
    if server.target() == Target::Real {
        // A service account without rights is told what it may not do.
        let account = json!({ "spec": { "serviceAccountName": "nobody" } });
        objects.user.merge(&objects.at("nodes"), account).await?;
        let path = objects.at("nodes");
        let is_refused = |plugin: &Value| message(plugin, "Granted").contains("nobody may not");
        objects
            .user
            .until(&path, "the account is asked for", is_refused)
            .await?;
    }

    // What is mended runs, and a second one of its name does not.
    let mended = json!({ "spec": { "settings": { "size": 3, "wieght": null } } });
    objects.user.merge(&objects.at("sized"), mended).await?;
    objects
        .until("sized", "Available", "True", "Available")
        .await?;
    objects.plugin("twin", json!({})).await?;
    let refused = objects
        .until("twin", "Loaded", "False", "NameTaken")
        .await?;
    let why = message(&refused, "Loaded");
    ensure!(why.contains(r#""sized""#), "{why}");

    // A policy only tightens.
    let policy = json!({
        "apiVersion": "vmhost.dev/v1alpha1",
        "kind": "PluginPolicy",
        "metadata": { "name": "images-only" },
        "spec": { "sources": ["registry.example.com/*"] },
    });
    objects.user.create(POLICIES, &policy).await?;
    let refused = objects
        .until("sized", "Verified", "False", "Refused")
        .await?;
    let why = message(&refused, "Verified");
    ensure!(why.contains("images-only"), "{why}");
    let available = condition(&refused, "Available").context("no condition")?;
    ensure!(available["status"] == "True", "it goes on: {refused}");
    Ok(())
}
