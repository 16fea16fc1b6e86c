//! A host that does not lead and cannot have a component: it says so in its own entry of the
//! status, since the conditions are the leader's.

use std::fs;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use vmhost_tests::both_servers;
use vmhost_tests::host::{self, HostCommand};
use vmhost_tests::plugin_objects::Objects;
use vmhost_tests::server::TestServer;

use crate::plugin_objects::asking;

/// One of two hosts, of which the first leads as long as it runs.
fn elected(server: &TestServer, namespace: &str, name: &str) -> Result<HostCommand> {
    Ok(host::on(&server.kubeconfig())?
        .args(["--plugins-from-cluster", "--host-name", name])
        .args(["--leader-elect", "--leader-election-id", "standby"])
        .args(["--leader-election-namespace", namespace])
        .args(["--leader-election-lease-duration", "3000s"])
        .args(["--leader-election-renew-deadline", "2000s"]))
}

/// What a host says about itself.
fn said<'a>(plugin: &'a Value, host: &str) -> Option<&'a Value> {
    let mut hosts = plugin["status"]["hosts"].as_array()?.iter();
    hosts.find(|of| of["name"] == host)
}

both_servers!(a_standby_without_the_component_says_why, own);
async fn a_standby_without_the_component_says_why(server: &TestServer) -> Result<()> {
    let own = server.namespace("standby").await?;
    let objects = Objects::of(server, &own).await?;
    let folder = tempfile::tempdir()?;
    let component = asking("one", &json!({}))?;
    fs::write(folder.path().join("one.wasm"), component)?;
    let first = elected(server, &own, "first")?;
    let _first = first
        .arg("--plugin-folder")
        .arg(folder.path())
        .ready()
        .await?;
    objects.plugin("one", json!({ "path": "one.wasm" })).await?;
    let available = objects
        .until("one", "Available", "True", "Available")
        .await?;
    let leader = said(&available, "first").cloned().unwrap_or_default();
    ensure!(leader["message"].is_null(), "{leader}");

    let _second = elected(server, &own, "second")?.ready().await?;
    let path = objects.at("one");
    let waits = objects.user.until(&path, "the second says why", |plugin| {
        let message = said(plugin, "second").map(|host| host["message"].to_string());
        message.is_some_and(|text| text.contains("--plugin-folder"))
    });
    let plugin = waits.await?;
    let second = said(&plugin, "second").cloned().unwrap_or_default();
    ensure!(second["ready"] == false, "{second}");
    Ok(())
}
