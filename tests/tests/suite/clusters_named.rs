//! The effect `in-cluster`: a turn writes to the cluster that it names, within the plugin's grants.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::fleet::Pair;
use vmhost_tests::guests::{self, PolicyFile};
use vmhost_tests::host::{self, Exit};
use vmhost_tests::server::TestServer;
use vmhost_tests::wait::eventually;

/// How long a command that compiles a plugin may take.
const COMPILES: Duration = Duration::from_secs(300);

/// The component `deputy`, which follows the orders in ConfigMaps at home, and works in members or
/// does not.
fn deputy(members: bool) -> Result<PolicyFile> {
    PolicyFile::new("deputy", &component(members)?)
}

fn component(members: bool) -> Result<Vec<u8>> {
    let watched = |name: &str| {
        json!({ "name": name,
                "primary": { "version": "v1", "kind": "ConfigMap", "labelSelector": "orders" } })
    };
    let mut controllers = vec![watched("at-home")];
    if members {
        let mut there = watched("in-members");
        there["clusters"] = "members".into();
        controllers.push(there);
    }
    let description = json!({
        "apiVersion": "vmhost/v1",
        "name": "deputy",
        "controllers": controllers,
        "permissions": [{ "version": "v1", "kind": "ConfigMap", "verbs": ["create", "patch"] }],
    });
    guests::described(guests::DEPUTY, &description.to_string())
}

fn maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

/// A ConfigMap whose turns return this effect for a cluster.
fn order(name: &str, cluster: Option<&str>, effect: &Value) -> Value {
    let body = json!({ "cluster": cluster, "effect": effect });
    let turn = json!({ "effects": [{ "other": "in-cluster", "body": body }] });
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "labels": { "orders": "" }, "annotations": {
            "vmhost.test/turn": turn.to_string(),
        } },
    })
}

fn apply(namespace: &str, name: &str, more: Value) -> Value {
    let mut metadata = json!({ "namespace": namespace, "name": name });
    if !more.is_null() {
        metadata["ownerReferences"] = more;
    }
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": { "by": "in-cluster" },
    });
    json!({ "apply": { "object": object, "force": true, "createIfAbsent": true } })
}

both_servers!(an_effect_goes_to_the_cluster_that_it_names, own);
async fn an_effect_goes_to_the_cluster_that_it_names(home: &TestServer) -> Result<()> {
    let pair = Pair::start(home).await?;
    let (user, there) = (&pair.user, &pair.there);
    let near = home.namespace("near").await?;
    let far = pair.east.namespace("far").await?;
    pair.add("east", &pair.east.kubeconfig()).await?;
    let file = deputy(true)?;
    let host = pair.host(file.path())?.ready().await?;
    let is_written = |object: &Value| object["data"]["by"] == "in-cluster";

    // From home to a member.
    let effect = apply(&far, "made", Value::Null);
    let ordered = order("out", Some("east"), &effect);
    let created = user.create(&maps(&near), &ordered).await?;
    let made = format!("{}/made", maps(&far));
    there
        .until(&made, "it is applied in east", is_written)
        .await?;
    let at_home = user.get(&format!("{}/made", maps(&near))).await?;
    ensure!(at_home.is_none(), "it is at home: {at_home:?}");

    // From a member to home.
    let effect = apply(&near, "summary", Value::Null);
    there
        .create(&maps(&far), &order("in", None, &effect))
        .await?;
    let summary = format!("{}/summary", maps(&near));
    user.until(&summary, "it is applied at home", is_written)
        .await?;

    // A turn that names its own cluster writes as any other.
    let effect = apply(&far, "own", Value::Null);
    there
        .create(&maps(&far), &order("self", Some("east"), &effect))
        .await?;
    let own = format!("{}/own", maps(&far));
    there
        .until(&own, "it is applied in its own", is_written)
        .await?;

    // The owner is in another cluster.
    let owner = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "out", "uid": created["metadata"]["uid"],
    }]);
    let effect = apply(&near, "owned", owner);
    let changed = order("out", Some("east"), &effect);
    let metadata = json!({ "annotations": changed["metadata"]["annotations"] });
    user.merge(
        &format!("{}/out", maps(&near)),
        json!({ "metadata": metadata }),
    )
    .await?;
    host.wait_for_line("an owner reference never reaches over clusters")
        .await?;

    // A cluster that is not there is named, and written to when it comes.
    let effect = apply(&near, "late", Value::Null);
    user.create(&maps(&near), &order("waits", Some("west"), &effect))
        .await?;
    host.wait_for_line("the cluster west is not connected")
        .await?;
    pair.add("west", &home.kubeconfig()).await?;
    let late = format!("{}/late", maps(&near));
    user.until(&late, "it is applied in west", is_written)
        .await?;
    Ok(())
}

both_servers!(a_plugin_without_members_writes_to_none, own);
async fn a_plugin_without_members_writes_to_none(home: &TestServer) -> Result<()> {
    let pair = Pair::start(home).await?;
    let near = home.namespace("near").await?;
    let proxy = pair.east.proxy().await?;
    pair.add("east", proxy.kubeconfig()).await?;
    let file = deputy(false)?;
    let host = pair.host(file.path())?.ready().await?;
    let effect = apply("default", "made", Value::Null);
    pair.user
        .create(&maps(&near), &order("out", Some("east"), &effect))
        .await?;
    host.wait_for_line("no controller of the plugin works in member clusters")
        .await?;
    let writes = proxy.requests_where(|request| request.is_write());
    ensure!(writes.is_empty(), "{writes:?}");

    // Another cluster needs the same permission.
    let effect = json!({ "delete": { "key": {
        "apiVersion": "v1", "kind": "ConfigMap", "namespace": near, "name": "out",
    } } });
    pair.user
        .create(&maps(&near), &order("deletes", None, &effect))
        .await?;
    host.wait_for_line("no permission to delete ConfigMap.v1")
        .await?;
    Ok(())
}

both_servers!(a_candidate_writes_to_the_clusters_of_the_live_version, own);
async fn a_candidate_writes_to_the_clusters_of_the_live_version(home: &TestServer) -> Result<()> {
    let pair = Pair::start(home).await?;
    let (user, there) = (&pair.user, &pair.there);
    let near = home.namespace("near").await?;
    let far = pair.east.namespace("far").await?;
    pair.add("east", &pair.east.kubeconfig()).await?;
    let file = deputy(true)?;
    let host = pair.host(file.path())?.ready().await?;
    let other = guests::with_comment(&component(true)?, "another");
    host.start_canary("deputy", &other, &["--weight", "100"])
        .await?;

    let effect = apply(&far, "made", Value::Null);
    let ordered = order("out", Some("east"), &effect);
    let created = user.create(&maps(&near), &ordered).await?;
    let made = format!("{}/made", maps(&far));
    there
        .until(&made, "it is applied in east", |object| {
            object["data"]["by"] == "in-cluster"
        })
        .await?;

    // The same is refused as in the live version.
    let owner = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "out", "uid": created["metadata"]["uid"],
    }]);
    let effect = apply(&near, "owned", owner);
    user.create(&maps(&near), &order("owns", Some("east"), &effect))
        .await?;
    host.wait_for_line("an owner reference never reaches over clusters")
        .await?;
    host.until_idle().await?;
    let canary = host.canary("deputy").await?.canary;
    ensure!(canary.candidate.ran >= 2, "{canary:?}");
    Ok(())
}

/// Runs the plugin over recorded turns.
async fn replay(file: &PolicyFile, from: &Path) -> Result<Exit> {
    let command = host::bare()?.arg("replay").arg(file.path());
    let command = command.arg("--from").arg(from);
    command.spawn()?.wait_exit_within(COMPILES).await
}

both_servers!(a_record_has_the_cluster_and_the_effect, own);
async fn a_record_has_the_cluster_and_the_effect(home: &TestServer) -> Result<()> {
    let pair = Pair::start(home).await?;
    let near = home.namespace("near").await?;
    let far = pair.east.namespace("far").await?;
    pair.add("east", &pair.east.kubeconfig()).await?;
    let file = deputy(true)?;
    let host = pair.host(file.path())?.ready().await?;
    let effect = apply(&far, "made", Value::Null);
    let ordered = order("out", Some("east"), &effect);
    pair.user.create(&maps(&near), &ordered).await?;
    eventually("the turn is recorded", async || {
        let story = host.story("configmap", &near, "out").await?;
        let mut effects = story.turns.iter().flat_map(|turn| &turn.effects);
        let named = format!("ConfigMap {far}/made in cluster east");
        let is_told = effects.any(|one| one.verb == "apply" && one.object == named);
        Ok(is_told.then_some(()))
    })
    .await?;

    let folder = tempfile::tempdir()?;
    let (out, key) = (folder.path(), format!("configmap/{near}/out"));
    let address = host.admin_addr().to_string();
    let command = host::bare()?
        .args(["record", "-o", "json", "--address", &address])
        .args(["--key", &key])
        .arg("--out")
        .arg(out);
    let exit = command.run().await?;
    ensure!(exit.status.success(), "{exit:?}");
    let recorded: Value = serde_json::from_str(&exit.stdout.join("\n"))?;
    let case = recorded["cases"][0]["folder"].as_str();
    let case = case.map(PathBuf::from).context("no case")?;
    let expect = case.join("expect.json");
    let text = fs::read_to_string(&expect)?;
    let written: Value = serde_json::from_str(&text)?;
    let body = &written["effects"][0]["other"]["body"];
    ensure!(body["cluster"] == "east", "{written}");
    let data = &body["effect"]["apply"]["object"]["data"];
    ensure!(data["by"] == "in-cluster", "{written}");

    let same = replay(&file, out).await?;
    ensure!(same.status.success(), "{same:?}");
    fs::write(&expect, text.replace("\"east\"", "\"west\""))?;
    let exit = replay(&file, out).await?;
    let shown = |text: &str| exit.stdout.iter().any(|line| line.contains(text));
    ensure!(
        exit.status.code() == Some(1)
            && shown("\"cluster\": \"west\",")
            && shown("\"cluster\": \"east\","),
        "{exit:?}"
    );
    Ok(())
}
